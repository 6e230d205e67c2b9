"""Counters: what counts the rows of a file, and what it means where they start again."""
