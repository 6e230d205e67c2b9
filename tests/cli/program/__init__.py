"""From typed words to the call of a command."""
