"""The Recorder: what a training loop writes, and how it is judged while it runs."""
