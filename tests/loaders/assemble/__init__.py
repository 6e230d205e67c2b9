"""Tests of loaders/assemble."""
