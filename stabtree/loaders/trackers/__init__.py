"""What trackers keep of a run: one module for each."""
