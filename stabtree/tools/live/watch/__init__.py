"""`stabtree watch`: follow logs that grow."""
