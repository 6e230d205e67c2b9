"""Where a run that failed parts from runs that did not: pure functions from runs to a `Comparison`."""
