"""Outputs of many runs: each takes records, worst first, and yields its text in pieces."""
