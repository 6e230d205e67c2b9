"""What meets a person at the prompt: what typed words mean, completion, help in groups, progress."""
