"""Fit the tree to a project: `calibrate` and `--why-not`."""
