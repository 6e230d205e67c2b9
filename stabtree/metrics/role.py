"""What a column holds by the words of its name: a loss, a reward, a count, a clock, a setting, ...

The table of metrics comes first, then the head of the name (the `time` of `train/batch_time`, the `weight` of
`LOSS_WEIGHT`), then the words that name a measure wherever they are.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from stabtree.metrics import vocabulary as of
from stabtree.metrics.metric import Role
from stabtree.metrics.table import MAX_NAME, axis, by_name, match, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ADVERSARIAL, POLICY, VALUE = "adversarial", "policy", "value"  # losses that move by nature
HIGHER, LOWER = "higher", "lower"
TOTAL, PLAIN, PART, GENERATOR, AUXILIARY = 0, 1, 2, 3, 6  # the orders of losses
NO_OUTCOME = 10  # the order of rewards that are none of the run's
_KIND_ROLES = {POLICY: Role.POLICY, VALUE: Role.VALUE}
_ENGLISH = re.compile(r"[^a-z0-9]+")
_DIGITS = re.compile(r"\d+$")
# Terms that CycleGAN, pix2pix and their descendants log without the word loss: `D_A`, `G_L1`, `errG`; no `D_x`.
_PLAYER = re.compile(r"(?:train/|err_?)?([DG])(?!_(?:x|G?z)$)(?:_[A-Za-z0-9]{1,4})?")
_MIRROR = re.compile(r"(?:train/)?(cycle_[AB]|cyc_[AB]|idt_[AB]|rec_[AB]|G_L1)")


class ColumnRole(NamedTuple):
    """What the name of a column says.

    Attributes:
        role: what the column holds.
        held_out: whether it was measured on held-out data.
        better: `lower` or `higher` for what is known to be better so.
        loss: whether it can be what training minimises.
        kind: `adversarial`, `policy` or `value` for a loss that moves by nature; else nothing.
        order: lowest for what an engineer checks first among those of one role: a total, then the plain one, then one
            of several parts.
        named: whether the name itself says loss, reward or norm of the gradient, or that it is of training; else others
            must confirm it.
        metric: the known metric that the column carries.
        term: the letters of a term that is no loss without another one beside it: `D`, `G`, `cycle`.
    """

    role: Role
    held_out: bool = False
    better: str = ""
    loss: bool = False
    kind: str = ""
    order: int = 0
    named: bool = False
    metric: str = ""
    term: str = ""


UNKNOWN = ColumnRole(Role.OTHER)


class _Name(NamedTuple):
    """A name in parts: its words in their order, the pieces between separators, both together, and its head."""

    spelled: list[str]
    pieces: frozenset[str]
    inner: frozenset[str]
    head: str

    def has_pair(self, pairs: frozenset[tuple[str, str]]) -> bool:
        return any(pair in pairs for pair in pairwise(self.spelled))


def describe_name(column: str) -> ColumnRole:
    """Return what a column holds by its name.

    >>> describe_name("train_loss_local").role, describe_name("loss_weight").role, describe_name("val/mIoU").better
    (<Role.LOSS: 'loss'>, <Role.SETTING: 'setting'>, 'higher')
    """
    return _read(column) if len(column) <= MAX_NAME else UNKNOWN


@lru_cache(maxsize=1 << 14)
def _read(column: str) -> ColumnRole:
    name = _parts(column)
    found = match(column)
    metric = by_name()[found[0].partition("/")[0]] if found else None
    if metric is None:
        if where := axis(column)[0]:
            return ColumnRole(Role.COUNTER if where in ("step", "epoch") else Role.LABEL)
        return _loss(column, name) or _beside(column, name)
    if metric.role is Role.LOSS:
        loss = _loss(column, name) or ColumnRole(Role.LOSS, better=LOWER, loss=True, order=PLAIN, named=True)
        return loss._replace(role=_KIND_ROLES.get(loss.kind, Role.LOSS), held_out=False, metric=metric.name)
    if metric.role is Role.HELD_OUT_LOSS:
        return ColumnRole(metric.role, True, LOWER, loss=True, order=PLAIN, named=True, metric=metric.name)
    role = _beside(column, name).role if metric.role is Role.OTHER else metric.role
    held_out = metric.name == "eval_quality" or _is_held_out(name)
    return ColumnRole(role, held_out, metric.better, metric=metric.name)


def _parts(column: str) -> _Name:
    # Keras calls a series `evaluation_loss_vs_iterations`.
    spelled = [word for word in words(column.partition("_vs_")[0]) if not word.isdigit()]
    pieces = frozenset(_DIGITS.sub("", piece) for piece in _ENGLISH.split(column.lower())) - {""}
    heads = [word for word in spelled if word == "loss" or word not in of.FILLER | of.HELD_OUT]
    return _Name(spelled, pieces, pieces.union(spelled), heads[-1] if heads else "")


def _is_held_out(name: _Name) -> bool:
    """Return whether the last word about a side says so: `train/valid_loss` is held out, `eval/train_loss` is not."""
    sides = [word for word in name.spelled if word in of.HELD_OUT or word in of.TRAIN]
    return bool(sides) and sides[-1] in of.HELD_OUT


def _loss(column: str, name: _Name) -> ColumnRole | None:
    """Return what kind of loss a column is; None if it is none."""
    if column.lower() == "total":
        return ColumnRole(Role.LOSS, better=LOWER, loss=True, order=TOTAL)
    if found := _MIRROR.fullmatch(column):
        return ColumnRole(Role.LOSS, better=LOWER, loss=True, order=PART, term=found[1])
    if found := _PLAYER.fullmatch(column):
        order = GENERATOR + (found[1] == "D")
        return ColumnRole(Role.LOSS, better=LOWER, loss=True, kind=ADVERSARIAL, order=order, term=found[1])
    if not _names_loss(name):
        return None
    inner = frozenset(name.spelled)
    held_out, kind = _is_held_out(name), _kind(inner)
    order = _order(inner, kind)
    role = Role.HELD_OUT_LOSS if held_out else _KIND_ROLES.get(kind, Role.LOSS)
    if order == AUXILIARY:
        role = Role.PART
    named = "loss" in name.inner or bool(name.inner & of.TRAIN)
    # `final_loss` is of a table of results.
    return ColumnRole(role, held_out, LOWER, loss="final" not in name.inner, kind=kind, order=order, named=named)


def _names_loss(name: _Name) -> bool:
    pairs, inner = name.has_pair(of.LOSS_PAIRS), frozenset(name.spelled)
    if name.head in of.SETTING:
        return False  # `FOCAL_LOSS_ALPHA`
    if "loss" in inner:
        entropy = inner & of.ENTROPY and not pairs
        return not entropy and not (inner & of.NO_LOSS - of.TRAINED_MEASURES)
    if inner & of.NO_LOSS:
        return False
    if inner & of.ERROR:
        return name.spelled[-1] in of.ERROR and inner < of.TRAINED_ON | {name.spelled[-1]}
    return pairs or bool(inner & of.LOSS)


def _kind(inner: frozenset[str]) -> str:
    """Return which kind of loss moves by nature; nothing for any other loss."""
    for kind, among in ((ADVERSARIAL, of.PLAYERS), (VALUE, of.VALUES), (POLICY, of.POLICIES)):
        if inner & among - {"value"}:
            return kind
    return VALUE if {"value", "loss"} <= inner and not inner & of.LOSS else ""


def _order(inner: frozenset[str], kind: str) -> int:
    """Return the order in which an engineer checks losses: the total, the plain one, one of a kind, a part."""
    if inner & (of.AUXILIARY | {"kl"}):
        return AUXILIARY
    if kind == ADVERSARIAL and inner & of.MIRRORED:
        return PART
    if kind:
        return {ADVERSARIAL: GENERATOR + bool(inner & of.AGAINST), VALUE: 3, POLICY: 4}[kind]
    if inner & of.TOTAL:
        return TOTAL
    if "loss" in inner and inner <= of.FILLER | of.HELD_OUT | {"loss"}:
        return PLAIN
    return PART


def _beside(column: str, name: _Name) -> ColumnRole:
    """Return what a column holds that is no loss."""
    inner, held_out = name.inner, _is_held_out(name)
    if role := _of_the_update(name):
        return ColumnRole(role, named=role is Role.GRADIENT and _is_norm(frozenset(name.spelled)))
    if role := _by_head(name) or (Role.CLOCK if _is_of_time(column) else None):
        return ColumnRole(role)
    if reward := _reward(column, name):
        return reward
    if inner & of.ENTROPY and not name.has_pair(of.LOSS_PAIRS):
        return ColumnRole(Role.ENTROPY, held_out)
    if better := _quality(name):
        return ColumnRole(Role.QUALITY, held_out, better, order=_quality_order(name))
    if inner & of.POLICY_TERMS:
        return ColumnRole(Role.POLICY, held_out)
    if inner & of.VALUE_TERMS:
        return ColumnRole(Role.VALUE, held_out)
    return UNKNOWN


def _of_the_update(name: _Name) -> Role | None:
    """Return the role of what belongs to an optimizer step: a gradient, a norm, a rate, a scale."""
    inner = name.inner
    if inner & of.GRADIENT:
        if inner & of.SCALE:
            return Role.SCALE
        # `max_grad_norm` is a limit, `grad_norm_max` the largest of the layers.
        limit = name.head in of.LIMITS or name.spelled[0] in ("max", "clip")
        return Role.SETTING if limit else Role.GRADIENT
    if inner & of.NORM:
        return Role.NORM
    if name.has_pair(of.RATE_PAIRS) or any(_DIGITS.sub("", word) == "lr" for word in inner):
        return Role.RATE
    if inner & of.SCALE and inner <= of.SCALE | of.FILLER | {"loss", "amp"}:
        return Role.SCALE
    return None


def _is_of_time(column: str) -> bool:
    """Whether a column is shown among the times, as `timing_s/adv`, or is the time spent on `data`."""
    group, slash, _ = column.partition("/")
    return column.lower() in of.WAITS or (bool(slash) and not of.TIMES.isdisjoint(words(group)[:1]))


def _is_norm(inner: frozenset[str]) -> bool:
    """Whether a gradient is its norm before clipping, rather than its mean or what clipping left of it."""
    norm = inner & of.NORM or inner & {"gnorm", "gradnorm", "grdn"}
    return bool(norm) and not inner & of.AFTER_CLIPPING and inner <= of.GRADIENT | of.WHOLE_GRADIENT


def _by_head(name: _Name) -> Role | None:
    """Return the role that the head of a name gives whatever is before it: a time, a setting, a count, a spread."""
    inner, head = name.inner, name.head
    measured = bool(inner & (of.REWARD | of.HIGHER | of.LOWER | {"loss"}))
    if _is_clock(name, measured=measured):
        return Role.CLOCK
    if head in of.SETTING:
        return Role.SETTING
    if "explained" in inner:
        return Role.VALUE
    if inner & of.SPREAD:
        return Role.OTHER
    if "per" in inner:
        return None
    if inner & of.NUMBER or (not measured and (head in of.COUNTED or name.spelled[-1:] in of.COUNTED_ALONE)):
        return Role.COUNTER
    return None


def _is_clock(name: _Name, *, measured: bool) -> bool:
    """Whether a name is that of a time, or ends in its unit: `updt_s`, `data_s`."""
    if name.inner & of.TIMED and not measured:
        return True
    in_seconds = len(name.spelled) > 1 and name.spelled[-1] in ("s", "ms")
    return in_seconds or name.head in of.CLOCK or name.has_pair(of.CLOCK_PAIRS)


def _reward(column: str, name: _Name) -> ColumnRole | None:
    """Return what kind of reward a column is; None if it is none."""
    inner, held_out = frozenset(name.spelled), _is_held_out(name)
    if column == "r" or "score" in inner <= of.SCORE:
        return ColumnRole(Role.REWARD, held_out, HIGHER, order=NO_OUTCOME - 1)
    if inner & of.REWARD and inner & of.COMPARED:
        return ColumnRole(Role.REWARD, held_out, order=NO_OUTCOME)
    earned = inner & of.REWARD or ("ret" in inner and inner & of.EPISODE)
    if not earned or inner & (of.NO_LOSS | of.ON_REWARDS | {"accuracies"}):
        return None
    rest = inner - of.REWARD - of.REWARD_FILLER - {"ret"}
    return ColumnRole(Role.REWARD, held_out, HIGHER, order=1 + len(rest) + held_out, named=True)


def _quality(name: _Name) -> str:
    """Return in which direction a measure of quality is better; nothing for anything else."""
    if "error" in name.inner or name.inner & of.LOWER:
        return LOWER
    if name.inner & of.HIGHER or ("rate" in name.inner and name.inner & of.WON):
        return HIGHER
    return ""


def _quality_order(name: _Name) -> int:
    """Return the order in which an engineer looks at measures: those of the whole first, then those of one side."""
    return len(name.pieces - of.FILLER - of.HELD_OUT) + 3 * bool(name.inner & of.ONE_SIDED)


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


class Sighting(NamedTuple):
    """What is known of a candidate.

    Attributes:
        name: the column.
        reading: what its name and position say.
        alias: the index among the known names of the metric; None for an unknown one.
        logged: how many values were logged.
        moves: whether they are not all the same.
    """

    name: str
    reading: ColumnRole
    alias: int | None
    logged: int
    moves: bool


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
    ):
        if applies:
            points, why = points - lost, reason
    return Candidate(one.name, points, why)


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


def earned(name: str) -> frozenset[str]:
    """Return the words that say which reward it is: the same of training and of its evaluation."""
    return core(name) - of.REWARD - of.REWARD_FILLER


def can_be_loss(reading: ColumnRole) -> bool:
    """Return whether a column can be what training minimises."""
    return reading.loss and not reading.held_out and reading.role is not Role.SETTING


def is_squared_norm(name: str) -> bool:
    """Return whether a column is the square of the norm of the whole gradient."""
    inner = frozenset(words(name))
    return bool(inner & of.SQUARED) and _is_norm(inner - of.SQUARED) and bool(inner & of.GRADIENT)
