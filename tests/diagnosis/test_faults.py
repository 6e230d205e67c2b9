"""A question, a fact or a cause that raises fails alone: the run is not judged ok, and everything else counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree import Recorder, TrainingStoppedError
from stabtree.common.answer import UNKNOWN
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.measures import MEASURES, all_questions, all_values
from tests.cli.command import run
from tests.conftest import FIXTURES, falling

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis

HEALTHY = FIXTURES / "healthy" / "noisy"
NAN = FIXTURES / "phase19" / "nan-forward"


def _raise(*_: object, **__: object) -> NoReturn:
    raise IndexError("index -1 is out of bounds")


def break_measure(monkeypatch: pytest.MonkeyPatch, name: str, package: str = "") -> None:
    """Let a measure raise wherever it is asked."""
    monkeypatch.setitem(MEASURES, name, replace(MEASURES[name], func=_raise, package=package))


def break_fact(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a fact raise wherever it is looked for."""
    monkeypatch.setitem(MEASURES, name, replace(MEASURES[name], func=_raise))


def notes_of(found: Diagnosis) -> list[str]:
    """The notes on faults."""
    return [note for note in found.run.notes if "IndexError" in note]


def is_stopped(file: Path, lr: float) -> bool:
    """Whether a Recorder stops a run whose loss goes NaN."""
    with Recorder(file, on_finding="raise") as recorder:
        try:
            for step, loss in enumerate(np.append(falling(400), [np.nan] * 100)):
                recorder.log(step, loss=loss, lr=lr)
        except TrainingStoppedError:
            return True
    return False


@pytest.mark.parametrize("text", ["step,loss,lr\n0,nan,nan\n", "step,loss,lr\n" + "0,nan,nan\n1,nan,nan\n"])
def test_a_rate_that_is_nan_throughout_is_no_fault(text: str, tmp_path: Path) -> None:
    """The loss is found to be NaN, and the rate is not asked where it rose."""
    file = tmp_path / "run.csv"
    file.write_text(text, encoding="utf-8")
    done = run("diagnose", str(file))
    assert done.returncode == 1
    assert "internal fault" not in done.stdout + done.stderr


@pytest.mark.faulty
@pytest.mark.parametrize("name", sorted(all_questions())[::6])
def test_a_measure_that_raises_keeps_a_healthy_run_from_ok(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is asked, the verdict is unknown and a note names it; else nothing changes."""
    break_measure(monkeypatch, name)
    found = diagnose(load_run(HEALTHY))
    asked = notes_of(found)
    assert found.verdict == (UNKNOWN if asked else "ok")
    assert not asked or "Please report it" in asked[0]
    assert found.to_text()
    assert found.to_dict()["verdict"] == found.verdict


@pytest.mark.faulty
@pytest.mark.parametrize("name", sorted(all_values())[::5])
@pytest.mark.parametrize("folder", [HEALTHY, NAN])
def test_a_fact_that_raises_is_a_note(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No fact ends a diagnosis; a healthy run is not called ok without one that was asked for."""
    break_fact(monkeypatch, name)
    found = diagnose(load_run(folder))
    assert found.to_text()
    if notes_of(found):
        assert found.verdict in (UNKNOWN, "warning", "critical")
        assert f"fact {name}" in notes_of(found)[0]


@pytest.mark.faulty
def test_an_observation_that_raises_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finding is there with its causes, and the note names the observation."""
    break_fact(monkeypatch, "rise_before_nan")
    found = diagnose(load_run(NAN))
    assert found.findings[0].causes
    assert found.findings[0].actions
    assert any("rise_before_nan" in note for note in notes_of(found))


@pytest.mark.faulty
@pytest.mark.parametrize("method", ["by", "around", "rate", "lost"])
def test_movers_that_raise_when_they_are_asked_hide_only_the_order(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of events is made when it is shown; the finding and the outputs are there without it."""
    monkeypatch.setattr(f"stabtree.measures.movers.Movers.{method}", _raise)
    found = diagnose(load_run(NAN))
    assert found.verdict == "critical"
    assert found.to_text()
    assert found.to_dict()["timeline"]


@pytest.mark.faulty
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """3 for a run of which a question failed, 1 where something else was found, in `diagnose` and in `scan`."""
    break_measure(monkeypatch, "settled")
    done = run("diagnose", str(HEALTHY), "--json")
    assert done.returncode == 3
    assert "IndexError" in json.loads(done.stdout)["notes"][0]
    assert run("diagnose", str(NAN)).returncode == 1
    assert run("diagnose", str(HEALTHY), str(NAN)).returncode == 1
    assert run("scan", str(HEALTHY), "-j", "1").returncode == 3
    assert run("compare", str(HEALTHY), str(HEALTHY.parent / "smooth")).returncode != 4
    (tmp_path / "stabtree.toml").write_text("accept_partial = true\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run("diagnose", str(HEALTHY)).returncode == 3


@pytest.mark.faulty
def test_debug_prints_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only with `--debug`, on standard error, and nothing else changes."""
    break_measure(monkeypatch, "settled")
    plain, debug = run("diagnose", str(HEALTHY)), run("diagnose", str(HEALTHY), "--debug")
    assert "Traceback" not in plain.stdout + plain.stderr
    assert "Traceback" in debug.stderr
    assert "index -1 is out of bounds" in debug.stderr
    assert (plain.stdout, plain.returncode) == (debug.stdout, debug.returncode)


@pytest.mark.faulty
def test_a_fault_of_a_package_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """The note says whose measure it was."""
    break_measure(monkeypatch, "settled", package="frozen-loss")
    note = notes_of(diagnose(load_run(HEALTHY)))[0]
    assert "a fault of the package frozen-loss" in note
    assert "the authors of frozen-loss" in note


@pytest.mark.faulty
@pytest.mark.parametrize("part", ["settled", "movers"])
def test_a_recorder_stops_on_the_next_finding(part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A question that fails does not disarm it."""
    monkeypatch.setattr("sys.executable", "")  # what is broken here is whole in another process
    if part in all_questions():
        break_measure(monkeypatch, part)
    else:
        break_fact(monkeypatch, part)
    assert is_stopped(tmp_path / "run.jsonl", lr=1e-3)


def test_a_recorder_with_a_rate_that_is_nan_stops(tmp_path: Path) -> None:
    """A rate that is logged as NaN throughout once disarmed it."""
    assert is_stopped(tmp_path / "run.jsonl", lr=float("nan"))
