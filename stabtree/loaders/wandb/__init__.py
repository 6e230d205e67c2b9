"""Weights & Biases runs."""
