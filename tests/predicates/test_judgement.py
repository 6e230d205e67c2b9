"""Runs that are easily judged wrong, each with the leaf it must end at and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_tree
from tests.conftest import falling, make_run

if TYPE_CHECKING:
    from pathlib import Path

TREE = load_tree()
ROWS = 1000
AT = np.arange(ROWS)
ONES = np.ones(ROWS)
NOISY = np.exp(np.random.default_rng(0).normal(0, 0.2, ROWS))


def loss(**changes: Any) -> Any:
    """A healthy loss of 1,000 rows; `nan_from`, `spike` (step, height) and `rise` (step, height) change it."""
    values = falling(ROWS, 0.03)
    if "spike" in changes:
        values[changes["spike"][0]] += changes["spike"][1]
    if "rise" in changes:
        start, height = changes["rise"]
        values[start:] += np.linspace(0, height, ROWS - start)
    if "nan_from" in changes:
        values[changes["nan_from"] :] = np.nan
    return values


def nan_from(step: int, values: Any = ONES) -> Any:
    """A series that is NaN from a step on."""
    return np.where(step > AT, values, np.nan)


def lowered(start: int, times: int) -> Any:
    """A loss scale of 65,536 that is halved at each of so many steps."""
    return 65536.0 * 0.5 ** np.clip(AT - start + 1, 0, times)


CASES = {
    "dead in fp16 with a scale that never moved": (
        {"loss": loss(nan_from=900), "loss_scale": ONES * 65536, "grad_norm": nan_from(900)},
        {"dtype": "fp16"},
        "scale-constant",
    ),
    "dead in fp16, grad_norm blank from then on": (
        {"loss": loss(nan_from=900), "loss_scale": ONES * 65536},
        {"dtype": "fp16"},
        "scale-constant",
    ),
    "a scale that collapses though no grad_norm was logged": (
        {"loss": loss(), "loss_scale": lowered(600, 40)},
        {"dtype": "fp16"},
        "scale-collapse",
    ),
    "a scale on its floor, overflow after overflow": (
        {"loss": loss(), "loss_scale": lowered(600, 16), "grad_norm": nan_from(600)},
        {"dtype": "fp16"},
        "scale-collapse",
    ),
    "a scale that found its level at the start": (
        {"loss": loss(), "loss_scale": 65536.0 * 0.5 ** np.clip(20 - AT, 0, 20), "grad_norm": ONES},
        {"dtype": "fp16"},
        "healthy",
    ),
    "overflows at the start, a structural NaN at 900": (
        {
            "loss": loss(nan_from=900),
            "grad_norm": np.where(AT < 5, np.inf, nan_from(900, NOISY)),
            "loss_scale": np.where(AT < 5, 65536.0 / 2 ** AT.clip(0, 5), 4096.0),
        },
        {"dtype": "fp16"},
        "nan-forward",
    ),
    "bf16 has no scaler to blame": ({"loss": loss(nan_from=900)}, {"dtype": "bf16"}, "nan-unlocated"),
    "bf16 with the placeholder scale 1": (
        {"loss": loss(), "loss_scale": ONES, "grad_norm": np.where(AT == 500, np.inf, 1.0)},
        {"dtype": "bf16"},
        "grad-nonfinite",
    ),
    "one NaN in fp16 that was got over": (
        {"loss": np.where(AT == 100, np.nan, loss()), "grad_norm": np.where(AT == 99, np.inf, 1.0)},
        {"dtype": "fp16"},
        "nan-skipped",
    ),
    "a gradient that explodes slowly": (
        {"loss": loss(nan_from=900), "grad_norm": nan_from(900, np.exp(np.clip(AT - 600, 0, 300) / 43))},
        {"dtype": "fp32"},
        "nan-backward",
    ),
    "a grad_norm logged after clipping proves nothing": (
        {"loss": loss(nan_from=900), "grad_norm": nan_from(900)},
        {"dtype": "fp32"},
        "nan-unlocated",
    ),
    "a loss that explodes before it breaks": (
        {"loss": nan_from(900, loss() * np.exp(np.clip(AT - 850, 0, 50) / 3)), "grad_norm": nan_from(900)},
        {"dtype": "fp32"},
        "nan-backward",
    ),
    "mostly NaN, finite at the end": ({"loss": np.where((AT > 100) & (AT < 970), np.nan, loss())}, {}, "nan-unlocated"),
    "a rise over the last tenth": ({"loss": loss(rise=(900, 1.0))}, {}, "slow-rise"),
    "a jump of the rate by plan": (
        {"loss": loss(spike=(500, 4)), "lr": np.where(AT < 500, 1e-4, 1e-3)},
        {"lr_schedule": "cosine_with_restarts"},
        "spike-unexplained",
    ),
    "an epoch's batches in their order": (
        {"loss": loss(spike=(540, 4)), "batch_id": AT % 500},
        {},
        "spike-unexplained",
    ),
    "a healed spike does not hide the jump after it": (
        {"loss": loss(spike=(700, 5)) + np.where(AT > 740, 1.0, 0)},
        {},
        "spike-persistent",
    ),
    "a jump of the rate long after the spike is not its cause": (
        {"loss": loss() + np.where(AT >= 300, 2.0, 0), "lr": np.where(AT < 800, 1e-3, 5e-3)},
        {},
        "spike-persistent",
    ),
    "a blow-up in the last rows does not raise its own bar": (
        {"loss": loss() + np.where(AT >= 980, np.exp(AT.clip(980) - 980.0), 0)},
        {},
        "spike-open",
    ),
    "a jump within the first level": ({"loss": np.where(AT < 5, loss(), 1e6 + loss())}, {}, "slow-rise"),
    "a rise that levels off high": (
        {"loss": loss() + np.clip((AT - 200) / 60, 0, 1) * 8},
        {},
        "slow-rise",
    ),
    "a restart of the cosine goes back to a rate that the run had": (
        {
            "loss": loss() + np.where(AT >= 500, 0.5 * np.exp(-(AT.clip(500) - 500) / 20), 0),
            "lr": 1e-3 * (1 - (AT % 500) / 500),
        },
        {},
        "spike-minor",
    ),
    "gradients that break though nothing names the dtype": (
        {"loss": loss(), "grad_norm": nan_from(500)},
        {},
        "grad-nonfinite",
    ),
    "a tiny step that stays is no persistent spike": (
        {"loss": np.round(falling(ROWS, 0.0), 1) + np.where(AT > 800, 0.02, 0)},
        {},
        "spike-minor",
    ),
}


@pytest.mark.parametrize(("columns", "config", "leaf"), CASES.values(), ids=CASES)
def test_a_run_that_is_easily_judged_wrong(columns: dict[str, Any], config: dict[str, Any], leaf: str) -> None:
    """The worst finding is what an engineer would name, and no finding blames what was not logged."""
    found = diagnose(make_run(columns, **config), TREE)
    worst = [f.leaf.id for f in found.findings if f.leaf.severity in ("warning", "critical")]
    assert (worst or [found.end.id])[0] == leaf, [(v.question.id, v.answer.verdict) for v in found.path]
    for finding in found.findings:
        if config.get("dtype") != "fp16":
            assert not finding.leaf.id.startswith(("fp16", "scale"))


def test_a_nan_never_ends_in_a_leaf_that_is_ok() -> None:
    """Whatever else is logged, a loss that is NaN at the end is critical."""
    for dtype in (None, "fp16", "bf16", "fp32", "fp8"):
        for scale in (None, ONES, ONES * 65536, lowered(600, 3), lowered(600, 40), ONES * np.nan):
            for grad_norm in (None, ONES, nan_from(900), nan_from(300)):
                columns = {"loss": loss(nan_from=900), "loss_scale": scale, "grad_norm": grad_norm}
                config: dict[str, Any] = {"dtype": dtype} if dtype else {}
                run = make_run({k: v for k, v in columns.items() if v is not None}, **config)
                assert diagnose(run, TREE).verdict == "critical"


def test_the_checkpoint_lies_before_the_first_repeat_and_before_the_jump() -> None:
    """A loader bug is restarted from before the first repeat, a schedule bug from before the jump."""
    repeats = np.where((AT >= 420) & (AT < 500), 420, AT)
    run = make_run({"loss": loss(spike=(500, 4)), "batch_id": repeats}, checkpoint_every=50)
    finding = diagnose(run, TREE).findings[0]
    assert finding.leaf.id == "spike-duplicate-batch"
    assert finding.restart is not None
    assert finding.restart.checkpoint_step == 400
    run = make_run({"loss": loss(spike=(500, 4)), "lr": np.where(AT < 497, 1e-3, 1e-2)}, checkpoint_every=1)
    finding = diagnose(run, TREE).findings[0]
    assert finding.restart is not None
    assert (finding.leaf.id, finding.restart.checkpoint_step) == ("spike-lr-jump", 496)


def test_no_checkpoint_is_advised_from_inside_earlier_trouble() -> None:
    """A run that jumped at 300 and died at 550 restarts from before 300, whatever its headline."""
    values = np.where(AT < 300, 2.0, 50.0) + 0.02 * np.sin(AT * 1.7)
    found = diagnose(make_run({"loss": nan_from(550, values)}, checkpoint_every=100), TREE)
    assert found.findings[0].leaf.id == "nan-unlocated"
    assert found.findings[0].restart is not None
    assert found.findings[0].restart.checkpoint_step == 200


def test_a_run_that_is_bad_from_its_first_row_has_no_checkpoint() -> None:
    """Nothing in a log whose first row is NaN shows that an older checkpoint is sound."""
    run = make_run({"loss": [np.nan] * 100}, steps=range(1000, 1100), checkpoint_every=100)
    restart = diagnose(run, TREE).findings[0].restart
    assert restart is not None
    assert restart.checkpoint_step is None


def test_set_and_literal_reach_the_causes() -> None:
    """The panel below a leaf judges by the same thresholds as the question that led there."""
    grad_norm = np.where(AT == 500, 15.0, 1.0)
    run = make_run({"loss": loss(spike=(500, 4)), "grad_norm": grad_norm})
    usual = diagnose(run, TREE, overrides={"Q2.3": {"grad_norm_factor": 10.0}}).findings[0]
    assert {c.cause.id: str(c.state) for c in usual.causes}["Q2.3.grad_norm"] == "confirmed"
    letter = diagnose(run, TREE, literal=True).findings[0]
    assert {c.cause.id: str(c.state) for c in letter.causes}["Q2.3.grad_norm"] != "likely"


def test_weight_norms_logged_too_rarely_are_unknown() -> None:
    """Norms logged every 500 steps can't show a change within 200."""
    steps = np.arange(0, 10_000, 10)
    run = make_run({"loss": loss(rise=(600, 2.0))}, steps=steps)
    sparse = make_run({"weight_norm/a": np.geomspace(10, 100, 20)}, steps=steps[::50])
    both = type(run)("made", {**run.series, **sparse.series})
    answers = {visit.question.id: visit.answer.verdict for visit in diagnose(both, TREE).path}
    assert answers["Q4.3"] == "unknown"


def test_a_person_may_answer_in_the_documents_words() -> None:
    """`Q1.3=attention` is an answer: a layer."""
    run = make_run({"loss": loss(nan_from=900)}, dtype="fp32")
    assert diagnose(run, TREE, answers={"Q1.3": "attention"}).end.id == "nan-layer"


def resumed(folder: Path, change: float, lr: float = 1e-3) -> Any:
    """A run whose log goes back from step 500 to 400, the loss `change` higher from there on."""
    values = falling(ROWS, 0.02)
    first = [(step, values[step], 1e-3) for step in range(500)]
    second = [(step, values[step] + change, lr) for step in range(400, ROWS)]
    file = folder / "metrics.csv"
    file.write_text("step,loss,lr\n" + "".join(f"{s},{v},{r}\n" for s, v, r in first + second), encoding="utf-8")
    return diagnose(load_run(file))


@pytest.mark.parametrize(("change", "leaf"), [(1.0, "resume-jump"), (-0.4, "resume-gain"), (0.0, "resume-ok")])
def test_a_resume_is_judged_at_its_seam(tmp_path: Path, change: float, leaf: str) -> None:
    """A loss that jumps, that gains, and that goes on."""
    found = resumed(tmp_path, change)
    ids = [finding.leaf.id for finding in found.findings]
    assert (leaf in ids) is (leaf != "resume-ok")
    assert not any(id_.startswith("spike") for id_ in ids)


def test_a_rate_that_is_not_restored_is_told(tmp_path: Path) -> None:
    """The jump comes with what else changed at the seam."""
    found = resumed(tmp_path, 1.0, lr=3e-3)
    texts = [item.text for finding in found.findings for item in finding.evidence if finding.leaf.id == "resume-jump"]
    assert any("lr goes from 0.001 to 0.003" in text for text in texts)


def test_an_eval_loss_that_breaks_is_found() -> None:
    """NaN on the held-out data alone, as an exporter of training loss hides it."""
    evals = np.where(AT < 600, falling(ROWS), np.nan)
    found = diagnose(make_run({"loss": loss(), "eval_loss": evals}))
    assert next((f.leaf.id, f.onset_step) for f in found.findings) == ("eval-nonfinite", 600)
    once = diagnose(make_run({"loss": loss(), "eval_loss": np.where(AT == 600, np.nan, falling(ROWS))}))
    assert once.verdict in ("ok", "note")
