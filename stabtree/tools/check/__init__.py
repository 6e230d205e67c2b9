"""`stabtree check`: judge a configuration before its run."""
