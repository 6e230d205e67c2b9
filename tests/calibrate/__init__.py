"""Tests of calibrating."""
