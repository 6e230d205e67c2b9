"""Programs as configurations."""
