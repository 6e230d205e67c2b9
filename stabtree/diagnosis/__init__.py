"""From a run and a tree to what was found."""
