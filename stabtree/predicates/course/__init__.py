"""Questions about the course of the loss over the whole run."""
