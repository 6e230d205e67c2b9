"""What the logged curves of a broken run show, by fixed criteria.

Whether a run is healthy follows from its true held-out loss; whether a fault is *visible* from what was logged, where
need be beside the healthy twin: a reader can see it (`yes`), could suspect it (`weak`), or cannot (`no`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

SURE, LIKELY = 3.0, 2.0
"""Standard errors beyond which a difference is sure, or likely."""
WORSE = 0.01
"""Share of its start by which a loss that ends higher is worse."""
FLAT = 0.02
"""A fall that is surely smaller is none, where the healthy twin fell."""
TURNED = 0.03
"""Share by which a held-out loss ends above its lowest where the model overfits."""
LEAP, JUMP = 8.0, 5.0
"""Robust standard deviations of the rows around at which one stands out: surely, or perhaps."""
CLEAR = 1.25
"""How many times those around it a row is that surely stands out."""
IMPROVED = 0.002
"""Share by which the true held-out loss of a healthy run falls, or more."""


Rows = list[tuple[int, float]]


@dataclass
class Made:
    """A run that was made.

    Attributes:
        file: its log.
        rows: the losses in it.
        evals: the held-out losses in it.
        held: the true held-out loss, from before the first step on.
        broke: the step at which the weights ceased to be finite.
        finite: whether all else that was logged is finite.
    """

    file: Path
    rows: Rows
    evals: Rows
    held: Rows
    broke: int | None = None
    finite: bool = True


@dataclass(frozen=True)
class Sign:
    """Something that a log shows."""

    visible: str
    what: str


def healthy(made: Made) -> bool:
    """Whether a run improved on held-out samples and kept what it gained."""
    held = np.array([value for _, value in made.held])
    return bool(held[-1] < held[0] * (1 - IMPROVED) and held[-1] < held.min() * (1 + WORSE))


def gain(made: Made) -> float:
    """Return the share by which the true held-out loss fell."""
    return 1 - made.held[-1][1] / made.held[0][1]


def change(rows: Rows) -> tuple[float, float]:
    """Return by what share the rows fell, early ones against the last, and the standard error of that."""
    values = np.array([value for _, value in rows])
    if len(values) < 3:
        return (1 - values[-1] / values[0] if len(values) == 2 else 0.0), math.inf
    size = max(len(values) // 5, 1)
    early, late = values[:size], values[-size:]
    scatter = float(np.median(np.abs(np.diff(values)))) / 0.6745 / math.sqrt(2)
    scatter = max(scatter, math.sqrt((early.var() + late.var()) / 2 * size / max(size - 1, 1)))
    start = float(early.mean())
    few = 1 + 10 / len(values)  # a scatter read from a few rows may be far too small
    return float((start - late.mean()) / start), few * scatter * math.sqrt(2 / size) / start


def leap(rows: Rows) -> tuple[float, float]:
    """Return how far the row that stands out most is above those around it: in standard deviations, and as a ratio."""
    values = np.array([value for _, value in rows])
    if len(values) < 20:
        return 0.0, 1.0
    around = np.array([np.median(values[max(0, at - 5) : at + 1]) for at in range(len(values))])
    apart = values - around
    scatter = 1.4826 * float(np.median(np.abs(apart - np.median(apart)))) or 1e-9
    at = int(apart.argmax())
    return float(apart[at] / scatter), float(values[at] / around[at])


def signs(made: Made, twin: Made) -> list[Sign]:
    """List what the log of a broken run shows, beside that of its healthy twin."""
    logged = [value for _, value in (*made.rows, *made.evals)]
    if not (made.finite and all(map(math.isfinite, logged))):
        return [Sign("yes", "not finite")]
    losses = [value for _, value in made.rows]
    if len(losses) >= 3 and len(set(losses)) == 1:
        return [Sign("yes", "constant")]
    return [*_ends(made, twin), *_turns(made), *_stands_out(made, twin)]


def _ends(made: Made, twin: Made) -> list[Sign]:
    fell, error = change(made.rows)
    found = []
    if fell < -WORSE and -fell > LIKELY * error:
        found.append(Sign("yes" if -fell > SURE * error else "weak", f"ends {-fell:.1%} above its start"))
    expected = change(twin.rows)[0]
    if fell + LIKELY * error < min(FLAT, expected) and not found:
        found.append(Sign("yes" if fell + SURE * error < min(FLAT, expected) else "weak", "does not fall"))
    if len(made.evals) >= 2:
        first, last = made.evals[0][1], made.evals[-1][1]
        if last > first * (1 + WORSE) and made.held[-1][1] > made.held[0][1]:
            how = "yes" if last > first * (1 + 2 * WORSE) else "weak"
            found.append(Sign(how, f"held-out loss ends {last / first - 1:.1%} above its first"))
        elif len(made.evals) >= 4 and first == last:
            found.append(Sign("yes", "held-out loss is constant"))
    if not found and made.held[-1][1] > made.held[0][1]:
        found.append(Sign("weak", "no better on held-out samples, which the log does not show"))
    return found


def _turns(made: Made) -> list[Sign]:
    if len(made.evals) < 3:
        return []
    lowest = min(value for _, value in made.evals)
    above = made.evals[-1][1] / lowest - 1
    true = made.held[-1][1] / min(value for _, value in made.held) - 1
    if above < TURNED / 3 or true < TURNED / 3:
        return []
    return [Sign("yes" if above > TURNED else "weak", f"held-out loss ends {above:.1%} above its lowest")]


def _stands_out(made: Made, twin: Made) -> list[Sign]:
    far, ratio = leap(made.rows)
    usual = leap(twin.rows)[0]
    if far < max(JUMP, 1.5 * usual) or ratio < 1.1:
        return []
    sure = far > LEAP and ratio > CLEAR
    return [Sign("yes" if sure else "weak", f"one row is {ratio:.2f} times those around")]


def visible(made: Made, twin: Made) -> tuple[str, str]:
    """Return how visible a fault is, and by what."""
    found = signs(made, twin)
    for how in ("yes", "weak"):
        what = [sign.what for sign in found if sign.visible == how]
        if what:
            return how, "; ".join(what)
    return "no", ""
