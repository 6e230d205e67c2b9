"""Callbacks of trainers: each writes the log of a `Recorder` and can stop the run; the framework comes with it."""
