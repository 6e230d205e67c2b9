"""The sections of the screen, each as lines for a page."""
