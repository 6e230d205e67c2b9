"""What a column that the table of metrics doesn't know could hold, by the words of its name: a loss or a reward."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from stabtree.metrics.metric import names
from stabtree.metrics.table import MAX_NAME, words

ADVERSARIAL, POLICY, VALUE = "adversarial", "policy", "value"  # losses that move by nature

_TOTAL = frozenset(names("total overall sum all combined full joint"))
_TRAIN = frozenset(names("train training trn tr"))
_HELD_OUT = frozenset(names("val valid validation eval evaluation evaluate test testing dev heldout holdout"))
# Words that say how a loss was averaged or where it was logged, not which loss it is.
_FILLER = _TRAIN | frozenset(
    names(
        "mean avg average epoch step batch iter iteration running local global raw per token byte nats bits current "
        "cur model net network log logs metrics scalar scalars main after final smoothed smooth value loss"
    )
)
_LOSS = frozenset(
    names("nll xent xentropy crossentropy ce bce mse rmse mae huber smoothl1 elbo nelbo logloss hinge bpb bpc bpd")
)
_PAIRS = (("cross", "entropy"), ("smooth", "l1"), ("log", "likelihood"))
# What is logged beside a loss under its name, and what is no loss at all.
_NO = frozenset(
    names(
        "acc accuracy ratio rate lr ppl perplexity time sec seconds duration count counts num n scale scaling weight "
        "weights coef coeff coefficient lambda norm std stdev stddev var variance min max best lowest delta diff "
        "change improvement improved grad gradients threshold patience f1 auc iou map psnr ssim score percent pct "
        "fraction frac steps samples memory eta speed size prev previous id idx index name type len length target kl"
    )
)
_AUXILIARY = frozenset(
    names("kld reg regularization aux auxiliary l2 decay commitment penalty gp consistency idt identity z before moe")
)
_KINDS = {
    ADVERSARIAL: frozenset(
        names("g gen generator netg gan adv adversarial cyc cycle cycled d dis disc discriminator netd")
    ),
    VALUE: frozenset(names("critic value vf v td q qf qf1 qf2 q1 q2 qvalue bellman baseline")),
    POLICY: frozenset(names("policy pi actor pg surrogate surr")),
}
_AGAINST = frozenset(names("d dis disc discriminator netd"))
_ERROR = frozenset(names("error err cost objective criterion"))
# Words beside an error that is trained on, or a cost: any other is a rate, or money.
_TRAINED_ON = (
    _TRAIN | _HELD_OUT | frozenset(names("mean avg average reconstruction recon squared absolute td prediction"))
)
_PLAYER = re.compile(r"(?:train/|err_?)?([DG])(?:_[A-Za-z0-9]{1,4})?")
_REWARD = frozenset(names("reward rewards rew return returns"))
# What a setting does to rewards, which is nothing that was earned.
_ON_REWARDS = frozenset(names("multiplier normalize normalise clip discount shaping model fn function"))
_EPISODE = frozenset(names("ep episode episodic episodes"))
_REWARD_FILLER = (
    _EPISODE
    | _TRAIN
    | _HELD_OUT
    | _TOTAL
    | frozenset(names("mean avg average env rollout charts runners sampler results step per running smoothed time r"))
)

_SCORE = frozenset(names("score scores mean avg average episode ep"))
# Beside what a score, and the column `r` of a monitor's file, is what was earned in an episode.
EPISODES = frozenset(names("epsilon eps episode episodes ep_len episode_length l"))


class Guess(NamedTuple):
    """What a column could hold.

    Attributes:
        metric: `loss` or `reward`.
        held_out: whether it was measured on held-out data.
        kind: `adversarial`, `policy` or `value` for a loss that moves by nature; else nothing.
        order: lowest for what an engineer checks first: a total, then the plain one, then one of several parts.
        named: whether the name itself says loss or reward, or that it is of training; else others must confirm it.
    """

    metric: str
    held_out: bool
    kind: str
    order: int
    named: bool


@lru_cache(maxsize=1 << 14)
def guess(column: str) -> Guess | None:
    """Return what a column could hold by its name; None if it can be neither a loss nor a reward.

    >>> guess("train_loss_local"), guess("loss_weight")
    (Guess(metric='loss', held_out=False, kind='', order=1, named=True), None)
    """
    if len(column) > MAX_NAME:
        return None
    spelled = [word for word in words(column) if not word.isdigit()]
    inner = frozenset(spelled)
    held_out = bool(inner & _HELD_OUT)
    if _is_loss(spelled, inner):
        kind = _kind(inner)
        return Guess("loss", held_out, kind, _order(inner, kind), named="loss" in inner or bool(inner & _TRAIN))
    if player := _PLAYER.fullmatch(column):
        return Guess("loss", held_out, ADVERSARIAL, 3 + (player[1] == "D"), named=False)
    if column == "r" or "score" in inner <= _SCORE:
        return Guess("reward", held_out, "", 9, named=False)
    if _is_reward(inner):
        rest = inner - _REWARD - _REWARD_FILLER - {"ret"}
        return Guess("reward", held_out, "", 1 + len(rest), named=True)
    return None


def is_named(column: str) -> bool:
    """Return whether the name of a column itself says loss or reward, or that it is of training."""
    found = guess(column)
    return found is not None and found.named


def _is_loss(spelled: list[str], inner: frozenset[str]) -> bool:
    pairs = any(pair in pairwise(spelled) for pair in _PAIRS)
    if "loss" in inner:
        entropy = "entropy" in inner and not pairs
        return not entropy and not (inner & _NO - {"kl"})
    if inner & _NO:
        return False
    if inner & _ERROR:
        return spelled[-1] in _ERROR and inner < _TRAINED_ON | {spelled[-1]}
    return pairs or bool(inner & _LOSS)


def _kind(inner: frozenset[str]) -> str:
    """Return which kind of loss moves by nature; nothing for any other loss."""
    for kind, among in _KINDS.items():
        if inner & among - {"value"}:
            return kind
    return VALUE if {"value", "loss"} <= inner and not inner & _LOSS else ""


def _is_reward(inner: frozenset[str]) -> bool:
    earned = inner & _REWARD or ("ret" in inner and inner & _EPISODE)
    return bool(earned) and not inner & (_NO | _ON_REWARDS)


def _order(inner: frozenset[str], kind: str) -> int:
    """Return the order in which an engineer checks losses: 0 the total, 1 the plain one, 2 one of a kind, 3 a part."""
    if inner & (_AUXILIARY | {"kl"}):
        return 6
    if kind:
        return {ADVERSARIAL: 3 + bool(inner & _AGAINST), VALUE: 3, POLICY: 4}[kind]
    if inner & _TOTAL:
        return 0
    if "loss" in inner and inner <= _FILLER | _HELD_OUT:
        return 1
    return 2
