"""Run a competitor's published tool over every run below a folder and write predictions in faultbench's format.

    python benchmarks/peers.py DIR --tool losslint --predictions preds.json
    python benchmarks/peers.py DIR --all --out FOLDER
    python benchmarks/peers.py --requirements

Run it with the interpreter in which the tools are installed; it needs nothing else. Each tool gets the metrics file
as it is, with its default settings, as its user would start it; trainpulse reads JSONL only, so CSV is converted for it
without the empty cells, and it is told the name of the learning rate's column.

How findings become predictions, in the tool's favour where there is a choice:

- A finding at any level above information is an alarm; the run is healthy when there is none.
- The prediction is the alarm that stands first in the tool's table below, from the most telling to the least; without
  alarms it is the first remark. What a table lacks (speed, memory, input) has no leaf: section `other`.
- Tools say "NaN" whatever the precision, so the leaf takes the dtype from the manifest.
- A divergence together with a spike alarm is the benchmark's persistent spike.
  This rule and the tables' order were settled with the dev split's scores in view, for the tools and not against them.
- NaN in `batch_id` is dropped: a hash such as 1e504158 is no number.
- A cause counts as named as soon as the text of the chosen finding states it, even among others.

`findings` in a prediction lists all that the tool said, as level:id, each once; the scorer does not read it.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

TIME_LIMIT_S = 120
INFORMATION = ("info", "INFO")  # every other level is an alarm
# These become a leaf by the dtype or the other findings.
NAN, GRAD_NONFINITE, DIVERGENCE = "nan", "grad-nonfinite", "divergence"
NAN_LEAVES = {"bf16": "s1.nan_bf16", "fp16": "s1.nan_fp16_overflow"}
# The keys are a finding's id, or its id and what it is about.
LOSSLINT = {
    "nan_inf": NAN,
    "nan_inf grad_norm": GRAD_NONFINITE,
    "divergence": DIVERGENCE,
    "loss_spike": "s2.spike",
    "overfit_onset": "other.overfit",
    "step_backtrack": "other.resume_dup_steps",
    "stagnation": "s4.plateau",
}
RUNMEDIC = {
    "non_finite": NAN,
    "non_finite grad_norm": GRAD_NONFINITE,
    "no_learning": "other.flat_from_start",  # it means that there was no progress that a divergence could have lost
    "divergence": DIVERGENCE,
    "overfitting": "other.overfit",
    "loss_spikes": "s2.spike",
    "grad_spikes": "s2.spike",
    "constant_lr_plateau": "s4.plateau",
}
TRAINPROOF = {
    "TP-NAN": NAN,
    "TP-ZERO-LOSS-ONSET": NAN,  # its text: a NaN masked as zero looks so
    "TP-NAN-GRAD": GRAD_NONFINITE,
    "TP-ZERO-LR": "other.lr_too_low",
    "TP-ZERO-LOSS": "other.flat_from_start",
    "TP-ZERO-GRAD": "other.flat_from_start",
    "TP-FLAT": "other.flat_from_start",
    "TP-DIVERGE": DIVERGENCE,
    "TP-DEAD-RUN": "other.flat_from_start",
    "TP-OVERFIT": "other.overfit",
    "TP-GRAD-SPIKE": "s2.spike",
    "TP-ZERO-LR-PARTIAL": "other.lr_frozen",
}
TRAINPULSE = {
    "nan_detector": NAN,
    "nan_detector grad_norm": GRAD_NONFINITE,
    "gradient": "s2.spike",
    "learning_rate": "s2.lr_discontinuity",
    "loss_spike": "s2.spike",
    "gradient vanishing": "other.flat_from_start",
    "plateau": "s4.plateau",
}
TRAINSPOTTER = {
    "Diverged (non-finite values)": NAN,
    "Diverged (sustained growth)": DIVERGENCE,
    "Overfitting onset": "other.overfit",
    "Gradient-norm explosion": "s2.spike",
    "Loss spike": "s2.spike",
    "LR discontinuity": "s2.lr_discontinuity",
    "LR increased after its peak": "s4.lr_rising",
    "Plateau": "s4.plateau",
}
PASSED = "TP-PASS"  # trainproof says so of a log in which it found nothing
# A finding that says the file could not be read or judged says nothing about the run.
UNJUDGED = {"parse", PASSED, "TP-NOT-CHECKED", "TP-NO-LOSS", "TP-NO-RECORDS", "TP-CMP-ERROR"}
# The benchmark's kinds of fault, each with the phrases by which a finding's text names it.
CAUSES = {
    "NAN_LR_EXPLOSION": (
        "schedule never stops increasing",
        "Exploding gradients: the learning rate",
        "Lower the learning rate; this is the single most common cause",
    ),
    "NAN_BAD_DATA": ("NaN/inf in inputs or labels", "a single bad batch"),
    "NAN_LOG0_FP32": ("log(0)", "log/sqrt/division near zero"),
    "NAN_FP16_OVERFLOW_NOSCALER": ("fp16 overflow", "without a loss scaler", "check the loss-scaler didn't overflow"),
    "SPIKE_BAD_BATCH": ("Individual bad batches", "data shard or LR bug", "Check the batch at this step for"),
    "SPIKE_LR_JUMP": ("LR changed", "data shard or LR bug", "lr jumped from"),
    "DIV_LR_RISING": ("Learning rate too high for the later phase",),
    "DIV_BAD_DATA_RAMP": ("new data source mixed in", "Look for a data distribution shift"),
    "FLAT_PARAMS_NOT_IN_OPT": ("not passed to the optimizer",),
    "FLAT_LR_TOO_LOW": ("Learning rate far too low", "Learning rate is zero"),
    "SCHED_LR_FROZEN": ("Learning rate is zero",),
    "OVERFIT": ("Overfitting", "Mild overfitting", "eval loss has worsened"),
}


class Finding(NamedTuple):
    """What a tool said: its id, what it is about (a series or nothing), level, step and text."""

    id: str
    about: str
    level: str
    step: float | None
    text: str


def read_losslint(output: str, _report: Path) -> Iterable[Finding]:
    """The findings in `losslint check --format json`."""
    for found in json.loads(output)["findings"]:
        details = found["details"]
        steps = details.get("steps") or [step for _, step in details.get("backtracks", [])]
        step = steps[0] if steps else details.get("since_step")
        yield Finding(found["check"], details.get("series", ""), found["severity"], step, found["message"])


def read_runmedic(output: str, _report: Path) -> Iterable[Finding]:
    """The findings in `runmedic diagnose --json`."""
    for run in json.loads(output):
        roles = {name: role for role, names in run["roles"].items() for name in names}
        for found in run["findings"]:
            text = " ".join([found["title"], *found["evidence"], *found["likely_causes"]])
            about = roles.get(found["metric"], "")
            yield Finding(found["check"], about, found["severity"], found["step"], text)


def read_trainproof(output: str, _report: Path) -> Iterable[Finding]:
    """The findings in `trainproof doctor --json`; their steps stand in the evidence."""
    answer = json.loads(output)
    if answer["error"]:
        raise ValueError(answer["error"])
    if answer["not_judged"]["found"] and not answer["not_judged"]["judged"]:
        msg = f"it could not read {answer['not_judged']['unreadable']}"
        raise ValueError(msg)
    for report in answer["reports"]:
        for found in report["findings"]:
            text = f"{found['message']} {found['evidence']}"
            at = re.search(r"(?:Steps: \[|first at step |near step )(\d+)", text)
            yield Finding(found["id"], "", found["level"], float(at[1]) if at else None, text)


def read_trainpulse(_output: str, report: Path) -> Iterable[Finding]:
    """The alerts in the report that `trainpulse analyze --json-out` wrote."""
    for found in json.loads(report.read_text(encoding="utf-8"))["alerts"]:
        about = "vanishing" if found["message"].startswith("Vanishing") else found["metric_name"]
        yield Finding(found["detector"], about, found["severity"], found["step"], found["message"])


def read_trainspotter(output: str, _report: Path) -> Iterable[Finding]:
    """The findings in `trainspotter analyze --output json`."""
    for found in json.loads(output)["findings"]:
        text = " ".join([found["title"], found["message"], *found["fixes"]])
        yield Finding(found["title"], found["metric"], found["severity"], found["step_start"], text)


@dataclass(frozen=True)
class Tool:
    """A published tool: how it is started and read, its table, and what its command line needs beside the package."""

    arguments: tuple[str, ...]
    read: Callable[[str, Path], Iterable[Finding]]
    leaves: Mapping[str, str]
    jsonl_only: bool = False
    extra: str = ""
    needs: tuple[str, ...] = ()


TOOLS = {
    "losslint": Tool(("losslint.cli", "check", "{file}", "--format=json"), read_losslint, LOSSLINT),
    "runmedic": Tool(("runmedic", "diagnose", "{file}", "--json"), read_runmedic, RUNMEDIC),
    "trainproof": Tool(("trainproof", "doctor", "{file}", "--json"), read_trainproof, TRAINPROOF),
    "trainpulse": Tool(
        ("trainpulse.cli", "analyze", "{file}", "--lr-key=lr", "--json-out={report}"),
        read_trainpulse,
        TRAINPULSE,
        jsonl_only=True,
        extra="[cli]",
        needs=("click",),
    ),
    "trainspotter": Tool(("trainspotter.cli", "analyze", "{file}", "--output=json"), read_trainspotter, TRAINSPOTTER),
}
VERSIONS = "versions.json"  # which version of each tool gave the predictions beside it


def to_jsonl(source: Path, target: Path) -> Path:
    """The CSV's rows as JSON lines: numbers where a cell is one, no key where it is empty."""

    def value(cell: str) -> float | str:
        try:
            return float(cell)
        except ValueError:
            return cell

    with source.open(encoding="utf-8", newline="") as rows, target.open("w", encoding="utf-8") as lines:
        table = csv.reader(rows)
        header = next(table, [])
        for row in table:
            lines.write(json.dumps({key: value(cell) for key, cell in zip(header, row, strict=False) if cell}) + "\n")
    return target


def run_tool(tool: Tool, metrics: Path, scratch: Path) -> tuple[list[Finding], float]:
    """The tool's findings on one metrics file, and the seconds its process took; ValueError without an answer."""
    if tool.jsonl_only and metrics.suffix == ".csv":
        metrics = to_jsonl(metrics, scratch / "metrics.jsonl")
    report = scratch / "report.json"
    report.unlink(missing_ok=True)
    arguments = [argument.format(file=metrics, report=report) for argument in tool.arguments]
    command = [sys.executable, "-X", "utf8", "-m", *arguments]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=TIME_LIMIT_S, check=False)
    seconds = time.perf_counter() - start
    try:
        return list(tool.read(done.stdout, report)), seconds
    except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
        raise ValueError(f"exit {done.returncode}: {done.stderr[-200:] or error}") from error


def predict(tool: Tool, found: Iterable[Finding], dtype: str) -> dict[str, Any]:
    """One prediction from a tool's findings."""
    order = {key: place for place, key in enumerate(tool.leaves)}
    said = []
    for f in found:
        if f.id not in UNJUDGED and f.about != "batch_id":
            key = f"{f.id} {f.about}" if f"{f.id} {f.about}" in order else f.id
            said.append((f.level in INFORMATION, order.get(key, len(order)), key, f))
    if not said:
        return {"healthy": True, "section": "none", "leaf": None, "onset": None, "causes": [], "findings": []}
    said.sort(key=lambda entry: entry[:2])
    _, _, key, first = said[0]
    leaf = tool.leaves.get(key)
    spiked = any(tool.leaves.get(key) == "s2.spike" for remark, _, key, _ in said if not remark)
    if leaf == GRAD_NONFINITE and dtype == "fp16":
        leaf = "s3.grad_nonfinite_fp16"
    elif leaf in (NAN, GRAD_NONFINITE):
        leaf = NAN_LEAVES.get(dtype, "s1.nan_fp32")
    elif leaf == DIVERGENCE:
        leaf = "s2.persistent" if spiked else "s4.slow_rise"
    return {
        "healthy": all(remark for remark, *_ in said),
        "section": leaf[1] if leaf and leaf[0] == "s" else "other",
        "leaf": leaf,
        "onset": None if first.step is None else int(first.step),
        "causes": [fault for fault, phrases in CAUSES.items() if any(phrase in first.text for phrase in phrases)],
        "findings": list(dict.fromkeys(f"{f.level}:{key}" for _, _, key, f in said)),
    }


def score(name: str, folder: Path, predictions: Path) -> None:
    """Run one tool over all runs and write its predictions; one that is not installed is said to be so."""
    tool = TOOLS[name]
    if not all(importlib.util.find_spec(module) for module in (name, *tool.needs)):
        print(f"{name} is not installed: {sys.executable} -m pip install '{name}{tool.extra}'")
        return
    made: dict[str, Any] = {}
    spent, failed = 0.0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(folder.rglob("manifest.json")):
            try:
                manifest = json.loads(path.read_text(encoding="utf-8"))
                found, seconds = run_tool(tool, path.parent / manifest["metrics_file"], Path(scratch))
                made[path.parent.name] = predict(tool, found, manifest["dtype"])
                spent += seconds
            except (ValueError, KeyError, OSError, csv.Error, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"{name} gave no answer on {path.parent.name!r}: {str(error)!r}", file=sys.stderr)
    predictions.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    alarms = sum(not prediction["healthy"] for prediction in made.values())
    print(
        f"{name} {importlib.metadata.version(name)}: {len(made)} runs judged, {failed} without an answer, "
        f"{alarms} alarms, {spent / max(1, len(made)):.3f} s per run"
    )


def versions(folder: Path) -> None:
    """Write which versions of the tools are installed, into the folder that gets their predictions."""
    found = {name: importlib.metadata.version(name) for name in TOOLS if importlib.util.find_spec(name)}
    (folder / VERSIONS).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Run one tool or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--requirements", action="store_true", help="print what pip is to install")
    which.add_argument("--tool", choices=TOOLS)
    which.add_argument("--all", action="store_true")
    parser.add_argument("--predictions", type=Path, help="with --tool: the file to write")
    parser.add_argument("--out", type=Path, help="with --all: the folder that gets TOOL.json")
    options = parser.parse_args()
    if options.requirements:
        print(*(f"{name}{tool.extra}" for name, tool in TOOLS.items()))
    elif not options.folder:
        parser.error("the folder with the runs is missing")
    elif options.all:
        if not options.out:
            parser.error("--all needs --out FOLDER")
        options.out.mkdir(parents=True, exist_ok=True)
        for name in TOOLS:
            score(name, options.folder, options.out / f"{name}.json")
        versions(options.out)
    elif not options.predictions:
        parser.error("--tool needs --predictions FILE")
    else:
        score(options.tool, options.folder, options.predictions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
