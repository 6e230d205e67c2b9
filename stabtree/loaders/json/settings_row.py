"""Rows of a log that hold the configuration instead of metrics."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stabtree.loaders.config import WRAPPERS, canonical_key, read_config
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar

_KIND_KEYS = ("type", "event", "kind", "_type", "record")
_KINDS = frozenset((*WRAPPERS, "header", "meta", "metadata", "manifest", "run", "start", "run_start", "train_begin"))


def config_row(row: Mapping[str, Any], names: Names) -> tuple[dict[str, ConfigScalar], list[str]] | None:
    """Return the configuration that a row of a log holds instead of metrics; None for a row of metrics."""
    keys = tuple(row)
    if not may_be_config(keys, names):
        return None
    kind = normalize(next((row[key] for key in _KIND_KEYS if isinstance(row.get(key), str)), ""))
    if any(_is_loss(key, names) for key in keys):
        is_config = kind in _KINDS - {"run"}
    else:
        wrapped = any(isinstance(row.get(key), dict) for key in WRAPPERS)
        is_config = wrapped or kind in _KINDS or _only_settings(keys, names)
    return read_config(row) if is_config else None


# A log of a million rows has a handful of different sets of keys.
@lru_cache(maxsize=64)
def may_be_config(keys: tuple[str, ...], names: Names) -> bool:
    """Whether a row with these keys can be one of configuration, which its values then decide."""
    if any(names.counts(key) for key in keys):
        return False
    return not {*_KIND_KEYS, *WRAPPERS}.isdisjoint(map(normalize, keys)) or _only_settings(keys, names)


def _only_settings(keys: tuple[str, ...], names: Names) -> bool:
    """Whether a row without a step names settings that no row of metrics would."""
    if any(names.counts(key) or _is_loss(key, names) for key in keys):
        return False
    settings = set(map(canonical_key, keys))
    return not settings.isdisjoint(("dtype", "optimizer", "checkpoint_every", "name"))


def _is_loss(key: str, names: Names) -> bool:
    return names.role(key) in ("loss", "eval_loss")
