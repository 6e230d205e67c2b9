"""A diagnosis as people and machines read it: on a screen, as a page, Markdown, SVG or JSON."""
