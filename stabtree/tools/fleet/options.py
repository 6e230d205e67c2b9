"""What a scan is asked for, refused before anything is read where it means nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near
from stabtree.judging.judge import Judging
from stabtree.loaders import check_options
from stabtree.tools.fleet.engine import CLUSTERS, ENGINES

if TYPE_CHECKING:
    from collections.abc import Sequence

READING: dict[str, type | tuple[type, ...]] = {
    "dtype": str,
    "checkpoint_every": Integral,
    "columns": Mapping,
    "step_column": str,
    "format": str,
    "run": str,
    "checkpoints": (str, os.PathLike),
    "ranks": bool,
}
"""How logs may be read, and the type of each: the options of `load_run`, but for the run to compare one with."""


def check_paths(paths: Sequence[Any]) -> None:
    """Refuse what names no folder.

    Raises:
        StabtreeError: for the first of them.
    """
    hint = "name the folder that holds the runs"
    if not paths:
        raise StabtreeError("no folder to scan", hint=hint)
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise StabtreeError(f"{_shown(path)} names no folder", where="scan", hint=hint)
        if str(path) == "-":
            raise StabtreeError("standard input is one log", where="-", hint="diagnose it alone: stabtree -")
        if str(path) == "":
            raise StabtreeError("an empty path names no log", hint=hint)


def check_work(*, engine: Any, address: Any, jobs: Any, timeout: Any, cache: Any) -> None:
    """Refuse what no engine can work with.

    Raises:
        StabtreeError: for the first of them.
    """
    if not isinstance(engine, str) or engine not in ENGINES:
        raise StabtreeError(f"{_shown(engine)} is not an engine", where="--engine", hint=f"{', '.join(ENGINES)}")
    if not isinstance(address, str) or (address and engine not in CLUSTERS):
        hint = f"add --engine {' or '.join(CLUSTERS)}, or leave it out"
        raise StabtreeError(f"--engine {engine} has no scheduler", where="--scheduler", hint=hint)
    if jobs is not None:
        _check_jobs(jobs)
    if timeout is not None:
        _check_timeout(timeout, engine)
    if cache is not None and (not isinstance(cache, str | os.PathLike) or not str(cache)):
        raise StabtreeError(f"{_shown(cache)} names no file", where="--cache", hint="name a file to keep results in")


def _check_jobs(jobs: Any) -> None:
    hint = "give a number from 1 on"
    if not _is(jobs, Integral):
        raise StabtreeError(f"{_shown(jobs)} is not a whole number", where="--jobs", hint=hint)
    if jobs <= 0:
        raise StabtreeError(f"{_shown(jobs)} is too few", where="--jobs", hint=hint)


def _check_timeout(timeout: Any, engine: str) -> None:
    hint = "give a number above 0"
    if not _is(timeout, Real):
        raise StabtreeError(f"{_shown(timeout)} is not a number", where="--timeout", hint=hint)
    if not timeout > 0:
        raise StabtreeError(f"{_shown(timeout)} seconds are too few", where="--timeout", hint=hint)
    hint = "leave it out; a log that takes too long is for `stabtree diagnose` alone"
    if engine in CLUSTERS:
        raise StabtreeError(f"--engine {engine} can't stop a log", where="--timeout", hint=hint)
    if sys.platform == "win32":
        raise StabtreeError("Windows can't stop a log", where="--timeout", hint=hint)


def check_reading(how: Mapping[str, Any]) -> None:
    """Refuse ways to read logs that are wrong whatever the log.

    Raises:
        StabtreeError: for the first of them.
    """
    for name, value in how.items():
        if name not in READING:
            close = near(name, READING)
            hint = f"known are {', '.join(READING)}"
            raise StabtreeError(f"{_shown(name)} is not an option of a scan{close}", where="scan", hint=hint)
        if value is not None and not _is(value, READING[name]):
            raise StabtreeError(f"{_shown(value)} is of the wrong type", where=name, hint="see help(stabtree.load_run)")
    for metric, column in (how.get("columns") or {}).items():
        if not isinstance(metric, str) or not isinstance(column, str):
            hint = 'write {"loss": "train/nll"}'
            raise StabtreeError(f"{_shown(column)} is not the name of a column", where="columns", hint=hint)
    check_options(**how)


def check_judging(judging: Any, ends: Any) -> None:
    """Refuse what no run can be judged by.

    Raises:
        StabtreeError: where the rules or the steps are none.
    """
    if judging is not None and not isinstance(judging, Judging):
        hint = "give a stabtree.judging.judge.Judging, or leave it out"
        raise StabtreeError(f"{_shown(judging)} does not say how to judge runs", where="judging", hint=hint)
    pair = ends is None or (isinstance(ends, tuple) and len(ends) == 2 and all(map(_is_end, ends)))
    if not pair or (ends and None not in ends and ends[0] > ends[1]):
        hint = "give the first and the last step, as in (500, 800) or (500, None)"
        raise StabtreeError(f"{_shown(ends)} is not a range of steps", where="ends", hint=hint)


def _is_end(value: Any) -> bool:
    return value is None or (_is(value, Integral) and value >= 0)


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return whether a value is of a type; True and False are no numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _shown(value: Any) -> str:
    """Return a value as it would be typed, in few characters."""
    if isinstance(value, float):
        return f"{value:g}"
    return clean(repr(value), 60)
