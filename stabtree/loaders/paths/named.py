"""What the runs below a folder are called, and which of them a name means."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import SeveralRunsError, StabtreeError
from stabtree.common.text import clean, first_few
from stabtree.loaders.source import NAME_METRICS
from stabtree.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.loaders.paths.joined import Loaded

LISTED = 8


def named_by_folder(found: Iterable[Loaded]) -> list[Loaded]:
    """Return runs named by their folder, where a folder holds one run alone."""
    found = list(found)
    runs = Counter(_home(item) for item in found if isinstance(item.run, Run))
    above = {*map(str, chain.from_iterable(Path(home).parents for home in runs))}  # a path to these means several runs
    paths = Counter(item.path for item in found if item.name == item.path)
    named = []
    for item in found:
        home = _home(item)
        alone = runs[home] == 1 and home not in above
        named.append(_named(item, home, alone=alone, shared=paths[item.path] > 1))
    return [replace(item, name=clean(item.name)) for item in named]


def _named(item: Loaded, home: str, *, alone: bool, shared: bool) -> Loaded:
    if isinstance(item.run, StabtreeError) or item.name != item.path:
        return item
    if alone:
        path = home
        if Path(home) == Path():
            path = str(Path("..", Path.cwd().name))  # says more than `.`
        return replace(item, name=path, path=path)
    if shared and item.run.sources:  # two loggers used one folder
        return replace(item, name=f"{item.path} {item.run.sources[0].format.partition(',')[0]}")
    return item


def _home(item: Loaded) -> str:
    """Return the folder of a run."""
    if item.files:
        return str(Path(os.path.commonpath([str(Path(file).parent) for file in item.files])))
    return item.path


def below(item: Loaded, folder: str) -> str:
    """Return what to call a run below a folder: its path from there, and its name in it."""
    inner = item.name.removeprefix(item.path).strip()
    path = os.path.relpath(item.path, folder)
    return " ".join(filter(None, ("" if path == "." and inner else path, inner)))


def only_named(loaded: Sequence[Loaded], wanted: str, paths: Sequence[str | Path]) -> Loaded:
    """Return the run of a name: that in its file, its folder, or its path as far as that is needed.

    Raises:
        SeveralRunsError: where none has that name, or several do.
    """
    runs = [item for item in loaded if isinstance(item.run, Run)]
    folder = str(paths[0])
    named = [item for item in runs if wanted == below(item, folder)]
    named = named or [item for item in runs if wanted in _names_of(item)]
    if len(named) == 1:
        return named[0]
    names = [below(item, folder) for item in runs]
    closest = difflib.get_close_matches(wanted, names, n=1) or names[:1]
    hint = f"name one: --run {clean(closest[0])!r}" if closest else NAME_METRICS
    raise SeveralRunsError(f"holds {len(runs)} runs: {first_few(names, LISTED)}", where=clean(folder), hint=hint)


def _names_of(item: Loaded) -> set[str]:
    """Return what a run may be called: the ends of its path, and its own name."""
    inner = item.name.removeprefix(item.path).strip()
    path = Path(item.path).parts
    ends = {"/".join(path[begin:]) for begin in range(len(path))}
    own = item.run.name if isinstance(item.run, Run) else ""
    return {*({inner} if inner else ends), item.name, own}
