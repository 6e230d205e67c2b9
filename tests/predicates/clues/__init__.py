"""What the clues show."""
