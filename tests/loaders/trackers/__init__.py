"""Tests of what reads trackers."""
