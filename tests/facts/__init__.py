"""Tests of facts."""
