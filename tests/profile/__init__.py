"""Tests of what a series is described as."""
