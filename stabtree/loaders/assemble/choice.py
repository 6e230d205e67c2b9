"""Which series a run is judged by where no column has a known name of the training loss."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import blocks, kendall_z
from stabtree.common.text import clean
from stabtree.metrics.likely import ADVERSARIAL, EPISODES, POLICY, VALUE, Guess, guess
from stabtree.metrics.names import NAMELESS, Names
from stabtree.metrics.table import normalize, words

if TYPE_CHECKING:
    from stabtree.loaders.table import Column, Table

LISTED = 4
# A series that is logged so many times as often as another one is looked at first.
DENSER = 5
# By these alone some of the questions can be answered.
ENOUGH = ("reward", "grad_norm", "loss_scale")
CLOCKS = frozenset(("time", "wall_time", "walltime", "timestamp", "elapsed", "time_elapsed", "total_time", "t"))
# How clearly a series without any name must fall to be taken for a loss: one in 20 without a trend does.
TREND_Z, LEVELS, LEAST_ROWS = 1.64, 20, 8
_EXPORT = frozenset(("wall_time", "step", NAMELESS))
_TAG = re.compile(r"[-_]tag[-_](.+)")


class Choice(NamedTuple):
    """What a run is judged by.

    Attributes:
        names: what the columns mean, with what was chosen.
        notes: what was chosen, of what, and how to choose another one.
        kind: of a loss that moves by nature which it is: `adversarial`, `policy` or `value`; else nothing.
        enough: whether something of the run can be judged.
    """

    names: Names
    notes: tuple[str, ...] = ()
    kind: str = ""
    enough: bool = True


class _Candidate(NamedTuple):
    """A column that could be what is looked for."""

    name: str
    column: Column
    guess: Guess


def choose(table: Table, names: Names, *, alone: bool) -> Choice:
    """The series to judge by: the known loss, else the one most like it, else a reward, an eval loss, or grad_norm.

    `alone` says whether the table is the whole run; the eval loss in one of several files is no training loss.
    """
    named = _nameless(table, names)
    if named:
        return named
    known = {names.role(name): name for name, column in table.columns.items() if column is None or column.count}
    roles = {names.role(name) for name in table.columns}
    guesses = {name: like for name in table.columns if (like := guess(name)) and not _asked(name, names)}
    if "loss" in roles or "loss" in names.asked:
        asked = names.asked.get("loss")
        return Choice(names, kind=_kind(guesses.get(asked) or guess(asked), guesses) if asked else "")
    found = [
        _Candidate(name, column, guessed)
        for name, guessed in guesses.items()
        if (column := table.columns[name]) and column.count and not column.coded and not names.role(name)
    ]
    course = _has_course(table, names)
    if not course:
        found = [item for item in found if item.guess.metric == "loss" and item.guess.named]
    if not any(normalize(name) in EPISODES for name in table.columns):
        found = [item for item in found if item.guess.metric == "loss" or item.guess.named]
    notes: list[str] = []
    if "reward" not in known and (rewards := _best_first(found, "reward")):
        names, known = names.with_column("reward", rewards[0].name), {**known, "reward": rewards[0].name}
        notes.append(_told("reward", rewards))
    losses = _best_first(found, "loss")
    if "reward" in known and losses and losses[0].column.count < LEAST_ROWS:
        losses = []  # too short to judge, beside a reward that can be judged
    if losses and not losses[0].guess.held_out:
        best = losses[0]
        names = _with_eval(names.with_column("loss", best.name), best.name, known, losses)
        return Choice(names, (*notes, _told("loss", losses)), _kind(best.guess, guesses))
    if "reward" not in known and alone and (held_out := known.get("eval_loss") or (losses and losses[0].name)):
        note = f"No training loss is logged: the loss on held-out data, {clean(held_out, 60)}, is judged as the loss."
        return Choice(names.with_column("loss", held_out), (*notes, note))
    if alone and course and (by := [metric for metric in ENOUGH if metric in known]):
        return Choice(names, (*notes, f"No loss is logged: the run is judged by {', '.join(by)}."))
    return Choice(names, tuple(notes), enough=False)


def _asked(name: str, names: Names) -> bool:
    return name in names.asked.values() and names.asked.get("loss") != name


def _has_course(table: Table, names: Names) -> bool:
    """Whether rows follow each other in time, as those of results or of samples don't."""
    # A list is a series by itself, and a text was written line by line.
    in_time = table.format.startswith(("json columns", "text"))
    return in_time or any(names.counts(name) or normalize(name) in CLOCKS for name in table.columns)


def _best_first(found: list[_Candidate], metric: str) -> list[_Candidate]:
    """The candidates for a metric: on the training side, moving, logged densely, and what is looked at first."""
    of_it = [item for item in found if item.guess.metric == metric]
    of_it = [item for item in of_it if not _is_player(item) or _has_partner(item, of_it)]
    moving = [item for item in of_it if not _constant(item.column)]
    most = max((item.column.count for item in of_it), default=0)
    return sorted(
        of_it,
        key=lambda item: (
            item.guess.held_out,
            bool(moving) and item not in moving,
            item.column.count * DENSER < most,
            item.guess.order,
        ),
    )


def _is_player(item: _Candidate) -> bool:
    return item.guess.kind == ADVERSARIAL and not item.guess.named


def _has_partner(item: _Candidate, found: list[_Candidate]) -> bool:
    """Whether `D_A` has its `G_A` or `G` beside it: a single letter alone is no loss."""
    return any(_is_player(other) and _letter(other.name) != _letter(item.name) for other in found)


def _letter(name: str) -> str:
    return next(word[-1] for word in words(name) if word in ("d", "g"))


def _constant(column: Column) -> bool:
    held = column.held
    return bool((held == held[0]).all())


def _kind(best: Guess | None, guesses: dict[str, Guess]) -> str:
    """Whether a loss moves by nature: its own name says so, or it is one of those of adversaries or of an actor."""
    kinds = {found.kind for found in guesses.values()}
    if ADVERSARIAL in kinds:
        return ADVERSARIAL
    if best and best.kind:
        return best.kind
    return POLICY if {POLICY, VALUE} <= kinds else ""


def _with_eval(names: Names, loss: str, known: dict[str, str], losses: list[_Candidate]) -> Names:
    """The names with the same loss on held-out data, where its name is that of the training loss but for the side."""
    if "eval_loss" in known:
        return names
    plain = _sideless(loss)
    beside = [item.name for item in losses if item.guess.held_out and _sideless(item.name) == plain]
    return names.with_column("eval_loss", beside[0]) if beside else names


def _sideless(name: str) -> tuple[str, ...]:
    sides = ("train", "training", "trn", "val", "valid", "validation", "eval", "test", "dev")
    return tuple(word for word in words(name) if word not in sides)


def _told(metric: str, found: list[_Candidate]) -> str:
    """The note on a choice: which column, and how to take another."""
    shown = [clean(item.name, 60) for item in found]
    text = f"No column has a known name of the {metric}: {shown[0]} is read as it"
    if len(shown) == 1:
        return f"{text}. If it is another one, name it: --column {metric}=NAME."
    more = f" and {len(shown) - 1 - LISTED} more" if len(shown) > 1 + LISTED else ""
    example = shlex.quote(f"{metric}={shown[1]}")
    return f"{text}, not {', '.join(shown[1 : 1 + LISTED])}{more}. To take another one: --column {example}."


def _nameless(table: Table, names: Names) -> Choice | None:
    """What the one series of an export is, by the names of its file and folder, else by its course."""
    holder = next((name for name in table.columns if normalize(name) == NAMELESS), None)
    column = table.columns[holder] if holder else None
    if not holder or not column or not column.count or not {normalize(name) for name in table.columns} <= _EXPORT:
        return None
    if holder in names.asked.values():
        return None
    for word, plain in _called(table.path):
        metric, found = names.metric(word), guess(word)
        if found and plain and found.order > 1:
            continue
        if metric:
            loss = metric == "eval_loss"
            text = f"Its one series is called {clean(word, 60)}: read as the {metric}."
            as_what = "loss" if loss else metric
            return Choice(names.with_column(as_what, holder), (text,), enough=as_what in ("loss", *ENOUGH))
        if found:
            text = f"Its one series is called {clean(word, 60)}: read as the {found.metric}."
            return Choice(names.with_column(found.metric, holder), (text,), found.kind)
    metric = _by_course(column)
    if not metric:
        return None
    other = "reward" if metric == "loss" else "loss"
    shape = "it falls" if metric == "loss" else "it rises from below 0 to above"
    text = f"Nothing says what its one series is: read as the {metric}, since {shape}. "
    return Choice(names.with_column(metric, holder), (f"{text}If it is no {metric}: --column {other}={holder}.",))


def _called(path: str) -> list[tuple[str, bool]]:
    """What an export may be called after: the tag in its name, its name, its folder; of that only a plain name."""
    parts = re.split(r"[\\/]", path)
    stem = parts[-1].removesuffix(".gz").removesuffix(".csv")
    tag = _TAG.search(stem)
    return [*([(tag[1], False)] if tag else []), (stem, False), *((folder, True) for folder in parts[-2:-1])]


def _by_course(column: Column) -> str:
    """What a series without a name can be: a loss falls and is positive; only a reward rises from below 0 to above."""
    values = column.held[np.isfinite(column.held)]
    if len(values) < LEAST_ROWS:
        return ""
    levels = blocks(values, min(LEVELS, len(values) // 2))[0]
    trend = kendall_z(levels)
    if trend < -TREND_Z and float(values.min()) >= 0:
        return "loss"
    return "reward" if trend > TREND_Z and values[0] < 0 < levels[-1] else ""
