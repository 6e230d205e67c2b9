"""What meets a person at the prompt."""
