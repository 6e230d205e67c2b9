"""`stabtree calibrate`: the limits that healthy runs call for."""
