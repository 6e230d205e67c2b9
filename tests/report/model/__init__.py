"""Tests of what a report says, whatever form it takes."""
