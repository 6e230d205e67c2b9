"""Fit the limit and the slope of every question to labelled runs, and measure both on repositories that they never saw.

`python -m benchmarks.fit` writes `trees/calibration.yaml` and prints the report.
"""
