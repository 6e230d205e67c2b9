"""Tests of loaders/json."""
