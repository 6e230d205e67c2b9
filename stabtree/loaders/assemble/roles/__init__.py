"""What each column of a table holds, and by which of them a run is judged."""
