"""What each column of a table holds: by its name, then by its values and by what is logged beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import SOME
from stabtree.metrics.metric import Role
from stabtree.metrics.role import AUXILIARY, HIGHER, LOWER, NO_OUTCOME, PART, PLAIN, UNKNOWN, describe_name
from stabtree.metrics.table import normalize, words
from stabtree.metrics.vocabulary import BITS, BOXES, DISTANCES, EPISODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names
    from stabtree.metrics.role import ColumnRole

    Readings = dict[str, ColumnRole]

MIN_COUNTED = 3  # values that rise by themselves in fewer rows prove no counter


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
    if reading.loss and not reading.metric and _is_printed_setting(name, column):
        return reading._replace(role=Role.SETTING, loss=False)
    return reading


def _is_printed_setting(name: str, column: Column) -> bool:
    """Whether a column is what a printed configuration calls its loss: `RPN_LOSS_TYPE`, once or the same each time."""
    return name.isupper() and "_" in name and is_constant(column)


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
            settled[name] = _beside_whole(reading, set(words(name)))
    return settled


def _beside_whole(reading: ColumnRole, spelled: set[str]) -> ColumnRole:
    """Return what a loss of these words is beside a whole one."""
    if spelled & DISTANCES and "loss" not in spelled:
        return reading._replace(role=Role.QUALITY, better=LOWER, loss=False)
    if reading.order in (PART, AUXILIARY) and not reading.kind and not spelled & BITS:
        return reading._replace(role=Role.PART)
    return reading


def _evaluated(found: Mapping[str, ColumnRole], table: Table) -> Readings:
    """Settle which measures of quality are of held-out data: those that are never logged together with the loss."""
    qualities = [name for name, reading in found.items() if reading.role is Role.QUALITY and not reading.held_out]
    if not qualities:
        return {}
    rows = _rows([name for name, reading in found.items() if reading.role is Role.LOSS], table)
    settled: Readings = {}
    for name in qualities:
        column = table.columns[name]
        if column and column.count and rows is not None and not (rows & column.mask).any():
            settled[name] = found[name]._replace(held_out=True)
    return settled


def _rows(names: Iterable[str], table: Table) -> np.ndarray | None:
    """Return the rows in which one of these columns has a value, bool (n,); None if there is no such column."""
    masks = [column.mask for name in names if (column := table.columns[name])]
    return np.any(masks, axis=0) if masks else None
