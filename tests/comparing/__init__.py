"""Where runs part."""
