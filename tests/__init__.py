"""Tests of stabtree."""
