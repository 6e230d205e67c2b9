"""The configuration of a run before it starts, as trainers, launchers and people write it."""

from stabtree.tools.check.configs.load import load_config

__all__ = ["load_config"]
