"""Tests of tree."""
