"""The figure of a diagnosis: series over one axis of steps, for the terminal, SVG and the page."""
