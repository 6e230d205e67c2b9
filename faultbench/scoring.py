"""How predictions on a set are scored: the rates, and which runs were answered rightly.

Each set has a function that takes the labels and the predictions and returns a `Score`. What a prediction must hold is
told there; what it leaves out counts against it.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faultbench.archives import HERE
from faultbench.rates import Rate, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CALM = ("HEALTHY", "RESUME_DUP_STEPS", "FP16_GRAD_INF_TRANSIENT")
"""The kinds of run of `dev` in which nothing is wrong."""
DONE = "PLATEAU"
"""Trained to the end and flat: no fault, and no false alarm where it is called so. In no rate."""
ALARMS = ("critical", "warning")
NOT_JUDGED = ("unknown", "refused")
NO_RATE = ("unclear", "not-a-log", "disputed")
"""Labels of public logs that are in no rate; of a disputed one two people say different things."""

FALSE_ALARMS = "healthy runs called faulty"
MISSED = "faults missed"
SECTION, LEAF, CAUSE = "right section", "right leaf", "cause named"
FOUND, KIND = "visible faults found", "right kind among the found"
FOUND_FIRST = "found in the first log"
NOT_READ, AGREE = "runs of which no log was judged", "other logs of a run that agree"
COVERED, RIGHT_ALARMS, FAILURES = "logs judged", "alarms that are right", "failures found"


@dataclass(frozen=True, slots=True)
class Score:
    """What a tool reached on a set.

    Attributes:
        rates: each rate by its name.
        right: for every run that counts, whether it was answered rightly: silence on a healthy one; on a faulty one an
            alarm, in `dev` one of an acceptable section.
        wrong: a line for each run that was not.
    """

    rates: Mapping[str, Rate]
    right: Mapping[str, bool]
    wrong: tuple[str, ...]


def labels(name: str, folder: Path) -> list[dict[str, Any]]:
    """The labels of a set: of `public` from its index here, else from truth/ in the unpacked folder."""
    if name == "public":
        with (HERE / "public.csv").open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    files = sorted((folder / name / "truth").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def dev(truth: Sequence[Mapping[str, Any]], told: Mapping[str, Any]) -> Score:
    """Score a tool on `dev`.

    A prediction is keyed by the run's id and holds `healthy`, `section` (1, 2, 3, 4, other or none), `leaf` and
    `causes`, the kinds of fault that it names. A run without one counts as called healthy.
    """
    none = {"healthy": True, "section": "none", "leaf": None, "causes": []}
    calm, faulty, right, wrong = [], [], {}, []
    for label in truth:
        run, fault, said = label["run_id"], label["fault"], {**none, **told.get(label["run_id"], {})}
        if fault == DONE:
            continue
        flagged = not said["healthy"]
        section = flagged and str(said["section"]) in label["acceptable_sections"]
        if fault in CALM:
            calm.append(flagged)
            right[run] = not flagged
        else:
            leaf = flagged and said["leaf"] in label["acceptable_leaves"]
            faulty.append((flagged, section, leaf, fault in (said["causes"] or ())))
            right[run] = section
        if not right[run]:
            word = "false alarm" if fault in CALM else "wrong section" if flagged else "missed"
            wrong.append(f"{word:13s} {run} {fault} {said['section']} {said['leaf']} ({label['columns_kind']})")
    rates = {
        FALSE_ALARMS: rate(calm),
        MISSED: rate(not flagged for flagged, *_ in faulty),
        SECTION: rate(section for _, section, _, _ in faulty),
        LEAF: rate(leaf for *_, leaf, _ in faulty),
        CAUSE: rate(cause for *_, cause in faulty),
    }
    return Score(rates, right, tuple(wrong))


def _said(told: Mapping[str, Any], key: str) -> tuple[str, Sequence[str] | None]:
    """Verdict and kinds of a prediction; no kinds where it is the verdict alone."""
    said = told.get(key, "refused")
    return (said, None) if isinstance(said, str) else (said["verdict"], said.get("kinds"))


def trainers(truth: Sequence[Mapping[str, Any]], told: Mapping[str, Any]) -> Score:
    """Score a tool on `trainers`.

    A prediction is keyed by the path of a log of a run (`targets` in its label) and holds `verdict` (critical, warning,
    note, ok, unknown or refused; the verdict alone will do) and `kinds`, as the labels name them. Of each run the first
    log counts on which the tool gives a verdict, so that no tool is blamed for a format that it does not read; where
    there is none, the run counts as called healthy and is told apart.
    """
    healthy, faults, unread, agree, right, wrong = [], [], [], [], {}, []
    kinds_right: list[bool] = []
    for label in truth:
        said = [_said(told, target["path"]) for target in label["targets"]]
        verdict, kinds = next((one for one in said if one[0] not in NOT_JUDGED), said[0])
        alarmed = verdict in ALARMS
        unread.append(verdict in NOT_JUDGED)
        agree += [(other in ALARMS) == alarmed and other not in NOT_JUDGED for other, _ in said[1:]]
        if label["healthy"]:
            healthy.append(alarmed)
            right[label["id"]] = not alarmed
        elif label["visible"] == "yes":
            faults.append((alarmed, said[0][0] in ALARMS))
            right[label["id"]] = alarmed
            if alarmed and kinds is not None:
                kinds_right.append(bool(set(kinds) & set(label["kinds"])))
        if not right.get(label["id"], True):
            word = "false alarm" if label["healthy"] else "missed"
            wrong.append(f"{word:13s} {label['id']} {label['fault']} {verdict}")
    rates = {
        FALSE_ALARMS: rate(healthy),
        FOUND: rate(alarmed for alarmed, _ in faults),
        FOUND_FIRST: rate(alarmed for _, alarmed in faults),
        KIND: rate(kinds_right),
        NOT_READ: rate(unread),
        AGREE: rate(agree),
    }
    return Score(rates, right, tuple(wrong))


def public(truth: Sequence[Mapping[str, Any]], told: Mapping[str, Any]) -> Score:
    """Score a tool on the public logs.

    A prediction is keyed by `repo/path` as the index has them, and is as in `trainers`. Where a file holds several
    runs, an alarm on any of them is an alarm.
    """
    healthy: list[bool] = []
    failures: list[bool] = []
    judged, kinds_right, right, wrong = [], [], {}, []
    for label in truth:
        if label["label"] in NO_RATE:
            continue
        key = f"{label['repo']}/{label['path']}"
        verdict, kinds = _said(told, key)
        alarmed = verdict in ALARMS
        judged.append(verdict not in NOT_JUDGED)
        failed = label["label"] != "healthy"
        (failures if failed else healthy).append(alarmed)
        if failed and alarmed and kinds is not None:
            kinds_right.append(label["label"] in kinds)
        right[key] = failed == alarmed
        if not right[key]:
            wrong.append(f"{'missed' if failed else 'false alarm':13s} {key} {label['label']} {verdict}")
    rates = {
        COVERED: rate(judged),
        FALSE_ALARMS: rate(healthy),
        RIGHT_ALARMS: Rate(sum(failures), sum(failures) + sum(healthy)),
        FAILURES: rate(failures),
        KIND: rate(kinds_right),
    }
    return Score(rates, right, tuple(wrong))


SETS = {"dev": dev, "trainers": trainers, "public": public}


def score(name: str, folder: Path, told: Mapping[str, Any]) -> Score:
    """Score predictions on a set, whose archive was unpacked below a folder.

    Raises:
        FileNotFoundError: It was not.
    """
    truth = labels(name, folder)
    if not truth:
        msg = f"{folder / name} holds no labels: python -m faultbench unpack {folder}"
        raise FileNotFoundError(msg)
    return SETS[name](truth, told)
