"""Which column means what: the table of known metrics and what the user said of this run, as one value.

It is made once, where a run is loaded, and handed to whoever has to know what a name stands for.
"""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.metrics.likely import guess
from stabtree.metrics.pace import TIMES
from stabtree.metrics.table import (
    EPOCH_ALIASES,
    MAX_NAME,
    METRICS,
    OTHER_COUNTS,
    RANK_ALIASES,
    RUN_ALIASES,
    STEP_ALIASES,
    by_name,
    match,
    normalize,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STEP, EPOCH, RANK, RUN = "step", "epoch", "rank", "run"
AXES = frozenset((STEP, EPOCH, RANK, RUN))  # roles that are no metrics: they say which row it is
_PLACES = {
    alias: (role, place)
    for role, aliases in ((RUN, RUN_ALIASES), (RANK, RANK_ALIASES), (EPOCH, EPOCH_ALIASES), (STEP, STEP_ALIASES))
    for place, alias in enumerate(aliases)
}
# Ultralytics logs the parts of its loss only, and they carry their weights already.
_PART = re.compile(r"\s*(train|val)/(box|obj|cls|dfl|seg|sem|pose|kobj|rle|angle)_(?:loss|om)\s*")
_PART_OF = {"train": "loss", "val": "eval_loss"}
# The columns that W&B adds to each series of an export.
_EXTREMES = ("__MIN", "__MAX")
NAMELESS = "value"  # the column of an export that holds one series
# What else a training loss is called, and what is logged beside one.
_LIKE_A_LOSS = re.compile(r"loss|nll|ce$|xent|entropy|cost|objective|obj$|err|mse|bce|criterion|ppl|perplexity|elbo")
_HELD_OUT = ("val_", "valid", "eval", "test_", "dev_")
_BESIDE = re.compile(r"time|speed|sec|memory|mem$|tokens|samples|throughput|eta|date|fps|tflops|batch|size|norm|lr|acc")


class Meaning(NamedTuple):
    """What a column stands for.

    Attributes:
        role: `step`, `epoch`, `rank`, `run`, a metric (`grad_norm`, `weight_norm/head`), or nothing.
        place: among the names of the role, 0 best; what the user named stands before them all.
    """

    role: str
    place: int


UNKNOWN = Meaning("", 0)
# Metrics that are logged as true or false, too.
FLAGS = ("activation_finite", "skipped_steps")


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """What the columns of a run mean. Compared by identity, so that what was found once is found again at once.

    Attributes:
        columns: (metric, column) as the user said; of such a metric no other column is read.
        step_column: the column that holds the steps, as the user said.
    """

    columns: tuple[tuple[str, str], ...] = ()
    step_column: str | None = None

    @property
    def asked(self) -> dict[str, str]:
        """The columns that the user named, by what they stand for."""
        return {**dict(self.columns), **({STEP: self.step_column} if self.step_column else {})}

    def match(self, column: str) -> Meaning:
        """What a column stands for.

        >>> Names().match("train/Learning_Rate"), Names((("loss", "trn_nll"),)).match("trn_nll").role
        (Meaning(role='lr', place=3), 'loss')
        """
        return _meaning(self, column)

    def role(self, column: str) -> str:
        """What a column stands for, nothing for an unknown one."""
        return _meaning(self, column).role

    def metric(self, column: str) -> str:
        """The metric that a column carries; nothing for one of rows or of time, and for an unknown one."""
        role = _meaning(self, column).role
        return "" if role in AXES or role in TIMES else role

    def counts(self, column: str) -> bool:
        """Whether a column tells where the run is: in steps or in epochs."""
        return column == self.step_column or _place(column)[0] in (STEP, EPOCH)

    def is_label(self, column: str) -> bool:
        """Whether a column's cells are labels, compared for equality only, so that text is no mistake in them."""
        return _meaning(self, column).role in ("batch_id", RANK, RUN)

    def is_flag(self, column: str) -> bool:
        """Whether a column's cells may be true or false; elsewhere these are no numbers."""
        return _meaning(self, column).role.partition("/")[0] in FLAGS

    def wanted(self, column: str) -> bool:
        """Whether anyone will want the values of a column; others need not be parsed."""
        inner = in_export(column)
        known = _meaning(self, column).role or part_of(column) or (inner and self.wanted(inner))
        return bool(known or guess(column) or normalize(column) == NAMELESS)

    def column(self, metric: str) -> str:
        """What to call the column of a metric that a loader makes itself."""
        return dict(self.columns).get(metric, metric)

    def with_column(self, metric: str, column: str) -> Names:
        """These names, and `column` for `metric`."""
        return replace(self, columns=(*self.columns, (metric, column)))

    def naming_a_loss(self, columns: Iterable[str]) -> str:
        """What to type so that one of these columns is read as the loss; nothing where none can be one."""
        likely = likely_loss(column for column in columns if not self.role(column))
        return f"name it: --column {shlex.quote('loss=' + likely)}" if likely else ""


def named(columns: Mapping[str, str], step_column: str | None = None) -> Names:
    """The names with what a user says of a run.

    Raises:
        StabtreeError: where `columns` names a metric that is not known.
    """
    for metric in columns:
        _check_metric(metric)
    return Names(tuple(columns.items()), step_column)


def _check_metric(metric: str) -> None:
    base = metric.partition("/")[0]
    known = by_name().get(base)
    if known and (known.grouped or base == metric):
        return
    names = [entry.name for entry in METRICS]
    close = difflib.get_close_matches(base, names, n=1, cutoff=0.4)
    raise StabtreeError(
        f"{clean(metric, 40)!r} is not a metric",
        where="--column",
        hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(names)}",
    )


def _meaning(names: Names, column: str) -> Meaning:
    # A broken file holds names of any length, which are not worth remembering.
    return (_remembered if len(column) <= MAX_NAME else _remembered.__wrapped__)(names, column)


@lru_cache(maxsize=1 << 15)
def _remembered(names: Names, column: str) -> Meaning:
    asked = names.asked
    for role, name in asked.items():
        if name == column:
            return Meaning(role, -1)
    found = _place(column) if _place(column)[0] else match(column)
    return Meaning(*found) if found and found[0] not in asked else UNKNOWN


def _place(column: str) -> tuple[str, int]:
    """The axis that a column is, and its place among the names of it."""
    if len(column) > MAX_NAME:
        return UNKNOWN
    return _PLACES.get(normalize(column)) or _PLACES.get("_".join(words(column)), UNKNOWN)


def counts_optimizer_steps(column: str) -> bool:
    """Whether a column of steps counts optimizer steps, as far as its name tells.

    >>> counts_optimizer_steps("train/global_step"), counts_optimizer_steps("consumed_tokens")
    (True, False)
    """
    return normalize(column) not in EPOCH_ALIASES and OTHER_COUNTS.isdisjoint(words(column))


def part_of(column: str) -> str:
    """The loss that a column holds a part of, where the parts may be summed: `loss`, `eval_loss` or nothing."""
    found = _PART.fullmatch(column)
    return _PART_OF[found[1]] if found else ""


def in_export(column: str) -> str:
    """The series in a column that W&B's export calls `run - series`; nothing for any other column."""
    return "" if column.endswith(_EXTREMES) else column.rpartition(" - ")[2] if " - " in column else ""


def likely_loss(columns: Iterable[str]) -> str:
    """Of columns that nobody knows, the one that is the training loss most likely; nothing where none can be."""
    names = [name for name in columns if clean(name) == name]
    words = {name: normalize(name) for name in names}
    # `val/box_loss` is no training loss where `train/box_loss` stands beside it.
    names.sort(key=lambda name: words[name].startswith(_HELD_OUT))
    guesses = [name for name in names if "loss" in words[name]]
    guesses += [name for name in names if words[name] in ("value", "train", "nll", "cost", "objective")]
    guesses += difflib.get_close_matches("loss", names, n=1, cutoff=0.5)
    guesses += [name for name in names if _LIKE_A_LOSS.search(words[name]) and not _BESIDE.search(words[name])]
    guesses += [name for name in names if not _BESIDE.search(words[name])]
    return guesses[0] if guesses else ""
