"""The hash of all that a tree says, by which reports name the rules that a run was judged by."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stabtree.tree.model import Tree

_HASHED: deque[tuple[Tree, str]] = deque(maxlen=8)


def fingerprint(tree: Tree) -> str:
    """Return a hash of all that a tree says; its version alone changes nothing."""
    for known, hashed in [*_HASHED]:
        if known is tree:
            return hashed
    hashed = _hash(tree)
    _HASHED.append((tree, hashed))
    return hashed


def _hash(tree: Tree) -> str:
    content = json.dumps(_content(replace(tree, version="")), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _content(value: Any) -> Any:
    """Return a tree, or a part of it, as plain values."""
    if is_dataclass(value):
        return {item.name: _content(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: _content(held) for key, held in value.items()}
    if isinstance(value, tuple):
        return [_content(held) for held in value]
    return value
