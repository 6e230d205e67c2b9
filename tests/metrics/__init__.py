"""Tests of stabtree.metrics."""
