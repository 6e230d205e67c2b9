"""The thresholds of the checks that ask whether a metric stays on the wrong side of a level, or never moves.

One line a node holds all of its numbers, said here a second time: when a tree changes one of them, a run that was told
is told no more, or the other way round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stabtree.common.stats import NORMAL_MAD
from stabtree.run import Run, Series, Setting
from tests.conftest import falling, make_run, series
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import ordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    Values = float | NDArray[np.float64]

ROWS = 300
REWARD = {"reward": 0.5, "reward_std": 0.1}


@dataclass(frozen=True, slots=True)
class Level:
    """A check of a level, with its numbers.

    Attributes:
        id: its node.
        told: the leaf, with the cause where the node is one.
        metric: what must not stay there.
        level: the level, `share` of the last `rows` rows and `steps` steps being bad.
        share: see `level`.
        rows: see `level`.
        steps: see `level`.
        low: whether the bad values lie below it.
        beside: other metrics that make the check apply.
    """

    id: str
    told: str
    metric: str
    level: float
    share: float
    rows: int
    steps: int
    low: bool = False
    beside: Mapping[str, Values] | None = None
    beyond: float = 2.0

    def holds(self) -> Iterator[Hold]:
        """Its thresholds, each with a run on either side."""
        no = f"no {self.told}"
        if self.level:
            inside, outside = (0.9, 1.1) if self.low else (1.1, 0.9)
            yield Hold(f"{self.id}.level", self._of_level, {inside * self.level: self.told, outside * self.level: no})
        else:
            yield Hold(f"{self.id}.level", self._of_level, {0.0: self.told, 1e-3: no})
        enough = math.ceil(self.share * self._window - 1e-9)
        yield Hold(f"{self.id}.share", self._of_share, {enough: self.told, enough - 1: no})
        yield Hold(f"{self.id}.rows", self._of_rows, {self.rows: self.told, self.rows - 1: no})
        if self.steps >= self.rows - 1:
            yield Hold(f"{self.id}.steps", self._of_steps, {self.steps + 1: self.told, self.steps: no})

    @property
    def _bad(self) -> float:
        return self.level / self.beyond if self.low else self.level * self.beyond

    def _of_level(self, value: float) -> Run:
        return self._run(np.full(ROWS, value), 1)

    @property
    def _window(self) -> int:
        """How many rows that lie 100 steps apart are looked at."""
        return max(self.rows, math.ceil(self.steps / 100) + 1)

    def _of_share(self, count: float) -> Run:
        """So many bad rows in any window."""
        bad = np.arange(self._window) >= self._window - count
        other = 4 * self.level + 1 if self.low else 0.0
        return self._run(np.where(np.resize(bad, ROWS - ROWS % self._window), self._bad, other), 100)

    def _of_rows(self, rows: float) -> Run:
        return self._run(np.full(int(rows), self._bad), self.steps + 1)

    def _of_steps(self, rows: float) -> Run:
        return self._run(np.full(int(rows), self._bad), 1)

    def _run(self, values: NDArray[np.float64], every: int) -> Run:
        return beside(self.beside or {}, {self.metric: series(self.metric, values, np.arange(len(values)) * every)})


def beside(others: Mapping[str, Values], columns: Mapping[str, Series]) -> Run:
    """A healthy loss, the metrics that a check takes for granted, and others."""
    plain = {name: series(name, np.broadcast_to(value, ROWS)) for name, value in others.items()}
    return Run("made", {"loss": series("loss", falling(ROWS)), **plain, **columns})


@dataclass(frozen=True, slots=True)
class Trend:
    """A check that a metric moves the way it ought to.

    Attributes:
        id: its node.
        told: the leaf.
        metric: what must move.
        rows: the fewest rows that tell.
        score: the trend score from which on it moves.
        falls: whether it must fall.
        beside: other metrics that make the check apply.
    """

    id: str
    told: str
    metric: str
    rows: int
    score: float
    falls: bool = False
    beside: Mapping[str, Values] | None = None

    def holds(self) -> Iterator[Hold]:
        """Its thresholds, each with a run on either side."""
        no = f"no {self.told}"
        yield Hold(f"{self.id}.rows", self._of_rows, {self.rows: self.told, self.rows - 1: no})
        yield Hold(f"{self.id}.trend_z", self._of_trend, {0.8 * self.score: self.told, 1.2 * self.score: no})

    def _of_rows(self, rows: float) -> Run:
        return self._run(0.5 + np.resize([0.1, -0.1], int(rows)))

    def _of_trend(self, score: float) -> Run:
        return self._run(ordered(200, score))

    def _run(self, values: NDArray[np.float64]) -> Run:
        return beside(self.beside or {}, {self.metric: series(self.metric, 1 - values if self.falls else values)})


ZERO = {"reward": 0.0}
ANSWERS = {**REWARD, "completion_length": 200.0}
APART = {**REWARD, "frac_reward_zero_std": 1.0}


def gaining(metric: str, value: float, share: float) -> Run:
    """A metric at a bad level beside a reward that swings, and ends higher by a share of what it covers."""
    reward, part = np.resize([0.0, 1.0], ROWS), ROWS // 10
    reward[:part], reward[-part:] = 0.0, share
    return beside({"reward": reward, metric: value}, {})


LOST: dict[str, Values] = {"reward": np.interp(np.arange(ROWS), [0, 150, 200, ROWS], [0.0, 1.0, 0.1, 0.1])}
LEVELS = (
    Level("S2", "sft-grad-norm-high", "grad_norm", 100.0, 0.1, 20, 20, beside={"token_accuracy": 0.5}),
    Level("G1", "reward-zero", "reward", 0.0, 0.95, 5, 20, low=True),
    Level("G4", "reward-no-spread", "reward_std", 0.0, 0.95, 5, 0, low=True, beside={"reward": 0.5}),
    Level("G5", "no-advantage", "frac_reward_zero_std", 1.0, 0.9, 5, 0, beside=REWARD),
    Level("G5.most", "little-advantage", "frac_reward_zero_std", 0.8, 0.9, 10, 0, beside=REWARD, beyond=1.2),
    Level("G6.raised", "rl-grad-norm-raised", "grad_norm", 1.0, 0.9, 20, 20, beside=REWARD),
    Level(
        *("G12.most", "importance-ratio-below-usual", "importance_ratio_min", 0.1, 0.9, 10, 10),
        low=True,
        beside=REWARD,
    ),
    Level("G22", "update-too-far", "approx_kl", 0.2, 0.5, 10, 10, beside=REWARD),
    Level("G23", "preferences-swapped", "preference_accuracy", 0.45, 0.9, 20, 20, low=True),
    Level(
        *("G23.margin", "preferences-swapped G23.margin", "preference_margin", 0.0, 0.9, 20, 20),
        low=True,
        beside={"preference_accuracy": 0.2},
    ),
    Level("G6", "rl-grad-norm-high", "grad_norm", 10.0, 0.2, 20, 20, beside=REWARD),
    Level("G7", "rl-no-gradient", "grad_norm", 0.0, 1.0, 20, 20, low=True, beside=REWARD),
    Level("G8", "entropy-collapse", "entropy", 0.01, 0.9, 10, 10, low=True, beside=ANSWERS),
    Level("G9", "entropy-high", "entropy", 1.0, 0.95, 20, 20, beside=REWARD),
    Level("G10", "kl-high", "kl", 2.0, 0.9, 5, 5, beside=REWARD),
    Level("G11", "sampler-diverged", "logp_diff", 1.0, 0.9, 5, 5, beside=REWARD),
    Level("G12", "importance-ratio-low", "importance_ratio_min", 0.01, 0.9, 10, 10, low=True, beside=REWARD),
    Level("G13", "clipping-heavy", "clip_ratio", 0.3, 0.9, 10, 10, beside=REWARD),
    Level("G15", "answers-cut-off", "clipped_ratio", 0.8, 0.9, 10, 10, beside=REWARD),
    Level("G17", "ebft-alignment-low", "ebft_alignment", 0.3, 0.9, 50, 100, low=True),
    Level("G18", "ebft-mode-collapse", "ebft_diversity", 1.0, 0.9, 10, 10, beside={"ebft_alignment": 0.5}),
    Level("G19", "ebft-cfm-high", "cfm_loss", 10.0, 0.9, 20, 50, beside={"ebft_alignment": 0.5}),
    Level("G24", "policy-collapse", "entropy_loss", 0.01, 0.9, 10, 10, low=True, beside=REWARD),
    Level("G1.length", "reward-zero G1.length", "clipped_ratio", 0.8, 0.9, 5, 0, beside=ZERO),
    Level("G2.kl", "reward-collapse G2.kl", "kl", 2.0, 0.5, 5, 0, beside=LOST),
    Level("G2.collapse", "reward-collapse G2.collapse", "entropy", 0.01, 0.5, 5, 0, low=True, beside=LOST),
    Level("G2.stale", "reward-collapse G2.stale", "logp_diff", 0.1, 0.5, 5, 0, beside=LOST),
    Level("G3.spread", "reward-not-rising G3.spread", "frac_reward_zero_std", 0.8, 0.5, 10, 0, beside=REWARD),
    Level("G5.zero", "no-advantage G5.zero", "reward", 0.0, 0.9, 5, 0, low=True, beside={"frac_reward_zero_std": 1.0}),
    Level("G5.cut", "no-advantage G5.cut", "clipped_ratio", 0.8, 0.9, 5, 0, beside=APART),
    Level(
        *("G7.advantage", "rl-no-gradient G7.advantage", "frac_reward_zero_std", 1.0, 0.9, 5, 0),
        beside={**REWARD, "grad_norm": 0.0},
    ),
)
TRENDS = (
    Trend("G3", "reward-not-rising", "reward", 100, 1.64),
    Trend("G16", "ebft-alignment-flat", "ebft_alignment", 50, 1.64),
    Trend("G20", "ebft-cfm-flat", "cfm_loss", 50, 1.64, falls=True, beside={"ebft_alignment": 0.5}),
)


def answers(end: float, *, begin: float = 500.0) -> Run:
    """Answers whose length goes from `begin` to `end` tokens of 1,000 allowed."""
    length = np.interp(np.arange(ROWS), [0, 100, 200, ROWS], [begin, begin, end, end])
    run = beside(REWARD, {"completion_length": series("completion_length", length)})
    return replace(run, config={"max_completion_length": Setting(1000, "test")})


def longest(rows: float) -> Run:
    """Answers that grow to 1,000 tokens, the longest of which are exactly so long in so many rows."""
    longest_rows = np.where(np.arange(ROWS) < ROWS - rows, 990.0 - np.arange(ROWS) % 7, 1000.0)
    columns = {"completion_length": answers(990).series["completion_length"]}
    return beside(REWARD, {**columns, "completion_length_max": series("completion_length_max", longest_rows)})


def swelling(times: float) -> Run:
    """A reward without a trend whose middle levels stand so many times their scatter above the first."""
    levels = 0.5 + np.resize([0.01, -0.01], 20)
    scatter = NORMAL_MAD * 0.02 / 2**0.5
    levels[9:12] = levels[0] + times * scatter
    return beside(REWARD, {"reward": series("reward", np.repeat(levels, 10))})


def tuned(rows: float) -> Run:
    """A fine-tuning whose loss stops falling at once, at 3, in so many rows."""
    loss = np.where(np.arange(int(rows)) < rows / 10, 4.0, 3.0)
    return make_run({"loss": loss, "token_accuracy": np.full(len(loss), 0.5)})


def kl_jumps(to: float, *, from_: float = 0.1, rows: int = ROWS, before: int = 100) -> Run:
    """A kl that jumps from one level to another for so many rows, that many rows after the beginning."""
    at = np.arange(ROWS)
    kl = np.where((at >= before) & (at < before + rows), to, from_)
    return beside(REWARD, {"kl": series("kl", kl)})


def grows(times: float, *, rows: int = ROWS, metric: str = "value_loss") -> Run:
    """A metric that ends so many times above its beginning, beside a reward that does not move."""
    values = np.interp(np.arange(rows), [0, 0.2 * rows, 0.5 * rows, rows], [1.0, 1.0, times, times])
    return beside(REWARD, {metric: series(metric, values)})


def loosened(level: float = 2.0, last: float = ROWS, begins: float = 0.5) -> Run:
    """A reward that is lost beside an entropy that rises to a level in its last rows, from a share of it."""
    entropy = np.where(np.arange(ROWS) < max(60, ROWS - int(last)), begins * level, level)
    return beside(LOST, {"entropy": series("entropy", entropy)})


HOLDS = (
    Hold("G2.entropy.level", loosened, {1.1: "reward-collapse G2.entropy", 0.9: "no reward-collapse G2.entropy"}),
    Hold(
        "G2.entropy.share",
        lambda last: loosened(1.9, last),
        {3: "reward-collapse G2.entropy", 2: "no reward-collapse G2.entropy"},
    ),
    Hold(
        "G2.entropy.growth",
        lambda times: loosened(2.0, begins=1 / times),
        {1.3: "reward-collapse G2.entropy", 1.2: "no reward-collapse G2.entropy"},
    ),
    Hold("G10.jump.factor", kl_jumps, {0.9: "no kl-jumps", 1.1: "kl-jumps"}),
    Hold("G10.jump.least", partial(kl_jumps, from_=0.001), {0.45: "no kl-jumps", 0.55: "kl-jumps"}),
    Hold("G10.jump.rows", lambda rows: kl_jumps(1.9, rows=int(rows)), {2: "no kl-jumps", 3: "kl-jumps"}),
    Hold("G10.jump.before_rows", lambda rows: kl_jumps(1.9, before=int(rows)), {9: "no kl-jumps", 20: "kl-jumps"}),
    Hold(
        "G13.gain_share",
        partial(gaining, "clip_ratio", 0.5),
        {0.45: "clipping-heavy", 0.55: "no clipping-heavy"},
    ),
    Hold(
        "G22.gain_share",
        partial(gaining, "approx_kl", 0.5),
        {0.45: "update-too-far", 0.55: "no update-too-far"},
    ),
    Hold("G21.factor", grows, {90: "no value-explodes", 110: "value-explodes"}),
    Hold("G21.rows", lambda rows: grows(1000, rows=int(rows)), {9: "no value-explodes", 10: "value-explodes"}),
    Hold(
        "G25.factor",
        partial(grows, metric="policy_std"),
        {9: "no policy-std-grows", 11: "policy-std-grows"},
    ),
    Hold(
        "G25.rows",
        lambda rows: grows(1000, rows=int(rows), metric="policy_std"),
        {9: "no policy-std-grows", 10: "policy-std-grows"},
    ),
    *(hold for check in (*LEVELS, *TRENDS) for hold in check.holds()),
    Hold("S1.min_rows", tuned, {90: "no sft-loss-plateau", 110: "sft-loss-plateau"}),
    Hold("G3.noise_factor", swelling, {2.6: "reward-not-rising", 3.4: "no reward-not-rising"}),
    Hold("G14.cap_share", answers, {940: "no length-hacking", 960: "length-hacking"}),
    Hold(
        "G14.growth",
        lambda times: answers(990, begin=990 / times),
        {1.15: "no length-hacking", 1.25: "length-hacking"},
    ),
    Hold("G14.pinned_rows", longest, {4: "no length-hacking", 5: "length-hacking"}),
)
