"""Callbacks of trainers: each hands rows to a Recorder."""
