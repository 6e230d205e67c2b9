"""Tests of loaders/tables."""
