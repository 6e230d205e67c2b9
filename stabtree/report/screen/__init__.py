"""A diagnosis on a terminal: on one screen, in full, or in one line."""
