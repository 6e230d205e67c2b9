"""Spikes and what explains them."""
