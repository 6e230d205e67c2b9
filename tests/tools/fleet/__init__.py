"""Tests of scanning many runs."""
