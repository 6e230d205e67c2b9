"""What a watch does besides printing: a command, a webhook, a page, a checkpoint that is kept."""
