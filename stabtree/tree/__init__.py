"""Trees: the model, from YAML to it, and its checks."""
