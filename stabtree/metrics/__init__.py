"""What a column means: the one table of known metrics."""
