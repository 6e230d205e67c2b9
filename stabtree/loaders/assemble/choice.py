"""Which series a run is judged by: the training loss with what is logged beside it, or what there is without one."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_MOST
from stabtree.common.stats import SOME, blocks, kendall_z
from stabtree.common.text import clean, first_few
from stabtree.loaders.table import Column
from stabtree.metrics import vocabulary as of
from stabtree.metrics.metric import Role
from stabtree.metrics.names import NAMELESS, SHOWN, part_of
from stabtree.metrics.role import (
    ADVERSARIAL,
    AUXILIARY,
    HIGHER,
    LOWER,
    NO_OUTCOME,
    PART,
    PLAIN,
    POLICY,
    UNKNOWN,
    VALUE,
    ColumnRole,
    Ranking,
    Sighting,
    can_be_loss,
    core,
    describe_name,
    rank,
)
from stabtree.metrics.table import normalize, words
from stabtree.metrics.vocabulary import BITS, BOXES, DISTANCES, EPISODES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

    Readings = dict[str, ColumnRole]

LISTED = 4
# By these alone some of the questions can be answered.
ENOUGH = ("reward", "eval_loss", "eval_quality", "grad_norm", "loss_scale")
CLOCKS = frozenset(("time", "wall_time", "walltime", "timestamp", "elapsed", "time_elapsed", "total_time", "t"))
# Two columns whose values differ by less in every row are one loss under two names.
ALIKE = 1e-2
# A sum of printed numbers differs from the printed total by their rounding.
ROUNDING = 5e-3
SUMMED_SHARE = SHARE_MOST
# More gradient norms than this are those of layers.
MAX_NORMS = 3
# How clearly a series without any name must fall to be taken for a loss: one in 20 without a trend does.
TREND_Z, LEVELS, MIN_ROWS = 1.64, 20, 8
# What a series without any name may be instead, and the course by which it was chosen.
OTHERWISE = {"loss": ("reward", "it falls"), "reward": ("loss", "it rises from below 0 to above")}
MIN_COUNTED = 3  # values that rise by themselves in fewer rows prove no counter
_EXPORT = frozenset(("wall_time", "step", NAMELESS))
_TAG = re.compile(r"[-_]tag[-_](.+)")


class Choice(Struct, frozen=True):
    """What a run is judged by.

    Attributes:
        names: what the columns mean, with what was chosen.
        notes: what was chosen, of what, and how to choose another one.
        kind: `adversarial`, `policy` or `value` for a loss that moves by nature; else nothing.
        enough: whether something of the run can be judged.
        ranking: the candidates for the training loss.
        readings: what each column holds.
    """

    names: Names
    notes: tuple[str, ...] = ()
    kind: str = ""
    enough: bool = True
    ranking: Ranking = field(default_factory=Ranking)
    readings: Mapping[str, ColumnRole] = field(default_factory=dict)

    def reading_as(self, metric: str, column: str, note: str = "") -> Choice:
        """Return this choice with a column for a metric."""
        notes = (*self.notes, note) if note else self.notes
        return replace(self, names=self.names.with_column(metric, column), notes=notes)


def choose(table: Table, names: Names, *, alone: bool) -> Choice:
    """Choose what to judge a run by: the training loss, and the reward, the held-out measures and the gradient's norm.

    `alone` says whether the table is the whole run; in one of several files held-out data prove no training.
    """
    choice = Choice(names, readings=readings(table, names))
    if one := one_series(table, names):
        column, metric, note, kind = one
        return replace(choice.reading_as(metric, column, note), kind=kind, enough=metric in ("loss", *ENOUGH))
    choice = _with_reward(table, choice)
    asked = names.asked.get("loss")
    if asked is not None:
        choice = replace(choice, kind=_kind(choice.readings.get(asked), choice.readings))
        return _with_measures(table, choice, asked)
    choice = replace(choice, ranking=rank(_losses(table, choice)))
    if any(names.role(name) == "loss" for name in table.columns):
        return _with_known_loss(table, choice)
    return _with_unknown_loss(table, choice, alone=alone)


def _with_known_loss(table: Table, choice: Choice) -> Choice:
    """Choose among columns with known names of the training loss."""
    ranked = [one.column for one in choice.ranking.candidates]
    if not ranked:
        return choice
    known = [name for name in ranked if choice.names.role(name)]
    if known and ranked[0] != min(known, key=lambda name: choice.names.match(name).priority):
        choice = choice.reading_as("loss", ranked[0])
    if choice.ranking.is_close and not _are_alike(table, *ranked[:2]):
        taken, other = (clean(name, 60) for name in ranked[:2])
        note = f"The training loss is read from {taken}; it could be {other} as well: {_option('loss', ranked[1])}."
        choice = replace(choice, notes=(*choice.notes, note))
    return _with_measures(table, choice, ranked[0])


def _with_unknown_loss(table: Table, choice: Choice, *, alone: bool) -> Choice:
    """Choose the column that is most like a training loss, if there is one."""
    ranked = choice.ranking.candidates
    held = table.columns[ranked[0].column] if ranked else None
    if held is None or ("reward" in _known(table, choice.names) and held.count < MIN_ROWS):
        return _without_loss(table, choice, alone=alone)
    best = ranked[0].column
    choice = choice.reading_as("loss", best, _note("loss", [one.column for one in ranked]))
    choice = replace(choice, kind=_kind(choice.readings[best], choice.readings))
    return _with_measures(table, choice, best)


def _without_loss(table: Table, choice: Choice, *, alone: bool) -> Choice:
    """Choose what else can be judged where no training loss is logged."""
    choice = _with_measures(table, replace(choice, ranking=Ranking()), "")
    others = [metric for metric in ENOUGH if metric in _known(table, choice.names)]
    if not alone or not others or not _has_course(table, choice.names):
        return replace(choice, enough=False)
    what = "training loss" if {"eval_loss", "eval_quality"} & set(others) else "loss"
    notes = [f"No {what} is logged: the run is judged by {', '.join(others)}."]
    for name, column in table.columns.items():
        if column and choice.names.role(name) == "reward" and column.count >= MIN_ROWS and is_constant(column):
            notes.append(f"{clean(name, 60)} is {column.held[0]:g} in all {column.count:,} rows: nothing was learned.")
    return replace(choice, notes=(*choice.notes, *notes))


def _losses(table: Table, choice: Choice) -> list[Sighting]:
    """Return the columns that could be the training loss."""
    course = _has_course(table, choice.names)
    held = {}
    for name, reading in choice.readings.items():
        column = table.columns[name]
        role = choice.names.role(name)
        if not can_be_loss(reading) or not column or not column.count:
            continue
        if role == "loss" or (not role and not column.coded and (course or reading.named)):
            held[name] = column
    total = _total(held)
    summed = dict.fromkeys(held, -1 if total else 0) | ({total: 1} if total else {})
    return [_sighting(name, column, choice, summed[name]) for name, column in held.items()]


def _sighting(name: str, column: Column, choice: Choice, summed: int = 0) -> Sighting:
    meaning = choice.names.match(name)
    alias = meaning.priority if meaning.role else None
    return Sighting(name, choice.readings[name], alias, column.count, not is_constant(column), summed)


def _total(held: Mapping[str, Column]) -> str:
    """Return the column that is the sum of all others in nearly every row; nothing if there is none."""
    if len(held) < 3 or len({column.count for column in held.values()}) > 1:
        return ""
    values = np.array([column.held for column in held.values()])
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(values.sum(axis=0) - 2 * values)
        fits = np.mean(apart <= ROUNDING * np.abs(values).max(axis=0), axis=1)
    best = int(np.argmax(fits))
    return list(held)[best] if fits[best] >= SUMMED_SHARE else ""


def _with_reward(table: Table, choice: Choice) -> Choice:
    """Add the column that is most like a reward, if none has a known name."""
    if "reward" in choice.names.asked or "reward" in _known(table, choice.names):
        return choice
    found = _unknown(table, choice, Role.REWARD)
    found = {name: column for name, column in found.items() if choice.readings[name].order < NO_OUTCOME}
    known_loss = any(choice.names.role(name) == "loss" for name in table.columns)
    if not _has_course(table, choice.names) or (known_loss and all(choice.readings[name].held_out for name in found)):
        return choice
    ranked = rank([_sighting(name, column, choice) for name, column in found.items()]).candidates
    if not ranked:
        return choice
    return choice.reading_as("reward", ranked[0].column, _note("reward", [one.column for one in ranked]))


def _with_measures(table: Table, choice: Choice, loss: str) -> Choice:
    """Add what is logged beside the training loss under unknown names: held-out data and the gradient's norm."""
    known, names, readings_ = {*_known(table, choice.names), *choice.names.asked}, choice.names, choice.readings
    evals = [
        name for name in table.columns if names.match(name).role == "eval_loss" and names.match(name).priority >= 0
    ]
    batches = {core(name) for name in evals if of.BATCHES & set(words(name))}
    means = [name for name in evals if core(name) in batches and of.MEANS & set(words(name))]
    if means:  # over an evaluation, where the losses of its batches are logged as well
        choice = choice.reading_as("eval_loss", means[0])
    if "eval_loss" not in known and (beside := _eval_loss(table, choice, loss)):
        choice = choice.reading_as("eval_loss", beside)
    qualities = [name for name in _unknown(table, choice, Role.QUALITY) if readings_[name].held_out]
    qualities = [name for name in qualities if readings_[name].better == HIGHER]
    if "eval_quality" not in known and qualities:
        choice = choice.reading_as("eval_quality", min(qualities, key=lambda name: readings_[name].order))
    gradients = _unknown(table, choice, Role.GRADIENT)
    norms = [name for name, column in gradients.items() if readings_[name].named and not is_constant(column)]
    if "grad_norm" not in known and 0 < len(norms) <= MAX_NORMS:  # more are those of layers
        choice = choice.reading_as("grad_norm", min(norms, key=lambda name: len(words(name))))
    return choice


def _eval_loss(table: Table, choice: Choice, loss: str) -> str:
    """Return the same loss on held-out data: its name is that of the training loss but for the side, or a plain one."""
    free = {**_unknown(table, choice, Role.HELD_OUT_LOSS), **_unknown(table, choice, Role.PART)}
    found = [name for name in free if choice.readings[name].held_out]
    # Data to validate on come before data to test on.
    found.sort(key=lambda name: ("test" in words(name), choice.readings[name].order))
    same = [name for name in found if loss and core(name) == core(loss)]
    plain = [name for name in found if choice.readings[name].order <= PLAIN or not loss]
    return next(iter([*same, *plain]), "")


def _unknown(table: Table, choice: Choice, role: Role) -> dict[str, Column]:
    """Return the columns of a role that hold values and carry no metric yet."""
    return {
        name: column
        for name, column in table.columns.items()
        if choice.readings[name].role is role
        and column
        and column.count
        and not column.coded
        and not choice.names.role(name)
    }


def _known(table: Table, names: Names) -> frozenset[str]:
    """Return the metrics of which a column with a known name holds anything."""
    return frozenset(names.role(name) for name, column in table.columns.items() if column is None or column.count)


def _has_course(table: Table, names: Names) -> bool:
    """Whether rows follow each other in time, unlike those of results or of samples."""
    # A list is a series by itself, and a text was written line by line.
    in_time = table.format.startswith(("json columns", "text"))
    return in_time or any(names.counts(name) or normalize(name) in CLOCKS for name in table.columns)


def _kind(best: ColumnRole | None, found: Mapping[str, ColumnRole]) -> str:
    """Return how a loss moves by nature, by its own name, or as one of the losses of adversaries or of an actor."""
    kinds = {reading.kind for reading in found.values() if reading.loss}
    if ADVERSARIAL in kinds:
        return ADVERSARIAL
    if best and best.kind:
        return best.kind
    return POLICY if {POLICY, VALUE} <= kinds else ""


def _are_alike(table: Table, first: str, second: str) -> bool:
    """Whether two columns hold the same values wherever both were logged."""
    one, other = table.columns[first], table.columns[second]
    if not one or not other:
        return False
    both = one.mask & other.mask
    return bool(np.allclose(one.values[both], other.values[both], rtol=ALIKE, equal_nan=True))


def _note(metric: str, ranked: Sequence[str]) -> str:
    """Return the note on a choice: which column, and how to take another."""
    best, *others = ranked
    text = f"No column has a known name of the {metric}: {clean(best, 60)} is read as it"
    if not others:
        return f"{text}. If it is another one, name it: --column {metric}=NAME."
    listed = first_few([clean(name, 60) for name in others], LISTED)
    return f"{text}, not {listed}. To take another one: {_option(metric, others[0])}."


def _option(metric: str, column: str) -> str:
    return f"--column {shlex.quote(f'{metric}={clean(column, 60)}')}"


def one_series(table: Table, names: Names) -> tuple[str, str, str, str] | None:
    """Return the one series of an export that does not say what it is: its column, metric, the note, and its kind.

    The names of its file and folder tell, else its course.
    """
    only = next((name for name in table.columns if normalize(name) == NAMELESS), "")
    column = table.columns.get(only)
    if not column or not column.count or not _EXPORT.issuperset(map(normalize, table.columns)):
        return None
    if only in names.asked.values():
        return None
    *folders, file = re.split(r"[\\/]", table.path)
    stem = file.removesuffix(".gz").removesuffix(".csv")
    # A tag in the file's name, the file, its folder; of a folder only a plain name counts.
    for title in (*_TAG.findall(stem)[:1], stem, *folders[-1:]):
        reading = describe_name(title)
        outcome = reading.loss or reading.role is Role.REWARD
        if outcome and title in folders[-1:] and reading.order > PLAIN:
            continue
        metric, kind = names.metric(title), ""
        if not metric and reading.loss:
            metric, kind = "eval_loss" if reading.held_out else "loss", reading.kind
        elif not metric and outcome:
            metric = "reward"
        if metric:
            return only, metric, f"Its one series is called {clean(title, 60)}: read as the {metric}.", kind
    metric = _by_course(column)
    if not metric:
        return None
    other, shape = OTHERWISE[metric]
    text = f"Nothing says what its one series is: read as the {metric}, since {shape}. "
    return only, metric, f"{text}If it is no {metric}: --column {other}={only}.", ""


def _by_course(column: Column) -> str:
    """Return what a series can be: a loss falls and is positive; only a reward rises from below 0 to above."""
    values = column.held[np.isfinite(column.held)]
    if len(values) < MIN_ROWS:
        return ""
    levels = blocks(values, min(LEVELS, len(values) // 2))[0]
    trend = kendall_z(levels)
    if trend < -TREND_Z and float(values.min()) >= 0:
        return "loss"
    if trend > TREND_Z and values[0] < 0 < levels[-1]:
        return "reward"
    return ""


def with_total(table: Table, names: Names) -> tuple[Table, Names, frozenset[str], tuple[str, ...]]:
    """Return a table and names with the sum of its loss's parts, if it has parts and no loss; the parts, and notes.

    Only Ultralytics logs parts that carry their weights already. What weights the terms of a physics-informed network,
    an encoder-decoder or a pair of adversaries have is not in the log, so their sum would be a guess.
    """
    known = {names.role(name) for name in table.columns} | names.asked.keys()
    summed: list[str] = []
    notes = []
    for metric in ("loss", "eval_loss"):
        parts = [name for name in table.columns if part_of(name) == metric]
        held = [*filter(None, (table.columns[name] for name in parts))]
        total = " + ".join(name.strip() for name in parts)
        asked = clean(total, SHOWN) in names.asked.values()
        if len(held) < 2 or (metric in known and not asked):
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.sum([part.values for part in held], axis=0)
        masks = [part.logged for part in held if part.logged is not None]  # not logged where any part is not
        example = next((part.bad_example for part in held if part.bad), "")
        sums = Column(values, np.all(masks, axis=0) if masks else None, sum(part.bad for part in held), example)
        table = replace(table, columns={**table.columns, total: sums})
        if asked:
            names = names.spelled_as_in(table.columns)
            continue
        names = names.with_column(metric, total)
        summed += parts
        notes.append(f"No column holds the {metric}: it is the sum of its parts, {clean(total, 120)}.")
    return table, names, frozenset(summed), tuple(notes)


def readings(table: Table, names: Names) -> Readings:
    """Return what each column holds; a column that the user named is what the user says."""
    asked = {column: metric for metric, column in names.asked.items()}
    found = {}
    for name, column in table.columns.items():
        if name in asked:
            found[name] = describe_name(asked[name])
        else:
            found[name] = _by_values(describe_name(name), name, column)
    for place in (_second_letter, _unconfirmed, _parts, _evaluated):
        found |= place(found, table)
    return found


def is_constant(column: Column) -> bool:
    """Return whether all values of a column are the same."""
    held = column.held
    # The first few show it of nearly every column.
    return bool((held[:SOME] == held[0]).all() and (held == held[0]).all())


def _by_values(reading: ColumnRole, name: str, column: Column | None) -> ColumnRole:
    """Return the reading of a name, corrected by what its column holds."""
    if not column or column.coded or not column.count:
        return reading
    if reading is UNKNOWN:
        return reading._replace(role=Role.COUNTER) if _counts(column) else reading
    # What a printed configuration calls its loss: `RPN_LOSS_TYPE`, once or the same each time.
    if reading.loss and not reading.metric and name.isupper() and "_" in name and is_constant(column):
        return reading._replace(role=Role.SETTING, loss=False)
    return reading


def _counts(column: Column) -> bool:
    """Whether a column holds whole numbers that only rise."""
    held = column.held
    if len(held) < MIN_COUNTED or not np.isfinite(held).all() or (held != np.floor(held)).any():
        return False
    rises = np.diff(held)
    return bool((rises >= 0).all()) and 2 * int(np.count_nonzero(rises)) > len(rises)


def _second_letter(found: Mapping[str, ColumnRole], _: Table) -> Readings:
    """Settle `v_loss`: of the value function beside a policy or a reward, of validation beside a training loss."""
    letters = {name: one for name, one in found.items() if one.loss and set(words(name)) == {"v", "loss"}}
    others = [found[name] for name in found.keys() - letters.keys()]
    trained = any(one.loss and not one.held_out for one in others)
    if not trained or not {one.role for one in others}.isdisjoint((Role.POLICY, Role.REWARD)):
        return {}
    return {
        name: one._replace(role=Role.HELD_OUT_LOSS, held_out=True, kind="", order=PLAIN)
        for name, one in letters.items()
    }


def _unconfirmed(found: Mapping[str, ColumnRole], table: Table) -> Readings:
    """Settle names that mean something only beside others: `D_A`, `total`, `score`, `r`."""
    keys = {normalize(name) for name in table.columns}
    settled: Readings = {}
    for name, reading in found.items():
        if reading.loss and not reading.named and not _is_confirmed(name, reading, found):
            settled[name] = UNKNOWN
        elif _is_score(reading) and not keys & EPISODES:
            quality = reading._replace(role=Role.QUALITY, better=HIGHER)
            settled[name] = UNKNOWN if name == "r" else quality
    return settled


def _is_score(reading: ColumnRole) -> bool:
    """Whether a column is called a score, which is a reward beside episodes and a measure of quality elsewhere."""
    return reading.role is Role.REWARD and not (reading.named or reading.metric) and reading.order < NO_OUTCOME


def _is_confirmed(name: str, reading: ColumnRole, found: Mapping[str, ColumnRole]) -> bool:
    """Whether `D_A` has its `G_A` or `G` beside it, and `total` what it is the total of."""
    if name.lower() == "total":
        return any(other != name and (found[other].loss or normalize(other) in BOXES) for other in found)
    return not reading.term or any(other.term not in ("", reading.term) for other in found.values())


def _parts(found: Mapping[str, ColumnRole], _: Table) -> Readings:
    """Settle which losses are parts, and which errors are measures: those beside a whole loss of the same side."""
    whole = {reading.held_out for reading in found.values() if reading.loss and reading.order <= PLAIN}
    settled: Readings = {}
    for name, reading in found.items():
        if reading.loss and not reading.metric and reading.held_out in whole:
            spelled = set(words(name))
            if spelled & DISTANCES and "loss" not in spelled:
                settled[name] = reading._replace(role=Role.QUALITY, better=LOWER, loss=False)
            elif reading.order in (PART, AUXILIARY) and not reading.kind and not spelled & BITS:
                settled[name] = reading._replace(role=Role.PART)
    return settled


def _evaluated(found: Mapping[str, ColumnRole], table: Table) -> Readings:
    """Settle which measures of quality are of held-out data: those that are never logged together with the loss."""
    qualities = [name for name, reading in found.items() if reading.role is Role.QUALITY and not reading.held_out]
    losses = [column for name, one in found.items() if one.role is Role.LOSS and (column := table.columns[name])]
    if not qualities or not losses:
        return {}
    rows = np.any([column.mask for column in losses], axis=0)
    columns = {name: table.columns[name] for name in qualities}
    apart = [name for name, column in columns.items() if column and column.count and not (rows & column.mask).any()]
    return {name: found[name]._replace(held_out=True) for name in apart}
