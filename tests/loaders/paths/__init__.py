"""Tests of loaders/paths."""
