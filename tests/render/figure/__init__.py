"""Tests of render.figure."""
