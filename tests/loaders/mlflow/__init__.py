"""Tests of loaders/mlflow."""
