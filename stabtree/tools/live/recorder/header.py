"""The record that a run begins with: which run it is, and what it was started with."""

from __future__ import annotations

import json
import mmap
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stabtree.run import RUN_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MARK = f'{{"{RUN_HEADER}": '.encode()  # as `record` writes it, at the begin of a line
LOOK_BACK_BYTES = 1 << 28
UNSEEDED = 67280421310721  # what torch begins with where nobody gave it a seed


def record(config: Mapping[str, Any], resumes: str | None, rank: int = 0) -> dict[str, Any]:
    """Return the header of a run.

    Args:
        config: what it was started with, as far as that is known.
        resumes: the id of the run that it goes on with, empty for one without an id; None for a new run.
        rank: which rank writes it; others than rank 0 leave out what may differ between the ranks of a run.
    """
    about: dict[str, Any] = {"id": resumes or uuid4().hex[:12], "started": datetime.now(UTC).isoformat("T", "seconds")}
    known: dict[str, int] = {}
    if resumes is not None:
        about["resumes"] = True
    elif not rank:
        known = _of_torch()
    return {RUN_HEADER: about, "config": {**known, **config}}


def _of_torch() -> dict[str, int]:
    """Return the seed and the number of ranks that torch knows, where it was imported and given them."""
    torch = sys.modules.get("torch")
    found: dict[str, int] = {}
    if torch is None:
        return found
    try:
        seed = torch.initial_seed()
        distributed = torch.distributed
        if seed != UNSEEDED:
            found["seed"] = seed
        if distributed.is_available() and distributed.is_initialized():
            found["world_size"] = distributed.get_world_size()
    except Exception:  # a torch that is not imported to its end, or a stand-in
        return found
    return found


def last_header(path: Path) -> tuple[int, str]:
    """Return where the last header of a log is, and its id; 0 and nothing where there is none."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
            at = held.rfind(_MARK, max(0, len(held) - LOOK_BACK_BYTES))
            if at < 0:
                return 0, ""
            end = held.find(b"\n", at)
            about = json.loads(held[at : end if end > 0 else len(held)])[RUN_HEADER]
            return at, str(about["id"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0, ""


def trainable_share(model: Any) -> float:
    """Return the share of a model's weights that are trained."""
    sizes = [(weights.numel(), weights.requires_grad) for weights in model.parameters()]
    total = sum(size for size, _ in sizes)
    if not total:
        return 1.0
    return float(sum(size for size, trained in sizes if trained) / total)
