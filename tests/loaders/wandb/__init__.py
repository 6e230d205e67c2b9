"""Tests of loaders/wandb."""
