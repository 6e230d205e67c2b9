"""Tests of loaders/tensorboard."""
