"""Diagnose every run below a folder and write predictions in faultbench's format.

    python benchmarks/faultbench.py DIR --predictions preds.json [--literal]

Reads nothing but the runs, through the public API. `score.py` of the benchmark scores the predictions. What a watcher
would have been told while they grew, `benchmarks.watch` measures.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stabtree

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Incident

LEAVES = {
    "nan-skipped": "s2.spike",
    "spike-open": "s2.spike",
    "fp16-suspected": "s1.nan_fp16_overflow",
    "spike-lr-jump": "s2.lr_discontinuity",
    "spike-duplicate-batch": "s2.dup_batch",
    "spike-bad-batch": "s2.bad_batch",
    "spike-unexplained": "s2.recoverable",
    "spike-minor": "s2.recoverable",
    "spike-persistent": "s2.persistent",
    "scale-constant": "s3.scale_constant",
    "scale-collapse": "s3.scale_collapse",
    "fp16-overflow": "s1.nan_fp16_overflow",
    "grad-nonfinite": "s3.grad_nonfinite_fp16",
    "normal-backoff": "s3.healthy_backoff",
    "grad-skipped": "s3.healthy_backoff",
    "lr-rising": "s4.lr_rising",
    "weight-decay-low": "s4.weight_norm",
    "weight-decay-high": "s4.weight_norm",
    "grad-norm-rising": "s4.grad_norm_rising",
    "slow-rise": "s4.slow_rise",
    "plateau": "s4.plateau",
    "flat-from-start": "other.flat_from_start",
    "weights-still": "other.flat_from_start",
    "ends-at-start": "other.flat_from_start",
    "no-gradient": "other.flat_from_start",
    "lr-too-low": "other.lr_too_low",
    "slow-learning": "other.slow_learning",
    "double-softmax": "other.double_softmax",
    "lr-frozen": "other.lr_frozen",
    "lr-ends-early": "other.slow_learning",
    "overfitting": "other.overfit",
    "dead-units": "other.dead_relu",
    "loop-broken": "other.flat_from_start",
    "gradients-add-up": "other.zero_grad_missing",
    "updates-too-large": "other.lr_too_high",
    "worse-than-start": "other.lr_too_high",
}
PERSISTENT_CAUSES = {"lr-jump": "s2.lr_discontinuity", "loader-order": "s2.dup_batch"}
CAUSES = {
    "s2.lr_discontinuity": ["SPIKE_LR_JUMP"],
    "s2.dup_batch": ["SPIKE_DUP_BATCH"],
    "s2.bad_batch": ["SPIKE_BAD_BATCH"],
    "s2.persistent": ["SPIKE_PERSISTENT"],
    "s3.scale_constant": ["FP16_SCALE_CONSTANT_OVERFLOW"],
    "s3.scale_collapse": ["FP16_SCALE_COLLAPSE"],
    "s1.nan_fp16_overflow": ["NAN_FP16_OVERFLOW_NOSCALER"],
    "s4.lr_rising": ["DIV_LR_RISING"],
    "s4.weight_norm": ["DIV_WD_LOW_NORM_GROWTH"],
    "s4.grad_norm_rising": ["DIV_BAD_DATA_RAMP"],
    "s1.nan_bf16": ["NAN_BF16"],
    "other.lr_too_low": ["FLAT_LR_TOO_LOW"],
    "other.double_softmax": ["DOUBLE_SOFTMAX"],
    "other.overfit": ["OVERFIT"],
    "other.lr_frozen": ["SCHED_LR_FROZEN"],
    "other.dead_relu": ["DEAD_RELU"],
    "other.zero_grad_missing": ["ZERO_GRAD_MISSING"],
}


CAUSE_KINDS = {
    ("nan", "loss-numerics"): "NAN_LOG0_FP32",
    ("nan", "targets-masked"): "NAN_LOG0_FP32",
    ("nan", "bad-batch"): "NAN_BAD_DATA",
    ("nan", "bad-inputs"): "NAN_BAD_DATA",
    ("nan", "lr-too-high"): "NAN_LR_EXPLOSION",
    ("divergence", "bad-inputs"): "DIV_BAD_DATA_RAMP",
    ("slow-divergence", "bad-inputs"): "DIV_BAD_DATA_RAMP",
    ("plateau-from-start", "optimizer-not-stepping"): "FLAT_PARAMS_NOT_IN_OPT",
    ("plateau-from-start", "lr-too-low"): "FLAT_LR_TOO_LOW",
    ("plateau-from-start", "loss-numerics"): "DOUBLE_SOFTMAX",
}
"""Kind of finding and cause -> the benchmark's name for the fault."""


def kinds_of(leaf: str, finding: Incident) -> list[str]:
    """The faults that a finding names: its leaf's own, then the causes that are told."""
    told = [item.cause.wider for item in finding.causes if item.state != "ruled out"]
    known = (CAUSE_KINDS.get((finding.leaf.kind, name)) for name in told)
    return [*dict.fromkeys([*CAUSES.get(leaf, []), *filter(None, known)])]


def leaf_of(diagnosis: Diagnosis, finding: Incident) -> str:
    """The benchmark's name for our leaf."""
    id_ = finding.leaf.id
    if id_ == "spike-persistent":
        confirmed = [
            PERSISTENT_CAUSES[c.cause.id]
            for c in finding.causes
            if c.state == "confirmed" and c.cause.id in PERSISTENT_CAUSES
        ]
        return confirmed[0] if confirmed else LEAVES[id_]
    if id_.startswith("nan-") or id_ in ("loss-stops", "eval-nonfinite"):
        dtype = next((v.answer.verdict for v in diagnosis.path if v.question.id == "Q1.2"), "fp32")
        return {"bf16": "s1.nan_bf16", "fp16": "s1.nan_fp16_overflow"}.get(dtype, "s1.nan_fp32")
    return LEAVES.get(id_, f"other.{id_}")


def predict(diagnosis: Diagnosis) -> dict[str, Any]:
    """One prediction."""
    healthy = diagnosis.verdict in ("ok", "note", "unknown")
    if not diagnosis.findings:
        return {"healthy": healthy, "section": "none", "leaf": None, "onset": None, "causes": []}
    # What no label of the benchmark names (a clip that never rests) says nothing of its faults.
    named = (f for f in diagnosis.reached if not leaf_of(diagnosis, f).endswith(f".{f.leaf.id}"))
    finding = next(named, diagnosis.findings[0])
    leaf = leaf_of(diagnosis, finding)
    section = leaf[1] if leaf.startswith("s") else "other"
    return {
        "healthy": healthy,
        "section": section,
        "leaf": leaf,
        "onset": finding.onset_step,
        "causes": kinds_of(leaf, finding),
    }


def main() -> int:
    """Diagnose all runs; exit with 1 when any of them crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--literal", action="store_true")
    options = parser.parse_args()
    tree = stabtree.load_tree() if options.literal else stabtree.load_trees()
    predictions: dict[str, Any] = {}
    crashes = 0
    for manifest in sorted(options.folder.rglob("manifest.json")):
        try:
            diagnosis = stabtree.diagnose(stabtree.load_run(manifest.parent), tree, literal=options.literal)
            predictions[manifest.parent.name] = predict(diagnosis)
        except Exception:
            crashes += 1
            print(f"{manifest.parent.name} crashed", file=sys.stderr)
            traceback.print_exc()
    options.predictions.write_text(json.dumps(predictions, indent=1) + "\n", encoding="utf-8")
    print(f"{len(predictions)} runs diagnosed, {crashes} crashed")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
