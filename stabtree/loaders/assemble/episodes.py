"""The steps of episodes, each with its reward, as one row an episode: what was earned in it, and its length."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.loaders.assemble.counters import of_role
from stabtree.loaders.table import Column
from stabtree.metrics.metric import Role
from stabtree.metrics.names import EPOCH, STEP
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import normalize, words
from stabtree.metrics.vocabulary import EPISODES

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

LENGTH = "episode_length"
# So many steps an episode at least, or rows are no steps of it.
MIN_STEPS = 2
# A reward of these words is what was earned so far, or in the whole episode.
_SUMMED = frozenset(("total", "cumulative", "cum", "return", "returns", "score", "sum", "running"))


def per_episode(table: Table, names: Names) -> Table:
    """Return a table with one row an episode, where each row is a step of one; else the table as it is.

    The reward is summed up over the steps of an episode, or its last value taken where it is a sum already; every
    other metric is the mean of what was logged. A value that is not finite makes that of its episode so.
    """
    episodes = [name for name, _ in of_role(table, EPOCH, names) if normalize(name) in EPISODES]
    rewards = [name for name, column in table.columns.items() if column and _is_reward(name, names)]
    steps = [column.values for _, column in of_role(table, STEP, names) if column.logged is None]
    for name in episodes if rewards and names.step_column is None else []:
        column = table.columns[name]
        if column is None or column.logged is not None or not np.isfinite(column.values).all():
            continue
        begins = np.concatenate([[0], np.flatnonzero(np.diff(column.values) != 0) + 1])
        within = any(_counts_within(values, begins) for values in steps)
        if within and table.rows >= MIN_STEPS * len(begins):
            return _summed(table, name, begins, names)
    return table


def _is_reward(name: str, names: Names) -> bool:
    return names.role(name) == "reward" or describe_name(name).role is Role.REWARD


def _counts_within(steps: Floats, begins: Ints) -> bool:
    """Return whether steps begin again with each episode, and nowhere else."""
    back = np.flatnonzero(np.diff(steps) <= 0) + 1
    return len(begins) > 1 and bool(np.isin(back, begins).all()) and len(back) == len(begins) - 1


def _summed(table: Table, episode: str, begins: Ints, names: Names) -> Table:
    columns: dict[str, Column | None] = {}
    for name, column in table.columns.items():
        if column is None or names.role(name) == STEP:
            columns[name] = None
        elif name == episode or column.coded:
            columns[name] = column.pick(np.append(begins[1:], table.rows) - 1)
        elif _is_reward(name, names) and _SUMMED.isdisjoint(words(name)):
            columns[name] = _added(column, begins)
        elif _is_reward(name, names):
            columns[name] = column.pick(np.append(begins[1:], table.rows) - 1)
        else:
            columns[name] = _mean(column, begins)
    columns[LENGTH] = Column(np.diff(np.append(begins, table.rows)).astype(np.float64))
    note = f"Each row is a step of an episode: {table.rows:,} rows are read as {len(begins):,} episodes."
    last = np.append(begins[1:], table.rows) - 1
    saves = tuple(save._replace(row=int(np.searchsorted(last, save.row))) for save in table.saves)
    return replace(table, rows=len(begins), columns=columns, saves=saves, notes=(*table.notes, note))


def _added(column: Column, begins: Ints) -> Column:
    """Return the sum of each episode; nothing is logged where none of its steps holds a value."""
    with np.errstate(over="ignore", invalid="ignore"):
        totals = np.add.reduceat(np.where(column.mask, column.values, 0.0), begins)
    held = np.add.reduceat(column.mask.astype(np.int64), begins)
    return Column(totals, None if held.all() else held > 0)


def _mean(column: Column, begins: Ints) -> Column:
    total = _added(column, begins)
    held = np.add.reduceat(column.mask.astype(np.int64), begins)
    return replace(total, values=total.values / np.maximum(held, 1))
