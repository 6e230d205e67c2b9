"""The site: what its makers write."""
