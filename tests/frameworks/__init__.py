"""Tests of stabtree.frameworks."""
