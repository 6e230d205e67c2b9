"""Which series a run is judged by where no column has a known name of the training loss."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import blocks, kendall_z
from stabtree.common.text import clean, first_few
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
TREND_Z, LEVELS, MIN_ROWS = 1.64, 20, 8
# What a series without any name may be instead, and the course by which it was chosen.
OTHERWISE = {"loss": ("reward", "it falls"), "reward": ("loss", "it rises from below 0 to above")}
_EXPORT = frozenset(("wall_time", "step", NAMELESS))
_TAG = re.compile(r"[-_]tag[-_](.+)")


class Choice(NamedTuple):
    """What a run is judged by.

    Attributes:
        names: what the columns mean, with what was chosen.
        notes: what was chosen, of what, and how to choose another one.
        kind: `adversarial`, `policy` or `value` for a loss that moves by nature; else nothing.
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
    """Choose what to judge by: the known loss, else the series most like it, else a reward, an eval loss, or grad_norm.

    `alone` says whether the table is the whole run; the eval loss in one of several files is no training loss.
    """
    nameless = _nameless(table, names)
    if nameless:
        return nameless
    guesses = _guesses(table, names)
    asked = names.asked.get("loss")
    if asked is not None:
        return Choice(names, kind=_kind(guess(asked), guesses))
    if any(names.role(name) == "loss" for name in table.columns):
        return Choice(names)
    known = _known(table, names)
    found = _candidates(table, names, guesses)
    rewards = _best_first(found, "reward")
    notes: tuple[str, ...] = ()
    if rewards and "reward" not in known:
        known["reward"] = rewards[0].name
        names = names.with_column("reward", rewards[0].name)
        notes = (_note("reward", rewards),)
    losses = _losses(found, known)
    if not losses or losses[0].guess.held_out:
        return _without_training_loss(table, Choice(names, notes), known, losses, alone=alone)
    best = losses[0]
    names = _with_eval(names.with_column("loss", best.name), best.name, known, losses)
    return Choice(names, (*notes, _note("loss", losses)), _kind(best.guess, guesses))


def _guesses(table: Table, names: Names) -> dict[str, Guess]:
    """Return what each column may be by its name, but for those that the user named for something else."""
    return {name: like for name in table.columns if (like := guess(name)) and not _is_asked(name, names)}


def _known(table: Table, names: Names) -> dict[str, str]:
    """Return the column of each metric with a known name that holds anything."""
    return {names.role(name): name for name, column in table.columns.items() if column is None or column.count}


def _losses(found: list[_Candidate], known: dict[str, str]) -> list[_Candidate]:
    """Return the candidates for the loss; none if the best is too short, beside a reward that can be judged."""
    losses = _best_first(found, "loss")
    if "reward" in known and losses and losses[0].column.count < MIN_ROWS:
        return []
    return losses


def _without_training_loss(
    table: Table, so_far: Choice, known: dict[str, str], losses: list[_Candidate], *, alone: bool
) -> Choice:
    """Choose where the training loss is not logged: the held-out loss, else what else can be judged."""
    names, notes = so_far.names, so_far.notes
    if not alone:
        return Choice(names, notes, enough=False)
    held_out = known.get("eval_loss") or (losses[0].name if losses else "")
    if held_out and "reward" not in known:
        note = f"No training loss is logged: the loss on held-out data, {clean(held_out, 60)}, is judged as the loss."
        return Choice(names.with_column("loss", held_out), (*notes, note))
    others = [metric for metric in ENOUGH if metric in known]
    if others and _has_course(table, names):
        return Choice(names, (*notes, f"No loss is logged: the run is judged by {', '.join(others)}."))
    return Choice(names, notes, enough=False)


def _is_asked(name: str, names: Names) -> bool:
    """Whether the user named this column for something else than the loss."""
    return name in names.asked.values() and names.asked.get("loss") != name


def _candidates(table: Table, names: Names, guesses: dict[str, Guess]) -> list[_Candidate]:
    """Return the columns without a known name that may be a loss or a reward."""
    course = _has_course(table, names)
    episodes = any(normalize(name) in EPISODES for name in table.columns)
    found = []
    for name, guessed in guesses.items():
        column = table.columns[name]
        if not column or not column.count or column.coded or names.role(name):
            continue
        is_loss = guessed.metric == "loss"
        if (course or (is_loss and guessed.named)) and (episodes or is_loss or guessed.named):
            found.append(_Candidate(name, column, guessed))
    return found


def _has_course(table: Table, names: Names) -> bool:
    """Whether rows follow each other in time, unlike those of results or of samples."""
    # A list is a series by itself, and a text was written line by line.
    in_time = table.format.startswith(("json columns", "text"))
    return in_time or any(names.counts(name) or normalize(name) in CLOCKS for name in table.columns)


def _best_first(found: list[_Candidate], metric: str) -> list[_Candidate]:
    """Sort the candidates for a metric: of the training side, moving and densely logged ones come first."""
    found = [item for item in found if item.guess.metric == metric]
    found = [item for item in found if not _is_player(item) or _has_partner(item, found)]
    any_moves = any(not _constant(item.column) for item in found)
    max_count = max((item.column.count for item in found), default=0)

    def order(item: _Candidate) -> tuple[bool, bool, bool, int]:
        still = any_moves and _constant(item.column)
        return item.guess.held_out, still, item.column.count * DENSER < max_count, item.guess.order

    return sorted(found, key=order)


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
    """Return how a loss moves by nature, by its own name, or as one of the losses of adversaries or of an actor."""
    kinds = {found.kind for found in guesses.values()}
    if ADVERSARIAL in kinds:
        return ADVERSARIAL
    if best and best.kind:
        return best.kind
    if {POLICY, VALUE} <= kinds:
        return POLICY
    return ""


def _with_eval(names: Names, loss: str, known: dict[str, str], losses: list[_Candidate]) -> Names:
    """Add the same loss on held-out data: its name is that of the training loss but for the side."""
    if "eval_loss" in known:
        return names
    plain = _sideless(loss)
    beside = [item.name for item in losses if item.guess.held_out and _sideless(item.name) == plain]
    if beside:
        return names.with_column("eval_loss", beside[0])
    return names


def _sideless(name: str) -> tuple[str, ...]:
    sides = ("train", "training", "trn", "val", "valid", "validation", "eval", "test", "dev")
    return tuple(word for word in words(name) if word not in sides)


def _note(metric: str, found: list[_Candidate]) -> str:
    """Return the note on a choice: which column, and how to take another."""
    best, *others = (clean(item.name, 60) for item in found)
    text = f"No column has a known name of the {metric}: {best} is read as it"
    if not others:
        return f"{text}. If it is another one, name it: --column {metric}=NAME."
    example = shlex.quote(f"{metric}={others[0]}")
    return f"{text}, not {first_few(others, LISTED)}. To take another one: --column {example}."


def _nameless(table: Table, names: Names) -> Choice | None:
    """Choose what the one series of an export is, by the names of its file and folder, else by its course."""
    only = _only_series(table)
    if only is None or only in names.asked.values():
        return None
    for title, plain in _titles(table.path):
        metric, found = names.metric(title), guess(title)
        if found and plain and found.order > 1:
            continue
        if metric:
            judged_as = {"eval_loss": "loss"}.get(metric, metric)
            enough = judged_as in ("loss", *ENOUGH)
            return Choice(names.with_column(judged_as, only), (_title_note(title, metric),), enough=enough)
        if found:
            return Choice(names.with_column(found.metric, only), (_title_note(title, found.metric),), found.kind)
    metric = _by_course(table.columns[only])
    if not metric:
        return None
    other, shape = OTHERWISE[metric]
    text = f"Nothing says what its one series is: read as the {metric}, since {shape}. "
    return Choice(names.with_column(metric, only), (f"{text}If it is no {metric}: --column {other}={only}.",))


def _title_note(title: str, metric: str) -> str:
    return f"Its one series is called {clean(title, 60)}: read as the {metric}."


def _only_series(table: Table) -> str | None:
    """Return the column of an export that holds one series and does not say which."""
    found = [name for name in table.columns if normalize(name) == NAMELESS]
    column = table.columns[found[0]] if found else None
    if not column or not column.count or not _EXPORT.issuperset(map(normalize, table.columns)):
        return None
    return found[0]


def _titles(path: str) -> list[tuple[str, bool]]:
    """Return what an export may be called after (tag, file, folder), and whether only a plain name counts there."""
    *folders, file = re.split(r"[\\/]", path)
    stem = file.removesuffix(".gz").removesuffix(".csv")
    titles = [(tag, False) for tag in _TAG.findall(stem)[:1]]
    titles.append((stem, False))
    return [*titles, *((folder, True) for folder in folders[-1:])]


def _by_course(column: Column | None) -> str:
    """Return what a series can be: a loss falls and is positive; only a reward rises from below 0 to above."""
    values = column.held[np.isfinite(column.held)] if column else np.empty(0)
    if len(values) < MIN_ROWS:
        return ""
    levels = blocks(values, min(LEVELS, len(values) // 2))[0]
    trend = kendall_z(levels)
    if trend < -TREND_Z and float(values.min()) >= 0:
        return "loss"
    if trend > TREND_Z and values[0] < 0 < levels[-1]:
        return "reward"
    return ""
