"""Tests of loaders/assemble/roles."""
