"""Which column means what: the table of known metrics and the columns that the user named, as one value.

It is made once, when a run is loaded, and passed to all that need to know what a name means.
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.files import LogLine
from stabtree.common.text import clean
from stabtree.metrics.metric import Role
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import MAX_NAME, axis, by_name, is_time, match, normalize, table, with_role, words
from stabtree.metrics.vocabulary import NOT_FINITE, STEPS_COUNTED, TRAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


STEP, EPOCH, RANK, RUN, PHASE = "step", "epoch", "rank", "run", "phase"
AXES = frozenset((STEP, EPOCH, RANK, RUN, PHASE))  # roles that are no metrics: they say which row it is
# Ultralytics logs the parts of its loss only, and they carry their weights already.
_PART = re.compile(r"\s*(train|val)/(box|obj|cls|dfl|seg|sem|pose|kobj|rle|angle)_(?:loss|om)\s*")
_PART_OF = {"train": "loss", "val": "eval_loss"}
# The columns that W&B adds to each series of an export.
_EXTREMES = ("__MIN", "__MAX")
MISTYPED = 0.7  # how much of a name is the word loss: `los`, `lloss`
SHOWN = 80  # of the name of a column, wherever it is printed to be typed
NAMELESS = "value"  # the column of an export that holds one series
# What the values are needed of, whatever the name.
_WANTED = (Role.REWARD, Role.QUALITY, Role.GRADIENT)


class Meaning(NamedTuple):
    """What a column means.

    Attributes:
        role: `step`, `epoch`, `rank`, `run`, `phase`, a metric (`grad_norm`, `weight_norm/head`), or nothing.
        priority: among the names of the role, 0 best; -1 for a column that the user named.
    """

    role: str
    priority: int


UNKNOWN = Meaning("", 0)


class Names(Struct, frozen=True, eq=False):
    """What the columns of a run mean. Compared by identity, so that what was found once is found again at once.

    Attributes:
        columns: (metric, column) as given by the user; of such a metric no other column is read.
        step_column: the column that holds the steps, as given by the user.
    """

    columns: tuple[tuple[str, str], ...] = ()
    step_column: str | None = None

    @property
    def asked(self) -> dict[str, str]:
        """The columns that the user named, by what they mean."""
        asked = dict(self.columns)
        if self.step_column:
            asked[STEP] = self.step_column
        return asked

    def match(self, column: str) -> Meaning:
        """Return what a column means.

        >>> Names().match("train/Learning_Rate"), Names((("loss", "trn_nll"),)).match("trn_nll").role
        (Meaning(role='lr', priority=3), 'loss')
        """
        # A broken file holds names of any length, which are not worth remembering.
        return (_remembered if len(column) <= MAX_NAME else _remembered.__wrapped__)(self, column)

    def role(self, column: str) -> str:
        """Return the role of a column, nothing for an unknown one."""
        return self.match(column).role

    def metric(self, column: str) -> str:
        """Return the metric that a column holds; nothing for one of rows or of time, and for an unknown one."""
        role = self.match(column).role
        if role in AXES or is_time(role):
            return ""
        return role

    def counts(self, column: str) -> bool:
        """Return whether a column counts the steps or the epochs of the run."""
        return column == self.step_column or axis(column)[0] in (STEP, EPOCH)

    def is_label(self, column: str) -> bool:
        """Return whether a column's cells are labels, compared for equality only, so that text is valid in them."""
        role = self.match(column).role
        return role in (RANK, RUN, PHASE) or role in with_role(Role.LABEL)

    def is_flag(self, column: str) -> bool:
        """Return whether a column's cells may be true or false; elsewhere these are no numbers."""
        metric = by_name().get(self.match(column).role.partition("/")[0])
        return metric.flag if metric else counts_broken(column) is not None

    def wanted(self, column: str) -> bool:
        """Return whether the values of a column may be needed; others need not be parsed."""
        return (_wanted if len(column) <= MAX_NAME else _wanted.__wrapped__)(self, column)

    def column(self, metric: str) -> str:
        """Return the name for a column of a metric that a loader makes itself."""
        return dict(self.columns).get(metric, metric)

    def with_column(self, metric: str, column: str) -> Names:
        """Return these names with `column` for `metric`."""
        return replace(self, columns=(*self.columns, (metric, column)))

    def spelled_as_in(self, columns: Collection[str]) -> Names:
        """Return these names with the columns that the user gave as `inspect` shows them, as the file spells them."""
        shown = {clean(column, SHOWN): column for column in columns}
        given = tuple((metric, name if name in columns else shown.get(name, name)) for metric, name in self.columns)
        return self if given == self.columns else replace(self, columns=given)


def named(columns: Mapping[str, str], step_column: str | None = None) -> Names:
    """Return the names with the columns that a user gives by any name of a metric that the table knows.

    Raises:
        StabtreeError: if `columns` names an unknown metric, or one twice.
    """
    known, given = by_name(), dict[str, str]()
    for name, column in columns.items():
        base = name.partition("/")[0]
        canonical = base in known and (known[base].grouped or base == name)
        metric = name if canonical else (match(name) or ("", 0))[0]
        if not metric or metric in given:
            close = difflib.get_close_matches(base, list(known), n=1, cutoff=0.4)
            hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
            problem = f"{metric} is given twice" if metric else f"{clean(name, 40)!r} is not a metric"
            raise StabtreeError(problem, where="--column", hint="leave one of them out" if metric else hint)
        given[metric] = column
    return _same(tuple(given.items()), step_column)


_same = lru_cache(maxsize=64)(Names)  # the same for all logs read alike: what they mean is found out once


@lru_cache(maxsize=1 << 15)
def _wanted(names: Names, column: str) -> bool:
    inner = in_export(column)
    known = names.match(column).role or part_of(column) or (inner and names.wanted(inner))
    reading = describe_name(column)
    needed = reading.loss or reading.role in _WANTED or normalize(column) == NAMELESS
    return bool(known or needed or counts_broken(column) is not None)


@lru_cache(maxsize=8192)
def counts_broken(name: str) -> bool | None:
    """Return whether a count or flag says above 0 that values are not finite, or says so by 0; None for other names.

    >>> counts_broken("n_nan_params"), counts_broken("grads_finite"), counts_broken("nan_iterations")
    (True, False, None)
    """
    own = {*words(name)}
    if own & STEPS_COUNTED or not own & {*NOT_FINITE, "finite"}:
        return None
    return bool(own & NOT_FINITE or "non" in own)


@lru_cache(maxsize=1 << 15)
def _remembered(names: Names, column: str) -> Meaning:
    asked = names.asked
    for role, name in asked.items():
        if name in (column, clean(column, SHOWN)):
            return Meaning(role, -1)
    found = axis(column)
    if not found[0]:
        found = match(column) or UNKNOWN
    return UNKNOWN if found[0] in asked else Meaning(*found)


def known_names() -> Iterator[str]:
    """Return all names of metrics and of the columns that say which row it is."""
    yield from chain.from_iterable(metric.names for metric in by_name().values())
    yield from chain.from_iterable(table().axes.values())


def part_of(column: str) -> str:
    """Return the loss that a column holds a part of, if the parts may be summed: `loss`, `eval_loss` or nothing."""
    found = _PART.fullmatch(column)
    return _PART_OF[found[1]] if found else ""


def in_export(column: str) -> str:
    """Return the series in a column that W&B's export calls `run - series`; nothing for any other column."""
    if column.endswith(_EXTREMES) or " - " not in column:
        return ""
    return column.rpartition(" - ")[2]


def likely_loss(columns: Iterable[str]) -> str:
    """Return the one of unknown columns that is most likely the training loss; nothing if none can be.

    A column of which nothing is known is offered only where it is of training, or there is no other such column.
    """
    names = [name for name in columns if clean(name) == name]
    losses = [name for name in names if describe_name(name).loss or normalize(name) in (NAMELESS, "train")]
    losses = losses or difflib.get_close_matches("loss", names, n=1, cutoff=MISTYPED)
    if not losses:
        others = [name for name in names if describe_name(name).role is Role.OTHER]
        trained = [name for name in others if not TRAIN.isdisjoint(words(name))]
        return next(iter(trained or (others if len(others) == 1 else [])), "")
    # `val/box_loss` is no training loss if there is `train/box_loss` as well.
    return min(losses, key=lambda name: (describe_name(name).held_out, describe_name(name).order), default="")


# What W&B and the Hugging Face trainer write beside final values only.
_MARKS = frozenset(
    ("_wandb", "_runtime", "train_runtime", "train_samples_per_second", "eval_runtime", "total_flos", "best_epoch")
)
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_FINAL = "holds only final values of the run, not its course"
NO_COURSE = f"It {_FINAL}."
_HINT = "name the file with a row for each step: the run's history, its log or its event file"


def check_object(values: Mapping[str, Any], where: str, names: Names) -> None:
    """Refuse one object of final values.

    Raises:
        StabtreeError: if it is that.
    """
    if _is_final(values) or any(names.metric(key) and isinstance(value, int | float) for key, value in values.items()):
        raise StabtreeError(_FINAL, where=where, hint=_HINT)


def nonfinite_losses(values: Mapping[str, Any]) -> tuple[LogLine, ...]:
    """Return a line for each final loss that is not finite; W&B writes it as the text `NaN`."""
    return tuple(
        LogLine(0, f"final {clean(key, 60)}: {clean(value, 20)}", at_end=True)
        for key, value in values.items()
        if "loss" in key.lower() and isinstance(value, str | float) and _NOT_FINITE.fullmatch(str(value))
    )


def check_columns(columns: Iterable[str], rows: int, where: str, names: Names) -> None:
    """Refuse a table of final values: a single row of them or without a step, or a row for each of several runs.

    Raises:
        StabtreeError: if it is one.
    """
    words = {normalize(name) for name in columns}
    if {"name", "state"} <= words and words & {"runtime", "created"}:
        problem = "holds one row for each run, with its final values, and no run's course"
        raise StabtreeError(problem, where=where, hint=_HINT)
    if is_single(columns, rows, names):
        raise StabtreeError(_FINAL, where=where, hint=_HINT)


def is_single(columns: Iterable[str], rows: int, names: Names) -> bool:
    """Return whether a table is a single row of final values, or one without a step."""
    return rows == 1 and (not any(map(names.counts, columns)) or _is_final(columns))


def _is_final(names: Iterable[str]) -> bool:
    return any(normalize(name.partition("/")[0]) in _MARKS for name in names)
