"""`--keep-checkpoint`: the last clean checkpoint gets a second name, so that the rotation of the trainer leaves it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tools.live.news import News

PREFIX = "kept-"
"""Before the name and not behind it: trainers find the checkpoints that they delete by how their names begin."""
MAX_FILES = 100_000


class Keeper:
    """Makes hard links of checkpoints, which take no room until the trainer deletes its own.

    Args:
        wanted: whether it was asked for; else nothing is touched.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._done: set[str] = set()

    def take(self, news: News) -> Iterator[str]:
        """Keep the checkpoint that a finding says to restart from; the note on what became of it."""
        restart = news.finding.restart
        if not self._wanted or not news.change.is_finding or restart is None or restart.checkpoint_step is None:
            return
        if not restart.path or restart.path in self._done:
            return
        path = Path(restart.path)
        self._done.add(restart.path)
        kept = path.with_name(f"{PREFIX}{path.name}")
        if path.name.startswith(PREFIX) or kept.exists():
            return
        try:
            _link(path, kept)
        except OSError as error:
            yield f"{clean(str(path))} could not be kept: {error.strerror or error}"
        else:
            yield f"{clean(str(path))} is kept as {clean(str(kept))}, in which no later step is"


def _link(path: Path, kept: Path) -> None:
    """Give a file, or all files of a folder, a second name; the whole checkpoint or nothing."""
    if not path.is_dir():
        os.link(path, kept)
        return
    part = kept.with_name(f".{kept.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        count = 0
        for place, folders, files in os.walk(path):
            target = part / Path(place).relative_to(path)
            target.mkdir()
            linked = [name for name in folders if (Path(place) / name).is_symlink()]
            count += len(files) + len(linked)
            if count > MAX_FILES:
                raise OSError(f"it holds more than {MAX_FILES:,} files")
            for name in (*files, *linked):
                os.link(Path(place) / name, target / name, follow_symlinks=False)
        part.rename(kept)
    finally:
        shutil.rmtree(part, ignore_errors=True)
