"""Small things that all may use; none knows of runs, trees or files of a trainer."""
