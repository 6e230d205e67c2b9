"""Why a node was not reached, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.report.json import number, plain, visit_dict

if TYPE_CHECKING:
    from stabtree.tools.tune.why.model import Flip, Margin, Stage, WhyNot


def why_not_dict(result: WhyNot) -> dict[str, Any]:
    """Return why a node was not reached as plain values, as `--json` writes them."""
    return {
        "node": result.node,
        "title": result.title,
        "came": str(result.status).replace(" ", "_"),
        "why": result.why,
        "way": [_stage(stage) for stage in result.stages],
        "set": [_flip(flip) for flip in result.settings],
        "log": [{"metric": name, "log": how} for name, how in result.lacks],
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        **visit_dict(stage.visit),
        "walked": stage.walked,
        "wanted": list(stage.wanted),
        "to": stage.target,
        "agrees": stage.agrees,
        "margin": _margin(stage.margin),
        "set": [_flip(flip) for flip in stage.flips],
        "log": [{"metric": name, "log": how} for name, how in stage.lacks],
        "by_hand": stage.person,
    }


def _margin(margin: Margin | None) -> dict[str, Any] | None:
    if margin is None:
        return None
    return {
        "metric": margin.evidence.metric or None,
        "steps": [int(step) for step in margin.evidence.steps],
        "observed": number(margin.value),
        "threshold": number(margin.threshold),
        "missed_by": number(margin.missed),
        "decides": margin.decides,
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {"key": flip.key, "now": plain(flip.now), "value": plain(flip.value)}
