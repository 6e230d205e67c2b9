"""What a sweep varies: the settings in which its runs differ, and those that split the runs that diverge from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean
from stabtree.judging.verdict import UNREAD
from stabtree.loaders.config import KEYS
from stabtree.report.plot import short
from stabtree.run import LOGGING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.run import ConfigScalar
    from stabtree.tools.fleet.record import Record

MAX_SETTINGS, MAX_VALUE = 3, 20
LEAST = 3  # runs on each side of a limit: with fewer, one in five settings splits them by chance
SEED = "seed"
DIGITS = 6


class Sweep:
    """What differs between runs.

    Args:
        records: the runs.

    Attributes:
        varied: the settings to show: those that split the runs first, numbers before words, the seed last.
        splits: a sentence for each number at which a limit lies between the runs that diverge and all others.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        judged = [record for record in records if record.badge not in (UNREAD, UNKNOWN)]
        values: dict[str, list[ConfigScalar]] = {}
        for record in judged:
            for key, value in record.settings.items():
                values.setdefault(key, []).append(value)
        order = [*KEYS, *values]  # lr stands near the beginning
        keys = [key for key, known in values.items() if len(known) * 2 >= len(judged) and _varies(key, known)]
        self.numbers = [key for key in keys if all(map(is_number, values[key]))]
        told = {key: _split(key, judged) for key in self.numbers if key not in LOGGING}
        self.splits = {key: sentence for key, sentence in told.items() if sentence}
        keys.sort(key=lambda key: (key == SEED, key not in self.splits, key not in self.numbers, order.index(key)))
        self.varied = tuple(keys[:MAX_SETTINGS])


def _varies(key: str, values: Sequence[ConfigScalar]) -> bool:
    """Return whether runs differ in a setting that may matter: no path, and no name that each run has of its own."""
    different = len(set(values))
    named = any(isinstance(value, str) for value in values) and (
        different == len(values) > LEAST or any("/" in str(value) or "\\" in str(value) for value in values)
    )
    return different > 1 and not named and (key == SEED or key not in LOGGING)


def is_number(value: object) -> bool:
    """Return whether a value lies on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: ConfigScalar | None) -> str:
    """Return a value in few characters; nothing where it is not known."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return short(value, DIGITS)
    return "" if value is None else clean(str(value), MAX_VALUE)


def _split(key: str, records: Sequence[Record]) -> str:
    """Return at which values of a number all runs diverge and at which none does; empty where no limit tells them."""
    known = [record for record in records if key in record.settings]
    bad, good = ([float(run.settings[key]) for run in known if run.diverged is side] for side in (True, False))  # type: ignore[arg-type]
    if min(len(bad), len(good)) < LEAST:
        return ""
    for sign, limit, holds, other in (
        (">=", min(bad), min(bad) > max(good), "below"),
        ("<=", max(bad), max(bad) < min(good), "above"),
    ):
        if holds:
            counts = f"{len(bad)} of {len(bad)}; 0 of {len(good)} {other}"
            return f"every run with {key} {sign} {shown(limit)} diverges ({counts})"
    return ""
