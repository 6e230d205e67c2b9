"""Bounds of the readers: time, memory, and what a file may claim."""
