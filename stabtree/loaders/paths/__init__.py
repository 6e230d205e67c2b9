"""From what a user names to the files of one run."""
