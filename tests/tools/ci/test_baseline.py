"""A baseline accepts the findings that it names, as they were, and nothing else."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.judging.settings import Settings
from stabtree.judging.verdict import Acceptance, KnownFinding, unaccepted_findings
from stabtree.loaders import load_run
from stabtree.tools.ci.baseline import (
    MARK,
    VERSION,
    Baseline,
    BaselineWriter,
    baseline_of,
    changed,
    fingerprint,
    read_baseline,
    written,
)
from stabtree.tree.model import Severity
from tests.conftest import FIXTURES, make_run, series

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

GONE, LENGTH = 200, 300
LOSS = [3.0 / (1 + step / 50) + 0.01 * ((step * 7) % 5) for step in range(LENGTH)]
BROKEN = [*LOSS[:GONE], math.nan, *LOSS[GONE + 1 :]]  # one row that is not finite, and the run went on
LEVELS = frozenset({str(Severity.WARNING)})


def accepting(run: Run, file: str = "base.json") -> Baseline:
    """A baseline of all that is found in a run."""
    record = BaselineWriter(file, LEVELS)
    Judging(baseline=record).diagnosed(run)
    return baseline_of(file, record.found.values())


def judged(run: Run, baseline: Baseline | None = None) -> Diagnosis:
    """A run, judged with what is accepted."""
    return Judging(baseline=baseline).diagnosed(run)


def altered(
    columns: Mapping[str, list[float]], step: int, value: float, metric: str = "loss"
) -> dict[str, list[float]]:
    """The columns with another value at a step of one of them, all of them longer where that is behind the last row."""
    longer = {
        name: [*held, *[held[0 if name != "loss" else -50]] * (step + 1 - len(held))] for name, held in columns.items()
    }
    return {**longer, metric: [*longer[metric][:step], value, *longer[metric][step + 1 :]]}


def leaves(diagnosis: Diagnosis) -> set[str]:
    """The leaves of all that counts."""
    return {item.leaf.id for item in unaccepted_findings(diagnosis)}


@pytest.mark.parametrize("name", ["spike-bad-batch", "fp16-overflow", "nan-forward"])
def test_what_is_accepted_counts_for_nothing_and_is_kept(name: str) -> None:
    """Nothing bad is left that counts, and each finding stands with the reason among those that count for nothing."""
    run = load_run(FIXTURES / "phase19" / name)
    plain, told = judged(run), judged(run, accepting(run))
    bad = {item.leaf.id for item in unaccepted_findings(plain) if item.leaf.severity.rank >= Severity.WARNING.rank}
    assert plain.verdict in (Severity.WARNING, Severity.CRITICAL)
    assert told.verdict in (Severity.OK, Severity.NOTE)
    assert {item.leaf.id for item in told.ignored} == bad
    assert all(item.accepted and item.accepted.source == "base.json" for item in told.ignored)
    assert told.acceptance_notes == ()


def test_a_log_that_grew_is_known_and_a_new_nan_is_not() -> None:
    """More finite rows change nothing; another NaN after what was accepted, or a changed row before it, counts."""
    columns = {"loss": BROKEN}
    baseline = accepting(make_run(columns))
    grown = judged(make_run({"loss": [*BROKEN, *LOSS[-50:]]}), baseline)
    assert grown.verdict in (Severity.OK, Severity.NOTE)
    for step in (GONE - 50, GONE + 2, LENGTH - 1, LENGTH, LENGTH + 40):
        later = make_run(altered(columns, step, math.nan))
        told = judged(later, baseline)
        assert told.verdict == judged(later).verdict != Severity.OK, step
        assert leaves(told) == leaves(judged(later)), step
    assert judged(make_run(altered(columns, 3, 2.5)), baseline).ignored == ()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, LENGTH + 60),
    st.sampled_from([math.nan, math.inf, 40.0, 1.0]),
    st.sampled_from(["loss", "grad_norm"]),
    st.booleans(),
)
def test_no_baseline_lowers_what_it_does_not_name(step: int, value: float, metric: str, broken: bool) -> None:
    """Whatever happens at whatever step, all that counts without the baseline counts with it, but what it names."""
    columns = {"loss": BROKEN if broken else LOSS, "grad_norm": [1.0 + 0.1 * (step % 7) for step in range(LENGTH)]}
    baseline = accepting(make_run(columns))
    run = make_run(altered(columns, step, value, metric))
    plain, told = judged(run), judged(run, baseline)
    named = {item.leaf.id for item in told.ignored}
    assert named <= {entry.leaf for entry in baseline.known.values()}
    assert leaves(plain) - leaves(told) <= named
    if step > GONE + 1 and not math.isfinite(value) and metric == "loss":
        assert not named
    left = [item.leaf.severity.rank for item in unaccepted_findings(plain) if item.leaf.id not in named]
    if left and max(left) >= Severity.WARNING.rank:
        assert Severity(told.verdict).rank == max(left)


def test_a_higher_severity_is_not_covered() -> None:
    """What was accepted as a warning counts where it is critical now."""
    run = make_run({"loss": [*LOSS[:GONE], *[math.nan] * (LENGTH - GONE)]})
    baseline = accepting(run)
    lower = baseline_of("base.json", [replace(item, severity="warning") for item in baseline.known.values()])
    told = judged(run, lower)
    assert told.verdict == Severity.CRITICAL
    assert any("it counts" in text for text in told.acceptance_notes)


def test_a_project_accepts_a_leaf_of_some_runs() -> None:
    """By the leaf and a pattern of the run's name, whatever its rows, and with its reason."""
    run = load_run(FIXTURES / "phase19" / "spike-bad-batch")
    for pattern, verdict in (("spike-*", "ok"), ("*", "ok"), ("nightly-*", "warning")):
        accept = (Acceptance("spike-bad-batch", "known", run=pattern),)
        told = Judging(Settings("stabtree.toml", accept=accept)).diagnosed(run)
        assert told.verdict == verdict, pattern
        assert [item.accepted.reason for item in told.ignored if item.accepted] == ["known"] * (verdict == "ok")


def test_another_rank_comes_to_be_told() -> None:
    """What is accepted of the worst rank does not hide what another one has, and all of it can be accepted."""
    whole = make_run({"loss": LOSS})
    bad, odd = make_run({"loss": BROKEN}).series, make_run({"loss": [*LOSS[:150], 30.0, *LOSS[151:]]}).series
    run = replace(whole, ranks={"0": bad, "1": odd})
    first = unaccepted_findings(judged(run))
    one = baseline_of("base.json", [entry for entry in accepting(run).known.values() if entry.leaf == first[0].leaf.id])
    told = judged(run, one)
    assert first[0].leaf.id in {item.leaf.id for item in told.ignored}
    everything = judged(run, accepting(run))
    assert all(item.leaf.severity.rank < Severity.WARNING.rank for item in unaccepted_findings(everything))


def test_the_file_holds_all_of_it(tmp_path: Path) -> None:
    """What is written reads back the same, with what people wrote, and the same findings give the same bytes."""
    run = load_run(FIXTURES / "phase19" / "fp16-overflow")
    entries = [
        replace(item, reason="ours", since="May") for item in accepting(run, str(tmp_path / "b.json")).known.values()
    ]
    (tmp_path / "b.json").write_text(written(entries), encoding="utf-8")
    back = read_baseline(tmp_path / "b.json")
    assert sorted(map(repr, back.known.values())) == sorted(map(repr, entries))
    assert written(back.known.values()) == written(reversed(entries))
    accepted = judged(run, back).ignored[0].accepted
    assert accepted
    assert (accepted.reason, accepted.since) == ("ours", "May")


ENTRY = {"path": "a", "run": "a", "leaf": "nan", "severity": "critical", "onset_step": 3, "fingerprint": "0"}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{", "damaged"),
        ("[" * 100_000, "damaged"),
        ('{"findings": []}', "not a baseline"),
        ({MARK: VERSION + 1, "findings": []}, "version 2"),
        ({MARK: VERSION}, "missing required field `findings`"),
        ({MARK: VERSION, "findings": [1]}, r"findings\[0\]"),
        ({MARK: VERSION, "findings": [{**ENTRY, "resaon": "x"}]}, "unknown field `resaon`"),
        ({MARK: VERSION, "findings": [{**ENTRY, "severity": "bad"}]}, "severity"),
        ({MARK: VERSION, "findings": [{**ENTRY, "onset_step": True}]}, "onset_step"),
        ({MARK: VERSION, "findings": [{**ENTRY, "breaks": {"loss": "1"}}]}, "breaks"),
        ({MARK: VERSION, "findings": [{"leaf": "x"}]}, "missing required field `path`"),
        (" " * 16_000_001, "too large"),
    ],
)
def test_a_file_that_is_no_baseline_is_an_error(tmp_path: Path, document: Any, told: str) -> None:
    """Damaged, foreign, of another version or huge: it is said which, where, and what to do."""
    file = tmp_path / "base.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    with pytest.raises(StabtreeError) as error:
        read_baseline(file)
    assert error.value.hint
    assert "base.json" in error.value.where
    assert re.search(told, f"{error.value.where} {error.value.problem}")


def test_a_baseline_keeps_what_it_holds_of_other_runs() -> None:
    """New findings come, those of judged runs that are gone go, reasons stay; without adding only the latter."""
    gone, same, new = (KnownFinding("a.csv", "a", leaf, "warning", 3, leaf) for leaf in ("gone", "same", "new"))
    other = KnownFinding("b.csv", "b", "other", "warning", 3, "other")
    same = replace(same, reason="known")
    found = {item.key: item for item in (replace(same, reason="", severity="critical"), new)}
    old = [gone, same, other]
    added = changed(old, found, {("a.csv", "a")}, add=True)
    assert {(item.leaf, item.reason, item.severity) for item in added.entries} == {
        ("other", "", "warning"),
        ("same", "known", "critical"),
        ("new", "", "warning"),
    }
    assert (added.new, added.kept, added.dropped) == (1, 1, 1)
    only = changed(old, found, {("a.csv", "a")}, add=False)
    assert {(item.leaf, item.severity) for item in only.entries} == {("other", "warning"), ("same", "warning")}
    assert changed(old, {}, set(), add=False).entries == tuple(old)


def nan_from(onset: int = 40, length: int = 60) -> list[float]:
    """A loss that falls, and is NaN from a step on."""
    return [3.0 / (1 + step / 10) if step < onset else math.nan for step in range(length)]


def mark_of(columns: Mapping[str, list[float]]) -> str:
    """The fingerprint of the worst finding."""
    diagnosis = judged(make_run(columns))
    return fingerprint(diagnosis, diagnosis.findings[0])


def test_a_fingerprint_stays_as_the_log_grows_whatever_wrote_the_numbers() -> None:
    """More rows, a column that begins after the onset, the byte order and the bits of a NaN change nothing."""
    base = mark_of({"loss": nan_from()})
    assert re.fullmatch("[0-9a-f]{64}", base)
    assert mark_of({"loss": nan_from(length=90)}) == base
    diagnosis = judged(make_run({"loss": nan_from()}))
    loss = diagnosis.run.series["loss"]
    odd = np.frombuffer(np.array([0x7FF8_0000_0000_0001], dtype="<u8").tobytes(), dtype="<f8")[0]
    values = np.where(np.isnan(loss.values), odd, loss.values).astype(">f8")
    other = {"lr": series("lr", [1e-3], [45]), "loss": replace(loss, values=values)}
    changed_run = replace(diagnosis, run=replace(diagnosis.run, series=other))
    assert fingerprint(changed_run, diagnosis.findings[0]) == base


def test_another_event_another_run_and_another_leaf_are_new() -> None:
    """Whatever differs up to the onset gives another fingerprint."""
    base, diagnosis = mark_of({"loss": nan_from()}), judged(make_run({"loss": nan_from()}))
    finding = diagnosis.findings[0]
    named = replace(diagnosis, run=replace(diagnosis.run, name="another"))
    leaf = replace(finding, leaf=replace(finding.leaf, id="another"))
    marks = [base, fingerprint(named, finding), fingerprint(diagnosis, leaf)]
    marks += map(
        mark_of,
        (
            {"loss": nan_from(onset=41)},
            {"loss": [2.999, *nan_from()[1:]]},
            {"loss": nan_from(), "lr": [1e-3] * 60},
            {"loss": [*nan_from()[:20], math.inf, *nan_from()[21:]]},
        ),
    )
    assert len({*marks}) == len(marks)
