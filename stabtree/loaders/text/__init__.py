"""The text that a trainer prints."""
