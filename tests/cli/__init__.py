"""Tests of the command line's own parts."""
