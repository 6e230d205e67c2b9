"""What a report says, in its order: the same for screen, Markdown and page."""
