"""Section 2: spikes. What they are, what explains them, what leads and follows."""
