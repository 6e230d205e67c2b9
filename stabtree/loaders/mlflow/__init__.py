"""MLflow stores."""
