"""Pure functions from a diagnosis, a run or a tree to text."""
