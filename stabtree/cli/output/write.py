"""Write a whole file or leave the old one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write(path: Path, text: str | bytes, option: str = "--output") -> None:
    """Write a whole file or leave the old one: into a new file beside it, which then replaces it.

    Raises:
        StabtreeError: where that fails.
    """
    if isinstance(text, str):
        text = (text if text.endswith("\n") else f"{text}\n").encode("utf-8", "replace")
    write_pieces(path, [text], option)


def write_pieces(path: Path, pieces: Iterable[bytes], option: str = "--output") -> None:
    """Write a whole file or leave the old one, of a text that comes in pieces.

    Raises:
        StabtreeError: where that fails.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe, or a device such as /dev/null, can't be replaced
            _write_all(path, pieces)
            return
        if path.exists():
            path.open("ab").close()  # a file can be replaced without the right to write to it
        beside = path.with_name(f".stabtree-{os.getpid()}.part")
        try:
            _write_all(beside, pieces)
            if path.exists():
                beside.chmod(path.stat().st_mode)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StabtreeError(
            f"it can't be written: {error.strerror}",
            where=f"{option} {path}",
            hint="name a file in a folder that you can write to",
        ) from None


def _write_all(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as stream:
        stream.writelines(pieces)
