"""Tests of what the benchmarks share with the suite."""
