"""Logs without names: what goes, what stays, and that they are read as before."""
