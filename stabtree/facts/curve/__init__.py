"""How a series runs: its levels, what rises, what falls, where it is best."""
