"""Tests of loaders/text."""
