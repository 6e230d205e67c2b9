"""What makes a release: its metadata, what is shipped, the workflows, verdicts, pages for contributors."""
