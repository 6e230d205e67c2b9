"""Which of several columns is the one to judge a run by: points for each, and how far the best is ahead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from stabtree.metrics import vocabulary as of
from stabtree.metrics.metric import Role
from stabtree.metrics.role import ADVERSARIAL, AUXILIARY, PART, PLAIN, TOTAL
from stabtree.metrics.table import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.metrics.role import ColumnRole

# What each piece of evidence is worth. One point is one class of names (a total, a plain loss, a part), so that a lead
# of less than one is open to doubt; whether a series moves and how often it is logged outweigh every unknown name.
KNOWN = 20.0  # a name in metrics.yaml
EARLIER_ALIAS = 0.02  # for each place in its list, which has up to 50
SPECIFIC = 1.0  # a known name of one term of a loss, such as `nll_loss`
BY_ORDER = {TOTAL: 6.0, PLAIN: 5.0, PART: 4.0, 3: 3.0, 4: 2.0, AUXILIARY: 0.0}
UNCONFIRMED = 0.5  # the name itself says neither loss nor reward
HELD_OUT = 30.0
STILL = 20.0
RARE = 8.0
SUMMED = 2.0  # the total that others add up to gains it, each of these loses it
BATCH = 3.0  # the value of one batch where its mean over more is logged beside it
BESIDE_PLAYERS = 2.5  # what is neither of two adversaries nor compares with the input: a classifier
# A series that is logged so many times as often as another one is looked at first.
DENSER = 5
CLOSE = 1.0
FAR_MORE = "which has far more values"


class Candidate(Struct, frozen=True):
    """A column that could be what is looked for.

    Attributes:
        column: its name.
        points: the higher, the more likely.
        why: what lowered them; empty for what had only its name to go by.
    """

    column: str
    points: float
    why: str = ""


class Ranking(Struct, frozen=True):
    """All columns that could be the training loss, the most likely one first."""

    candidates: tuple[Candidate, ...] = ()

    @property
    def margin(self) -> float:
        """How many points the first is ahead of the second; infinite for one alone."""
        if len(self.candidates) < 2:
            return math.inf
        return self.candidates[0].points - self.candidates[1].points

    @property
    def in_words(self) -> tuple[str, ...]:
        """The candidates in words, where there are several."""
        texts = [f"{one.column}, {one.points:.1f} points{one.why and f' ({one.why})'}" for one in self.candidates]
        if len(texts) < 2:
            return ()
        return (f"{texts[0]}, {self.margin:.1f} ahead", *texts[1:])

    @property
    def is_close(self) -> bool:
        """Whether the second could as well be the first."""
        return self.margin < CLOSE


class Sighting(NamedTuple):
    """What is known of a candidate.

    Attributes:
        name: the column.
        reading: what its name and position say.
        alias: the index among the known names of the metric; None for an unknown one.
        logged: how many values were logged.
        moves: whether they are not all the same.
        summed: 1 for the proven total of others, -1 for one of its parts, else 0.
    """

    name: str
    reading: ColumnRole
    alias: int | None
    logged: int
    moves: bool
    summed: int = 0


def rank(found: Sequence[Sighting]) -> Ranking:
    """Rank candidates for one role, best first; equal ones keep the order of the file."""
    groups = {known: _peers([one for one in found if (one.alias is not None) == known]) for known in (False, True)}
    sides = {one.reading.order for one in found if one.reading.kind == ADVERSARIAL}
    scored = [_score(one, groups[one.alias is not None], players=len(sides) > 1) for one in found]
    return Ranking(tuple(sorted(scored, key=lambda one: -one.points)))


Peers = tuple[int, bool, "Mapping[frozenset[str], int]"]
"""Of the candidates of one group, known names or others: most values, whether any moves, values of each mean."""


def _peers(group: Sequence[Sighting]) -> Peers:
    means: dict[frozenset[str], int] = {}
    for one in group:
        if of.MEANS & set(words(one.name)):
            means[core(one.name)] = max(one.logged, means.get(core(one.name), 0))
    return max((one.logged for one in group), default=0), any(one.moves for one in group), means


def _score(one: Sighting, peers: Peers, *, players: bool) -> Candidate:
    max_logged, any_moves, means = peers
    points, why = _by_name(one), ""
    spelled = set(words(one.name))
    # The value of one batch, where the mean of the same over more is logged often enough.
    of_batch = bool(of.BATCHES & spelled) and not of.MEANS & spelled
    has_mean = of_batch and means.get(core(one.name), 0) * DENSER >= one.logged
    for lost, reason, applies in (
        (HELD_OUT, "measured on held-out data", one.reading.held_out),
        (BESIDE_PLAYERS, "beside a generator and a discriminator", players and _is_bystander(one)),
        (BATCH, "of one batch", has_mean),
        (STILL, "constant", one.alias is None and not one.moves and any_moves),
        (RARE, FAR_MORE, one.logged * DENSER < max_logged),
        (SUMMED, "a part of the total", one.summed < 0),
    ):
        if applies:
            points, why = points - lost, reason
    return Candidate(one.name, points + SUMMED * (one.summed > 0), why)


def _by_name(one: Sighting) -> float:
    """Return the points of a name alone."""
    reading = one.reading
    if one.alias is not None:
        return KNOWN - EARLIER_ALIAS * one.alias - SPECIFIC * (reading.order >= PART)
    points = -float(reading.order)
    if reading.loss:
        points = BY_ORDER.get(reading.order, 0.0)
    return points - UNCONFIRMED * (not reading.named)


def _is_bystander(one: Sighting) -> bool:
    """Whether a term beside two adversaries is one that neither of them plays for."""
    if one.alias is not None or one.reading.kind == ADVERSARIAL or one.reading.order != PART:
        return False
    return not of.MIRRORED & set(words(one.name))


def core(name: str) -> frozenset[str]:
    """Return the words that say which loss it is: without the side, and without how it was averaged.

    >>> core("train_loss_epoch") == core("val/loss"), sorted(core("eval_c4_loss"))
    (True, ['c4'])
    """
    return frozenset(words(name)) - of.FILLER - of.HELD_OUT


def can_be_loss(reading: ColumnRole) -> bool:
    """Return whether a column can be what training minimises."""
    return reading.loss and not reading.held_out and reading.role is not Role.SETTING
