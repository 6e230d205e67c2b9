"""Files that are programs, read for what they say of a training and never run: one module for each form."""
