"""The outputs that services read."""
