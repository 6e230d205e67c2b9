"""The files that a run was read from, with the hashes that identify them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.files import Input

if TYPE_CHECKING:
    from stabtree.run import Run

MAX_HASHED = 1 << 30  # bytes: a second's work, where reading as much takes half a minute
SMALL = 1 << 20
GLANCE = 1 << 12


def with_inputs(run: Run) -> Run:
    """Return the run with its files, each hashed as it is stored now: a second reading, for reports that need it.

    A run that has them keeps them: its files may be gone.
    """
    if run.inputs:
        return run
    return replace(run, inputs=tuple(hashed(source.path) for source in run.sources))


def hashed(path: str) -> Input:
    """Return a file with its size and hash, or why it has none."""
    file = Path(path)
    try:
        if not file.is_file():
            return Input(path, reason="a folder" if file.is_dir() else "not a file")
        with file.open("rb", buffering=0) as stream:
            digest, size = hashlib.sha256(), 0
            at_once = min(SMALL, max(os.fstat(stream.fileno()).st_size, GLANCE) + 1)
            while size <= MAX_HASHED and (block := stream.read(at_once)):
                digest.update(block)
                size += len(block)
    except (OSError, ValueError) as error:
        return Input(path, reason=f"can't be read again: {getattr(error, 'strerror', None) or error}")
    if size > MAX_HASHED:
        return Input(path, reason=f"larger than {MAX_HASHED:,} bytes")
    return Input(path, size, digest.hexdigest())
