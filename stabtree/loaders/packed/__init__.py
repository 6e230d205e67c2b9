"""What lies packed in the bytes of a file, whatever its format: compressed text, records of protocol buffers."""
