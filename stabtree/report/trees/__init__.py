"""What `explain` and `tree` show: nodes, metrics, predicates, graphs and cases of a tree."""
