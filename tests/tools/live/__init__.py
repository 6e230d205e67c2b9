"""Tests of runs that are watched while they grow."""
