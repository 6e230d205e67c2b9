"""Signatures of established causes: each is told for one made run, ruled out for another, and raises nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.run import Gap, Resume, Run
from stabtree.tree.load import load_tree, load_trees
from stabtree.tree.model import Severity
from tests.conftest import ask, ask_node, falling, make_run

TREES = load_trees()
ALL = {item.id: item for name in ("sft", "grpo", "signatures") for item in load_tree(name).signatures}
TESTED = [id_ for id_, item in ALL.items() if item.test]

ROWS = 200
AT = np.arange(ROWS)
ONES = np.ones(ROWS)
NAN = ONES * np.nan
LOSS = falling(ROWS)
GRAD = np.exp(np.random.default_rng(1).normal(0, 0.2, ROWS))
LR = 1e-4 * (1 - AT / ROWS)
ZERO = np.where(AT < 2, 1.5, 0.0)


def nan_from(step: int, values: Any = LOSS) -> Any:
    """Values that are NaN from a step on."""
    return np.where(step > AT, values, np.nan)


def nan_at(step: int, values: Any = LOSS) -> Any:
    """Values with one NaN."""
    return np.where(step == AT, np.nan, values)


def resumed(values: Any) -> Run:
    """A run that went back from step 120 to step 100."""
    return replace(make_run({"loss": values}), resumes=(Resume(120, 100, 20),))


def with_gap(grad_norm: Any) -> Run:
    """A run whose loss is no longer logged from step 150 on."""
    run = make_run({"loss": LOSS, "grad_norm": grad_norm})
    return replace(run, gaps=(Gap("loss", 150, 199, 50, at_end=True),))


DEAD = {"loss": ZERO, "grad_norm": NAN, "lr": LR}
FINE = {"loss": LOSS, "grad_norm": GRAD, "lr": LR}

# For each signature a run that it is told of and one that it is ruled out for.
CASES: dict[str, tuple[Run, Run]] = {
    "T1": (make_run(DEAD, overlap_comm=True), make_run(DEAD, overlap_comm=False)),
    "T2": (make_run(DEAD), make_run(FINE)),
    "T3": (make_run({**DEAD, "loss": ONES * 0}), make_run({**DEAD, "loss": np.where(AT < 50, 1.0, 0.0)})),
    "T4": (make_run({**DEAD, "lr": ONES * 1e-4}, dtype="fp16"), make_run(DEAD, dtype="fp16")),
    "T5": (make_run({"loss": np.where(AT < 1, 4000.0, ZERO)}), make_run({"loss": np.where(AT < 1, 4000.0, LOSS)})),
    "T7": (make_run({"loss": nan_from(1)}, dtype="fp16"), make_run({"loss": nan_from(1)}, dtype="bf16")),
    "T8": (make_run({"loss": NAN}), make_run({"loss": nan_from(1)})),
    "T9": (make_run({"loss": nan_from(150, np.where(AT > 145, 9.0, LOSS))}), make_run({"loss": nan_from(150)})),
    "T10": (make_run({"loss": nan_from(150, np.where(AT > 145, 9.0, LOSS))}), make_run({"loss": nan_from(150)})),
    "T11": (make_run(FINE, grad_clip=0), make_run(FINE, grad_clip=1.0)),
    "T12": (make_run({"loss": nan_from(150)}), make_run({"loss": nan_from(150, np.where(AT > 145, 9.0, LOSS))})),
    "T13": (make_run({"loss": nan_at(90)}), make_run({"loss": nan_from(90)})),
    "T14": (make_run({"loss": LOSS, "grad_norm": nan_at(90, GRAD)}), make_run({"loss": LOSS, "grad_norm": NAN})),
    "T15": (make_run({"loss": NAN}), make_run({"loss": LOSS})),
    "T17": (
        make_run({"loss": LOSS, "loss_scale": ONES / 64}),
        make_run({"loss": np.where(AT < 100, LOSS, 2.0), "loss_scale": np.where(AT < 100, 1024.0, 1 / 64)}),
    ),
    "T20": (make_run({"loss": LOSS, "grad_norm": nan_at(90, GRAD)}), make_run(FINE)),
    "T21": (resumed(np.where(AT >= 100, LOSS + 3, LOSS)), resumed(LOSS)),
    "T22": (resumed(np.where(AT >= 100, LOSS + 3, LOSS)), make_run({"loss": np.where(AT >= 100, LOSS + 3, LOSS)})),
    "T23": (
        make_run({"loss": np.where(AT == 0, 2.3, 11.0), "lr": 1e-9 * ONES}),
        make_run({"loss": np.where(AT == 0, 2.3, 11.0), "lr": LR}),
    ),
    "T24": (make_run({"loss": LOSS, "grad_norm": ONES * 0, "lr": ONES * 0}), make_run(FINE)),
    "T25": (make_run({"loss": LOSS, "grad_norm": 1000 * GRAD}), make_run(FINE)),
    "T26": (
        make_run({"loss": LOSS, "grad_norm": 8192 * GRAD, "loss_scale": 4096 * ONES}),
        make_run({"loss": LOSS, "grad_norm": 8192 * GRAD}),
    ),
    "T27": (with_gap(nan_from(150, GRAD)), with_gap(GRAD)),
    "T28": (make_run({"loss": LOSS, "reward": GRAD}), make_run({"loss": LOSS})),
    "T29": (make_run(FINE, dtype="fp8"), make_run(FINE, dtype="fp32")),
    **{
        id_: (make_run({"loss": LOSS, "token_accuracy": GRAD}), make_run({"loss": LOSS}))
        for id_ in ("S20.samples", "S20.rank", "S20.lr")
    },
}


def verdict(id_: str, run: Run) -> str:
    """What a signature's test answers for a run."""
    return ask_node(ALL[id_], run).verdict


def test_every_signature_with_a_test_has_its_two_runs() -> None:
    """None goes untested."""
    assert sorted(CASES) == sorted(TESTED)


@pytest.mark.parametrize("id_", CASES)
def test_a_signature_is_told_of_one_run_and_ruled_out_for_another(id_: str) -> None:
    """Likely, or confirmed where a setting tells its causes apart; and no for a run that only looks like it."""
    told, other = CASES[id_]
    assert verdict(id_, told) in ("yes", "likely")
    assert verdict(id_, other) == "no"


def test_a_setting_tells_causes_with_one_trace_apart() -> None:
    """Without it the overlap is likely, with it confirmed; a kernel stays likely, since nothing names it."""
    assert verdict("T1", make_run(DEAD)) == "likely"
    assert verdict("T1", make_run(DEAD, overlap_comm=True)) == "yes"
    assert verdict("T2", make_run(DEAD, overlap_comm=True)) == "likely"
    assert verdict("T4", make_run({**DEAD, "lr": ONES * 1e-4}, dtype="fp16")) == "yes"


@pytest.mark.parametrize("id_", ALL)
def test_a_signature_names_its_thread_an_example_and_a_fix(id_: str) -> None:
    """It says where it comes from and what it looked like there."""
    item = ALL[id_]
    assert item.fixes
    assert item.source.startswith(("https://", "public notes"))
    assert item.example or id_.startswith(("S20", "T29"))


def test_the_trace_ranks_the_causes_under_a_finding() -> None:
    """A dead run under ZeRO-2 with overlapped communication names it first."""
    finding = diagnose(make_run(DEAD, dtype="bf16", overlap_comm=True), TREES).findings[0]
    assert finding.leaf.id in ALL["T1"].of
    assert (finding.causes[0].cause.id, str(finding.causes[0].state)) == ("T1", "confirmed")


def test_what_is_ruled_out_of_a_list_of_signatures_is_not_told() -> None:
    """A finding names the signatures that something speaks for, and its own causes whatever they came to."""
    finding = diagnose(make_run({"loss": nan_from(150), "grad_norm": GRAD}, dtype="fp32"), TREES).findings[0]
    states = {judged.cause.id: str(judged.state) for judged in finding.causes}
    assert not {id_ for id_ in states if id_ in ALL and states[id_] in ("ruled out", "not checkable")}
    assert len([id_ for id_ in states if id_ not in ALL]) > 1


def test_signatures_raise_no_alarm() -> None:
    """Their file holds no question, and no run gets another verdict through them."""
    tree = load_tree("signatures")
    assert not tree.questions
    assert not tree.leaves
    assert all(
        leaf.severity is not Severity.OK for item in ALL.values() for leaf in map(TREES.leaves.get, item.of) if leaf
    )


@pytest.mark.parametrize("key", ["dtype", "grad_clip", "overlap_comm"])
def test_a_setting_that_is_not_known_is_unknown(key: str) -> None:
    """Silence is no answer."""
    assert ask("setting_is", make_run(FINE), key=key, value="x").verdict == "unknown"


def test_a_number_is_compared_as_one() -> None:
    """`0` is 0.0, and a word is no number."""
    run = make_run(FINE, grad_clip=0.0)
    assert ask("setting_is", run, key="grad_clip", value="0").verdict == "likely"
    assert ask("setting_is", run, key="grad_clip", value="none").verdict == "no"
