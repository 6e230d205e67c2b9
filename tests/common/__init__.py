"""Tests of the small things that all use."""
