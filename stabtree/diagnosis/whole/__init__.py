"""What is said of a run as a whole: what was covered, what is near a limit, what reassures, which rank is worst."""
