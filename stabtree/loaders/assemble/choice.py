"""Which series a run is judged by: the training loss with what is logged beside it, or what there is without one."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_HALF
from stabtree.common.stats import SOME, are_whole, blocks, is_counter, is_measured, kendall_z
from stabtree.common.text import clean, first_few
from stabtree.loaders.assemble.steps import of_role
from stabtree.loaders.table import Column
from stabtree.metrics import role as roles
from stabtree.metrics import vocabulary as of
from stabtree.metrics.metric import Role
from stabtree.metrics.names import NAMELESS, SHOWN, part_of
from stabtree.metrics.role import Ranking, Sighting, core, describe_name, rank
from stabtree.metrics.table import normalize, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from stabtree.common.lazy import Floats
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names
    from stabtree.metrics.role import ColumnRole

    # A metric, the name of its column, what it is, the column, and those that it was made of.
    Derived = tuple[str, str, str, Column, Sequence[str]]

LISTED = 4
WHAT = {"loss": "training loss", "eval_loss": "held-out loss", "eval_quality": "measure of quality"}
# By these alone some of the questions can be answered.
ENOUGH = ("reward", "eval_loss", "eval_quality", "grad_norm", "loss_scale", "kl", "approx_kl", "value_loss")
CLOCKS = frozenset(("time", "wall_time", "walltime", "timestamp", "elapsed", "time_elapsed", "total_time", "t"))
ALIKE = 1e-2  # two columns whose values differ by less in every row are one loss under two names
MAX_NORMS = 3  # more gradient norms are those of layers
# How clearly a series without any name must fall to be taken for a loss: one in 20 without a trend does.
TREND_Z, LEVELS, MIN_ROWS = 1.64, 20, 8
MIN_COUNTED = 3  # fewer values that rise prove no counter, and fewer evaluations judge no policy
_EXPORT = frozenset(("wall_time", "step", NAMELESS))
_TAG = re.compile(r"[-_]tag[-_](.+)")


class Choice(Struct, frozen=True):
    """What a run is judged by."""

    names: Names  # what the columns mean, with what was chosen
    readings: Mapping[str, ColumnRole]  # what each column holds
    notes: tuple[str, ...] = ()  # what was chosen, of what, and how to choose another one
    kind: str = ""  # `adversarial`, `policy` or `value` for a loss that moves by nature; else nothing
    enough: bool = True  # whether something of the run can be judged
    ranking: Ranking = Ranking()  # the candidates for the training loss

    def reading_as(self, metric: str, column: str, note: str = "") -> Choice:
        """Return this choice with a column for a metric."""
        notes = (*self.notes, *filter(None, [note]))
        return replace(self, names=self.names.with_column(metric, column), notes=notes)


def choose(table: Table, names: Names, *, alone: bool) -> Choice:
    """Choose what to judge a run by: the training loss, and the reward, the held-out measures and the gradient's norm.

    `alone` says whether the table is the whole run; in one of several files held-out data prove no training.
    """
    choice = Choice(names, readings(table, names))
    if one := one_series(table, names):
        column, metric, note, kind = one
        return replace(choice.reading_as(metric, column, note), kind=kind, enough=metric in ("loss", *ENOUGH))
    choice = _with_reward(table, choice)
    loss, has_known = names.asked.get("loss", ""), any(names.role(name) == "loss" for name in table.columns)
    if not loss:
        choice = replace(choice, ranking=rank(_losses(table, choice)))
        ranked = [candidate.column for candidate in choice.ranking.candidates]
        best = next((table.columns[name] for name in ranked), None)
        few = "reward" in _known(table, choice.names) and best is not None and best.count < MIN_ROWS
        if not has_known and (few or not ranked):
            return _without_loss(table, replace(choice, ranking=Ranking()), alone=alone)
        loss = next(iter(ranked), "")
        if not has_known:
            choice = choice.reading_as("loss", loss, _note("loss", ranked))
        elif loss:
            known = [name for name in ranked if names.role(name)]
            if known and loss != min(known, key=lambda name: names.match(name).priority):
                choice = choice.reading_as("loss", loss)
            if choice.ranking.margin < roles.CLOSE and not _are_alike(table, *ranked[:2]):
                choice = replace(choice, notes=(*choice.notes, _note("loss", ranked[:2])))
    if names.asked.get("loss") or not has_known:  # how it moves by nature: as one of adversaries or of an actor does
        kinds = {reading.kind for reading in choice.readings.values() if reading.loss}
        kind = choice.readings.get(loss, roles.UNKNOWN).kind
        if roles.ADVERSARIAL in kinds:
            kind = roles.ADVERSARIAL
        choice = replace(choice, kind=kind)
    return _with_measures(table, choice, loss)


def _without_loss(table: Table, choice: Choice, *, alone: bool) -> Choice:
    """Choose what else can be judged where no training loss is logged."""
    choice = _with_measures(table, choice, "")
    names, read = choice.names, choice.readings
    if not _known(table, names) & {"reward", "eval_loss", "eval_quality"}:
        measured = [name for name, one in read.items() if one.better and one.role in (Role.QUALITY, Role.OTHER)]
        measures = [name for name in measured if is_usable(table.columns[name])]
        measures.sort(key=lambda name: (read[name].better == roles.LOWER, read[name].order))
        if measures:
            metric = "eval_loss" if read[measures[0]].better == roles.LOWER else "eval_quality"
            choice = choice.reading_as(metric, measures[0], _note(metric, measures))
    others = [metric for metric in ENOUGH if metric in _known(table, choice.names)]
    if choice.names.asked.keys().isdisjoint(others) and not (alone and others and _has_course(table, names)):
        return replace(choice, enough=False)
    what = "training loss" if {"eval_loss", "eval_quality"} & set(others) else "loss"
    note = f"No {what} is logged: the run is judged by {', '.join(others)}."
    return replace(choice, notes=(*choice.notes, note))


def _losses(table: Table, choice: Choice) -> list[Sighting]:
    """Return the columns that could be the training loss."""
    course, sightings = _has_course(table, choice.names), dict[str, Sighting]()
    for name, reading in choice.readings.items():
        column, role = table.columns[name], choice.names.role(name)
        nameable = not role and bool(column and not column.coded) and (course or reading.named)
        if column and column.count and roles.can_be_loss(reading) and (role == "loss" or nameable):
            sightings[name] = _sighting(name, column, choice)
    # `train_loss` beside `loss` says of which data it is; beside a `val_loss` it is evaluated as that is.
    evaluated = {core(name) for name, reading in choice.readings.items() if reading.loss and reading.held_out}
    known = [one for one in sightings.values() if one.alias is not None and core(one.name) not in evaluated]
    plain = {core(one.name): one for one in reversed(known) if of.TRAIN.isdisjoint(words(one.name))}
    for one in known:
        other = plain.get(core(one.name))
        if other and not of.TRAIN.isdisjoint(words(one.name)) and 1 < one.logged >= other.logged / 2:
            sightings[one.name] = one._replace(alias=min(one.alias or 0, (other.alias or 0) - 1))
    return list(sightings.values())


def _sighting(name: str, column: Column, choice: Choice) -> Sighting:
    meaning = choice.names.match(name)
    alias = meaning.priority if meaning.role else None
    return Sighting(name, choice.readings[name], alias, column.count, not is_constant(column))


def _with_reward(table: Table, choice: Choice) -> Choice:
    """Add the column that is most like a reward, if none has a known name; the same of evaluations is better."""
    names, read = choice.names, choice.readings
    if "reward" in names.asked:
        return choice
    rewards = _unknown(table, choice, Role.REWARD)
    rewards = {name: column for name, column in rewards.items() if read[name].order < roles.NO_OUTCOME}
    ranked = [name for name, _ in of_role(table, "reward", names) if is_usable(table.columns[name])]
    if not ranked:
        known_loss = any(names.role(name) == "loss" for name in table.columns)
        if not _has_course(table, names) or (known_loss and all(read[name].held_out for name in rewards)):
            return choice
        ranked = [one.column for one in rank([_sighting(*item, choice) for item in rewards.items()]).candidates]
    trained = next((column.count for name in ranked if (column := table.columns[name])), 0)
    for name, column in rewards.items() if ranked else ():
        enough = column.count >= max(MIN_COUNTED, SHARE_HALF * trained)
        if read[name].held_out and enough and roles.earned(name) == roles.earned(ranked[0]):
            ranked = list(dict.fromkeys([name, *ranked]))
            break
    if not ranked or names.role(ranked[0]) == "reward":
        return choice
    # That a policy is judged by its evaluations is no guess between columns.
    note = _note("reward", ranked)
    return choice.reading_as("reward", ranked[0], note * (not read[ranked[0]].held_out))


def _with_measures(table: Table, choice: Choice, loss: str) -> Choice:
    """Add what is logged beside the training loss under unknown names: held-out data and the gradient's norm."""
    known, names, read = {*_known(table, choice.names), *choice.names.asked}, choice.names, choice.readings
    evals = [name for name in table.columns if names.role(name) == "eval_loss" and names.match(name).priority >= 0]
    batches = {core(name) for name in evals if of.BATCHES & set(words(name))}
    means = [name for name in evals if core(name) in batches and of.MEANS & set(words(name))]
    if means:  # over an evaluation, where the losses of its batches are logged as well
        choice = choice.reading_as("eval_loss", means[0])
    if "eval_loss" not in known:
        free = {**_unknown(table, choice, Role.HELD_OUT_LOSS), **_unknown(table, choice, Role.PART)}
        # The name of the training loss but for the side, or a plain one. Data to validate on come before data to test.
        held_out = [name for name in free if read[name].held_out]
        held_out.sort(key=lambda name: ("test" in words(name), read[name].order))
        same = [name for name in held_out if loss and core(name) == core(loss)]
        plain = [name for name in held_out if read[name].order <= roles.PLAIN or not loss]
        for name in [*same, *plain][:1]:
            choice = choice.reading_as("eval_loss", name)
    free = _unknown(table, choice, Role.QUALITY)
    qualities = [name for name in free if read[name].held_out and read[name].better == roles.HIGHER]
    if "eval_quality" not in known and qualities:
        choice = choice.reading_as("eval_quality", min(qualities, key=lambda name: read[name].order))
    free = _unknown(table, choice, Role.GRADIENT)
    norms = [name for name, column in free.items() if read[name].named and not is_constant(column)]
    if "grad_norm" not in known and 0 < len(norms) <= MAX_NORMS:
        choice = choice.reading_as("grad_norm", min(norms, key=lambda name: len(words(name))))
    return choice


def _unknown(table: Table, choice: Choice, role: Role) -> dict[str, Column]:
    """Return the columns of a role that hold values and carry no metric yet."""
    of_role = {name: table.columns[name] for name, reading in choice.readings.items() if reading.role is role}
    usable = {name: column for name, column in of_role.items() if column and is_usable(column)}
    return {name: column for name, column in usable.items() if not choice.names.role(name)}


def _known(table: Table, names: Names) -> frozenset[str]:
    """Return the metrics of which a column with a known name holds anything."""
    return frozenset(names.role(name) for name, column in table.columns.items() if column is None or column.count)


def is_usable(column: Column | None) -> bool:
    """Return whether a column holds numbers, so that it can be read as a metric."""
    return column is not None and column.count > 0 and not column.coded


def _has_course(table: Table, names: Names) -> bool:
    """Whether rows follow each other in time, unlike those of results or of samples, which have labels."""
    # A list is a series by itself, and a text was written line by line.
    if table.format.startswith(("json columns", "text")):
        return True
    if any(names.counts(name) or normalize(name) in CLOCKS for name in table.columns):
        return True
    labelled = any(column is None or column.coded or column.bad for column in table.columns.values())
    described = map(describe_name, table.columns)
    rewarded = any(like.role is Role.REWARD and (like.named or like.metric) for like in described)
    return rewarded and table.rows >= MIN_ROWS and not labelled


def _are_alike(table: Table, first: str, second: str) -> bool:
    """Whether two columns hold the same values wherever both were logged."""
    one, other = table.columns[first], table.columns[second]
    if not one or not other:
        return False
    both = one.mask & other.mask
    return bool(np.allclose(one.values[both], other.values[both], rtol=ALIKE, equal_nan=True))


def _note(metric: str, ranked: Sequence[str]) -> str:
    """Return the note on a choice: which column, and how to take another."""
    best, *others = (clean(name, 60) for name in ranked)
    text = f"Using {best} as the {WHAT.get(metric, metric)}"
    if not others:
        return f"{text}; override with --column {metric}=NAME."
    return f"{text}, not {first_few(others, LISTED)}; override with --column {shlex.quote(f'{metric}={others[0]}')}."


def one_series(table: Table, names: Names) -> tuple[str, str, str, str] | None:
    """Return the one series of an export that does not say what it is: its column, metric, the note, and its kind.

    The names of its file and folder tell, else its course: a loss falls and is positive; only a reward rises from below
    0 to above.
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
        reading, metric, kind = describe_name(title), names.metric(title), ""
        if not metric:
            kind = reading.kind
            if reading.role is Role.REWARD:
                metric = "reward"
            elif reading.loss:
                metric = ("loss", "eval_loss")[reading.held_out]
        if metric and not (title in folders[-1:] and reading.order > roles.PLAIN):
            return only, metric, f"Its one series is called {clean(title, 60)}: read as the {metric}.", kind
    values = column.held[np.isfinite(column.held)]
    if len(values) < MIN_ROWS:
        return None
    levels = blocks(values, min(LEVELS, len(values) // 2))[0]
    trend = kendall_z(levels)
    if trend < -TREND_Z and float(values.min()) >= 0:
        metric, other, shape = "loss", "reward", "it falls"
    elif trend > TREND_Z and values[0] < 0 < levels[-1]:
        metric, other, shape = "reward", "loss", "it rises from below 0 to above"
    else:
        return None
    text = f"Nothing says what its one series is: read as the {metric}, since {shape}. "
    return only, metric, f"{text}If it is no {metric}: --column {other}={only}.", ""


def with_derived(table: Table, names: Names) -> tuple[Table, Names, Mapping[str, str], tuple[str, ...]]:
    """Return a table and names with metrics that follow from other columns; these with the metric, and notes."""
    columns = {name: column for name, column in table.columns.items() if column and is_usable(column)}
    known = {names.role(name) for name in table.columns} | names.asked.keys()
    parts, notes = dict[str, str](), []
    for metric, label, why, new, own in _derived(columns, known):
        asked = clean(label, SHOWN) in names.asked.values()
        if metric in known and not asked:
            continue
        table = replace(table, columns={**table.columns, label: new})
        if asked:
            names = names.spelled_as_in(table.columns)
            continue
        known.add(metric)
        names = names.with_column(metric, label)
        parts |= {name: metric for name in own if name != label}
        notes.append(f"No column holds the {metric}: it is the {why}, {clean(label, 120)}.")
    return table, names, parts, tuple(notes)


def _derived(columns: Mapping[str, Column], known: Set[str]) -> Iterator[Derived]:
    """Yield the metrics that follow from columns: a sum of parts, a mean over sets, a logarithm, a root.

    Only Ultralytics logs parts that carry their weights already. What weights the terms of a physics-informed network,
    an encoder-decoder or a pair of adversaries have is not in the log, so their sum would be a guess.
    """
    read = {name: describe_name(name) for name in columns}
    for metric, held_out in (("loss", False), ("eval_loss", True)):
        parts = [name for name in columns if part_of(name) == metric]
        losses = [name for name, one in read.items() if one.loss and one.held_out is held_out]
        perplexity = next((name for name in columns if _is_perplexity(name, columns[name], held_out=held_out)), "")
        if len(parts) > 1:
            label = " + ".join(name.strip() for name in parts)
            yield metric, label, "sum of its parts", _sum([columns[name] for name in parts]), parts
        elif perplexity and not losses and "reward" not in known:
            new = _computed(columns[perplexity], np.log)
            yield metric, f"log({perplexity.strip()})", "logarithm of the perplexity", new, [perplexity]
    for metric, sets in _sets(read):
        yield metric, sets[0], f"first of {len(sets)} held-out sets", columns[sets[0]], sets
    for name in filter(roles.is_squared_norm, columns):
        yield "grad_norm", f"sqrt({name})", "root of its square", _computed(columns[name], np.sqrt), [name]


def _sets(read: Mapping[str, ColumnRole]) -> Iterator[tuple[str, list[str]]]:
    """Yield the losses of several held-out sets, by words that no loss of training has, and their qualities."""
    losses = [name for name, one in read.items() if one.role is Role.HELD_OUT_LOSS]
    trained = {core(name) for name, one in read.items() if one.loss and not one.held_out}
    sets = {core(name): name for name in losses if read[name].order == roles.PART and not read[name].kind}
    sets = {own: name for own, name in sets.items() if own not in trained and own.isdisjoint(of.TERMS)}
    if len(sets) < 2 or len(sets) < len(losses):
        return
    yield "eval_loss", [*sets.values()]
    qualities: dict[frozenset[str], list[str]] = {}
    for name, one in read.items():
        if one.role is Role.QUALITY and one.held_out and one.better == roles.HIGHER:
            own = next((own for own in sets if own < core(name)), frozenset())
            qualities.setdefault(core(name) - own, []).append(name)
    if several := [group for group in qualities.values() if len(group) == len(sets)]:
        yield "eval_quality", several[0]


def _computed(column: Column, function: Callable[[Floats], Floats]) -> Column:
    with np.errstate(all="ignore"):  # NaN and infinity are data here
        return replace(column, values=function(column.values))


def _sum(parts: Sequence[Column]) -> Column:
    """Return the sum of some columns; it is not logged where any of them is not."""
    logged = None if all(part.logged is None for part in parts) else np.all([part.mask for part in parts], axis=0)
    example = next((part.bad_example for part in parts if part.bad), "")
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.sum([part.values for part in parts], axis=0)
    return Column(values, logged, sum(part.bad for part in parts), example)


def _is_perplexity(name: str, column: Column, *, held_out: bool) -> bool:
    """Whether a column is a perplexity, which is 1 at least, of one side; one in few of the rows is evaluated."""
    side = describe_name(name).held_out or column.count * roles.DENSER < len(column.values)
    held = column.held
    return not of.PERPLEXITY.isdisjoint(words(name)) and side is held_out and bool((held[np.isfinite(held)] >= 1).all())


def is_constant(column: Column) -> bool:
    """Return whether all values of a column are the same."""
    held = column.held
    # The first few show it of nearly every column.
    return bool((held[:SOME] == held[0]).all() and (held == held[0]).all())


def readings(table: Table, names: Names) -> dict[str, ColumnRole]:
    """Return what each column holds, by its name, its values and what stands beside it; first as the user says."""
    asked = {column: metric for metric, column in names.asked.items()}
    read = {name: describe_name(asked.get(name, name)) for name in table.columns}
    for name, column in table.columns.items():
        if read[name] is roles.UNKNOWN and name not in asked and column and is_usable(column):
            held = column.held
            if len(held) >= MIN_COUNTED and np.isfinite(held).all() and are_whole(held) and is_counter(held):
                read[name] = read[name]._replace(role=Role.COUNTER)
        elif read[name].role is Role.SETTING and column and is_usable(column) and is_measured(column.held):
            read[name] = roles.UNKNOWN
    for place in (_pairs, _unconfirmed, _parts, _evaluated):
        read |= place(read, table)
    return read


def _pairs(read: Mapping[str, ColumnRole], _: Table) -> dict[str, ColumnRole]:
    """Settle which of two columns of one name is of held-out data: `v_X` beside `X`, `X` beside `train_X`.

    The `v_loss` beside a policy or a reward is that of the value function. A loss beside a `train_loss` may be either.
    """
    spelled = {name: frozenset(words(name)) for name in read}
    plain = {one - of.TRAIN for one in spelled.values()}
    trained = {one - of.TRAIN for one in spelled.values() if one & of.TRAIN}
    validated = {one - of.HELD_OUT - {"v"} for one in spelled.values() if one & (of.HELD_OUT | {"v"})}
    rewarded = not {reading.role for reading in read.values()}.isdisjoint((Role.POLICY, Role.REWARD))
    settled = {}
    for name, reading in read.items():
        own = spelled[name]
        if "v" in own and own - {"v"} in plain and not (reading.loss and rewarded):
            settled[name] = reading._replace(held_out=True)
            if reading.loss:
                settled[name] = reading._replace(role=Role.HELD_OUT_LOSS, held_out=True, kind="", order=roles.PLAIN)
        elif reading.role is Role.QUALITY and own in trained and own not in validated:
            settled[name] = reading._replace(held_out=True)
    return settled


def _unconfirmed(read: Mapping[str, ColumnRole], table: Table) -> dict[str, ColumnRole]:
    """Settle names that mean something only beside others: `D_A`, `total`, `score`, `r`."""
    keys = {normalize(name) for name in table.columns}
    settled = {}
    for name, reading in read.items():
        if reading.loss and not reading.named:
            # `D_A` has its `G_A` or `G` beside it, and `total` what it is the total of.
            confirmed = not reading.term or any(other.term not in ("", reading.term) for other in read.values())
            if name.lower() == "total":
                others = read.keys() - {name}
                confirmed = any(read[other].loss or normalize(other) in of.BOXES for other in others)
            if not confirmed:
                settled[name] = roles.UNKNOWN
        score = (
            reading.role is Role.REWARD and not (reading.named or reading.metric) and reading.order < roles.NO_OUTCOME
        )
        if score and not keys & of.EPISODES:  # a reward beside episodes, and a measure of quality elsewhere
            settled[name] = roles.UNKNOWN if name == "r" else reading._replace(role=Role.QUALITY, better=roles.HIGHER)
    return settled


def _parts(read: Mapping[str, ColumnRole], _: Table) -> dict[str, ColumnRole]:
    """Settle which losses are parts, and which errors are measures: those beside a whole loss of the same side."""
    whole = {reading.held_out for reading in read.values() if reading.loss and reading.order <= roles.PLAIN}
    settled = {}
    for name, reading in read.items():
        if reading.loss and not reading.metric and reading.held_out in whole:
            spelled = set(words(name))
            if spelled & of.DISTANCES and "loss" not in spelled:
                settled[name] = reading._replace(role=Role.QUALITY, better=roles.LOWER, loss=False)
            elif reading.order in (roles.PART, roles.AUXILIARY) and not reading.kind and not spelled & of.BITS:
                settled[name] = reading._replace(role=Role.PART)
    return settled


def _evaluated(read: Mapping[str, ColumnRole], table: Table) -> dict[str, ColumnRole]:
    """Settle which measures of quality are of held-out data: those that are never logged together with the loss."""
    losses = [column for name, one in read.items() if one.role is Role.LOSS and (column := table.columns[name])]
    rows = np.any([column.mask for column in losses], axis=0) if losses else None
    settled = {}
    for name, reading in read.items():
        column = table.columns[name] if reading.role is Role.QUALITY and not reading.held_out else None
        if rows is not None and column and column.count and not (rows & column.mask).any():
            settled[name] = reading._replace(held_out=True)
    return settled
