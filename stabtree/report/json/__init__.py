"""A diagnosis for machines: JSON, and the schema of it."""
