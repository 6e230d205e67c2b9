"""Whether the true cause of a fault is told, and told first, on runs whose fault is known.

    python -m benchmarks.causes TRAINERS FAULTBENCH [--list]

TRAINERS holds runs/ and truth/ of `benchmarks.trainers`, FAULTBENCH those of `benchmarks.faultbench`. Only runs whose
fault is visible and was found count. A cause is *told* where it stands on the first screen: at most three of the first
finding, none of them ruled out. What each fault may be called is fixed in `TRUE`, and no threshold is tuned on it.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import stabtree
from stabtree.diagnosis.judged import SILENT
from stabtree.loaders import load_runs
from stabtree.tree.load import load_trees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis

ON_SCREEN = 3

RATE = (
    "T30 Q4.5.rate O22.high Q4.4.lr Q1.4.lr O1.chance.rate O4.climb.rate O22.lost.rate"
    " G2.lr G8.lost.rate G10.rate T10 updates-too-large"
)
JUMP = "Q2.4.lr Q2.3.lr spike-lr-jump lr-rises-late"
BATCH = "Q2.4.grad_norm Q2.3.grad_norm spike-bad-batch S20.samples"
FROZEN = "O17.frozen O1.end.frozen O2.optimizer O1.end.optimizer O3.graph T24 weights-still"
SOFTMAX = "double-softmax O12.softmax"
DATA = "T32 Q4.5.data Q4.4.data O22.lost.data"
ENDS = "lr-zero lr-ends-early lr-frozen T45"
ONE_BATCH = "Q1.4.data Q1.4.reduction Q1.1.data T13"
NO_ZERO = "T38 O4.sum O4.climb.sum gradients-add-up"

TRUE: dict[str, str] = {
    # faults of the trainers' runs
    "noise": DATA,
    "label_noise": DATA,
    "noise_labels": "T35 O1.labels O1.end.labels O1.chance.labels",
    "label_shift": "O14.leak O14.batch.leak",
    "wd10": "T36 weight-decay-high",
    "lr_high": RATE,
    "lr_up_end": "O23.late.set lr-rises-late lr-rising Q4.2.schedule O23.late.set",
    "lr_jump": JUMP,
    "lr_zero": ENDS,
    "sched_interval": ENDS,
    "reward_zero": "G1.function",
    "all_masked": "O14.masked T3",
    "bad_batch": BATCH,
    "crash": "exception",
    "nan_at": ONE_BATCH,
    "nan_batch": ONE_BATCH,
    "nan_batch_skipped": ONE_BATCH,
    "nan_obs": "T46",
    "empty_mask": "Q1.4.reduction T13",
    "log0": "Q1.4.log0",
    "overfit": "overfitting memorised O27.few O27.small",
    "resume_no_opt": "resume-jump lr-restarts T21 T22",
    "double_softmax": SOFTMAX,
    "frozen": FROZEN,
    "not_in_opt": FROZEN,
    "no_zero_grad": NO_ZERO,
    "corrupt_opt": "Q2.4.moments Q2.3.state",
    "scale_const": "scale-constant",
    "stuck": "spike-duplicate-batch Q2.3.batch Q2.4.batch O27.stuck T33 loss-drops",
    "nan_data": f"{ONE_BATCH} T15",
    "fp16_overflow": "fp16-overflow fp16-suspected scale-collapse Q1.4.fp16 Q3.4.activation Q3.2.activations",
    "clip": "T37 O9.clip always-clipped clipped-throughout T19",
    "entropy_collapse": "policy-collapse G2.lr G2.entropy",
    "reward_breaks": "G2.function G1.function reward-constant reward-function-zero no-advantage",
    "reward_hack_len": "length-hacking G14.pays",
    "eval_norm": "O27.eval O27.prepared",
    "no_step": FROZEN,
    "swapped": "preferences-swapped G23.sets",
    "some_masked": ONE_BATCH,
    "sched_epoch": "O23.epochs O23.epochs",
    # faults of faultbench
    "SPIKE_BAD_BATCH": BATCH,
    "SPIKE_PERSISTENT": "Q2.4.moments Q2.4.grad_norm Q2.4.lr Q2.3.state",
    "SPIKE_LR_JUMP": JUMP,
    "SPIKE_DUP_BATCH": "Q2.3.batch Q2.4.batch spike-duplicate-batch",
    "DIV_LR_RISING": "lr-rising Q4.2.schedule Q4.2.warmup lr-rises-late",
    "DIV_WD_LOW_NORM_GROWTH": "weight-decay-low O4.climb.weights",
    "DIV_BAD_DATA_RAMP": DATA,
    "NAN_LOG0_FP32": "Q1.4.log0",
    "NAN_BAD_DATA": ONE_BATCH,
    "NAN_LR_EXPLOSION": RATE,
    "NAN_BF16": f"{RATE} P17.init Q1.4.log0",
    "NAN_FP16_OVERFLOW_NOSCALER": "fp16-overflow fp16-suspected Q3.4.activation Q1.4.activation",
    "FP16_SCALE_COLLAPSE": "scale-collapse T18 Q3.2.activations Q3.2.lr",
    "FP16_SCALE_CONSTANT_OVERFLOW": "scale-constant T4",
    "FLAT_PARAMS_NOT_IN_OPT": FROZEN,
    "FLAT_LR_TOO_LOW": "O7.rate O7.lr O7.low lr-too-low O1.end.rate",
    "SCHED_LR_FROZEN": "lr-frozen lr-ends-early",
    "DOUBLE_SOFTMAX": SOFTMAX,
    "DEAD_RELU": f"dead-units {RATE}",
    "OVERFIT": "overfitting memorised O27.few O27.small",
}
"""What each fault may be called: causes, and leaves that name their cause themselves."""


def _runs(trainers: Path, bench: Path) -> Iterator[tuple[str, str, Path]]:
    """(id, fault, log) of every run with a visible fault."""
    for file in sorted((trainers / "truth").glob("*.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        if not truth["healthy"] and truth["visible"] == "yes":
            yield truth["id"], truth["fault"], trainers / truth["targets"][0]["path"]
    for file in sorted((bench / "truth").glob("*.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        if not truth["healthy"]:
            yield file.stem, truth["fault"], bench / "runs" / file.stem


def told(diagnosis: Diagnosis) -> tuple[list[str], list[str], dict[str, str]]:
    """Of a diagnosis: the causes on the first screen, the leaves that it names, and the state of each cause."""
    finding = diagnosis.findings[0]
    states = {judged.cause.id: str(judged.state) for judged in finding.causes}
    shown = [id_ for id_, state in states.items() if state not in SILENT][:ON_SCREEN]
    return shown, [item.leaf.id for item in diagnosis.reached], states


def _count(name: str, fault: str, path: Path, count: Counter[str]) -> str:
    """Count what a run is told, and say so in a line; empty for a run that is not found."""
    loaded = [item.run for item in load_runs(path)]
    runs = [run for run in loaded if not isinstance(run, stabtree.StabtreeError)]
    found = [stabtree.diagnose(run, load_trees(run)) for run in runs]
    alarmed = [diagnosis for diagnosis in found if diagnosis.verdict in ("critical", "warning")]
    if not alarmed:
        return ""
    shown, leaves, states = told(alarmed[0])
    true = set(TRUE[fault].split())
    first = leaves[0] in true or bool(shown and shown[0] in true)
    among = first or bool(true & {*shown, *leaves})
    wrong = [id_ for id_, state in states.items() if state in ("confirmed", "likely") and id_ not in true]
    count["runs"] += 1
    count["first"] += first
    count["among"] += among
    count["shown"] += len(shown)
    count["all told"] += sum(state not in SILENT for state in states.values())
    for state in ("confirmed", "likely"):
        count[state] += sum(own == state for own in states.values())
        count[f"wrong {state}"] += sum(states[id_] == state for id_ in wrong)
    mark = "first" if first else "told" if among else "MISSED"
    bad = " ".join(f"{id_}:{states[id_]}" for id_ in wrong)
    line = f"{mark:7s} {name:20s} {fault:26s} {' '.join(leaves[:3])} | "
    line += " ".join(f"{id_}:{states[id_]}" for id_ in shown)
    return line + (f" | WRONG {bad}" if bad else "")


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainers", type=Path)
    parser.add_argument("faultbench", type=Path)
    parser.add_argument("--list", action="store_true", help="every run")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: dict[str, Counter[str]] = {"trainers": Counter(), "faultbench": Counter()}
    lines = []
    for name, fault, path in _runs(options.trainers, options.faultbench):
        half = "trainers" if options.trainers in path.parents else "faultbench"
        try:
            lines.append(_count(name, fault, path, counts[half]))
        except stabtree.StabtreeError:
            continue  # a log that can't be read is no finding
    if options.list:
        print("\n".join(sorted(filter(None, lines))), end="\n\n")
    for half, count in counts.items():
        n = max(count["runs"], 1)
        print(f"{half}: {count['runs']} found")
        print(f"  true cause told   {count['among']:>4d} = {count['among'] / n:6.1%}")
        print(f"  true cause first  {count['first']:>4d} = {count['first'] / n:6.1%}")
        for state in ("confirmed", "likely"):
            print(f"  wrong {state:11s} {count[f'wrong {state}']:>4d} of {count[state]}")
        print(f"  told on average   {count['shown'] / n:6.2f} (of {count['all told'] / n:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
