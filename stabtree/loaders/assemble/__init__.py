"""From tables to a run: columns, steps, gaps, ranks, placeholders."""
