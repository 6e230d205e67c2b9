"""What is found in a run once, for all predicates that ask for it."""
