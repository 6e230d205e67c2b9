"""Configurations before a run."""
