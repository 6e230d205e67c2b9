"""What connects trainers and loggers: each writes the log of a `Recorder`; the framework comes with it.

>>> from stabtree.integrations import LightningCallback  # doctest: +SKIP
>>> trainer = Trainer(callbacks=[LightningCallback("stabtree.jsonl")])  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stabtree.tools.live.callbacks.huggingface import HuggingFaceCallback
    from stabtree.tools.live.callbacks.keras import KerasCallback
    from stabtree.tools.live.callbacks.lightning import LightningCallback
    from stabtree.tools.live.doors.accelerate import AccelerateTracker
    from stabtree.tools.live.doors.axolotl import AxolotlPlugin
    from stabtree.tools.live.doors.composer import ComposerLogger
    from stabtree.tools.live.doors.fastai import FastaiCallback
    from stabtree.tools.live.doors.loggers import Logger, TorchtuneLogger
    from stabtree.tools.live.doors.ray import RayTrainCallback
    from stabtree.tools.live.doors.torchtitan import TorchtitanMetrics

__all__ = [
    "AccelerateTracker",
    "AxolotlPlugin",
    "ComposerLogger",
    "FastaiCallback",
    "HuggingFaceCallback",
    "KerasCallback",
    "LightningCallback",
    "Logger",
    "RayTrainCallback",
    "TorchtitanMetrics",
    "TorchtuneLogger",
]

_HOMES = {
    "HuggingFaceCallback": "callbacks.huggingface",
    "KerasCallback": "callbacks.keras",
    "LightningCallback": "callbacks.lightning",
    "AccelerateTracker": "doors.accelerate",
    "AxolotlPlugin": "doors.axolotl",
    "ComposerLogger": "doors.composer",
    "FastaiCallback": "doors.fastai",
    "Logger": "doors.loggers",
    "RayTrainCallback": "doors.ray",
    "TorchtitanMetrics": "doors.torchtitan",
    "TorchtuneLogger": "doors.loggers",
}


def __getattr__(name: str) -> Any:
    # Imported at first use: most of them import their framework.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"stabtree.tools.live.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'stabtree.integrations' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, which are imported at their first use."""
    return sorted(__all__)
