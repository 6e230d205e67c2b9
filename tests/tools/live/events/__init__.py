"""The events of a growing log: which there are, and when each of their changes is reported."""
