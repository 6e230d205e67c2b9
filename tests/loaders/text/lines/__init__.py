"""Tests of loaders/text/lines."""
