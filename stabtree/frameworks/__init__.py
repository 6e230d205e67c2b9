"""What is known of each trainer, one YAML file a trainer: all that differs between them is asked here."""
