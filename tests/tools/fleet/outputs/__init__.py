"""Tests of outputs of many runs."""
