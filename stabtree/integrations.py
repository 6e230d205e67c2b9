"""The callbacks of trainers: each writes the log of a `Recorder`, and imports its framework at first use.

>>> from stabtree.integrations import LightningCallback  # doctest: +SKIP
>>> trainer = Trainer(callbacks=[LightningCallback("stabtree.jsonl")])  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stabtree.tools.live.callbacks.huggingface import HuggingFaceCallback
    from stabtree.tools.live.callbacks.keras import KerasCallback
    from stabtree.tools.live.callbacks.lightning import LightningCallback

__all__ = ["HuggingFaceCallback", "KerasCallback", "LightningCallback"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        module = name.removesuffix("Callback").lower()
        return getattr(import_module(f"stabtree.tools.live.callbacks.{module}"), name)
    raise AttributeError(f"module 'stabtree.integrations' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, which are imported at first use."""
    return __all__
