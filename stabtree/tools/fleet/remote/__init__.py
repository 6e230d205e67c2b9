"""Runs at addresses: what is there, and how it is fetched."""
