"""A report as Markdown: for a pull request, an issue, a post-mortem."""
