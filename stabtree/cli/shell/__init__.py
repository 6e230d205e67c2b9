"""The terminal: what it can show, results and messages, questions to a person, progress."""
