"""The steps of the checkpoints in a folder, from their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.text import clean

if TYPE_CHECKING:
    from pathlib import Path

MOST = 100_000
# checkpoint-500, step_1000.pt, global_step500, iter_0001000, epoch=0-step=1000.ckpt, ckpt1000.pth, 1000
_NAMED = re.compile(
    r"(?:step|steps|iter|iteration|checkpoint|ckpt|model|state|update)[-_=.]?(\d{1,12})(?!\d)", re.IGNORECASE
)
_BARE = re.compile(r"(\d{1,12})(?:\.(?:pt|pth|ckpt|bin|safetensors))?")


def checkpoint_steps(folder: Path) -> tuple[int, ...]:
    """The steps of the checkpoints in a folder, in order.

    Raises:
        StabtreeError: where it is no folder, or no name in it tells a step.
    """
    shown = clean(folder)
    steps = set()
    try:
        for place, entry in enumerate(folder.iterdir()):
            named = _NAMED.findall(entry.name)
            bare = _BARE.fullmatch(entry.name)
            if named:
                steps.add(int(named[-1]))
            elif bare:
                steps.add(int(bare[1]))
            if place >= MOST:
                break
    except OSError as error:
        raise StabtreeError(
            f"can't be read: {clean(error.strerror)}",
            where=f"--checkpoints {shown}",
            hint="name the folder they lie in",
        ) from None
    if not steps:
        raise StabtreeError(
            "holds no name that tells a step, such as checkpoint-500 or step_1000.pt",
            where=f"--checkpoints {shown}",
            hint="name the folder they lie in, or the distance between them: --checkpoint-every STEPS",
        )
    return tuple(sorted(steps))
