"""Find where a bad run parts from healthy ones: pure functions from runs to a `Comparison`."""
