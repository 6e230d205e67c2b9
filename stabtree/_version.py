"""The version: of the package, of its trees, and in what it writes."""

__version__ = "0.1.0"
