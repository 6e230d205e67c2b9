"""Packed bytes of any format: compressed text, records of protocol buffers."""
