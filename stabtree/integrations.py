"""Callbacks of trainers: each writes the log of a `Recorder` and can stop the run; the framework comes with it.

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

_HOMES = {
    "HuggingFaceCallback": "huggingface",
    "KerasCallback": "keras",
    "LightningCallback": "lightning",
}


def __getattr__(name: str) -> Any:
    # Imported at first use: each of them imports its framework.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"stabtree.tools.live.callbacks.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'stabtree.integrations' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, which are imported at their first use."""
    return sorted(__all__)
