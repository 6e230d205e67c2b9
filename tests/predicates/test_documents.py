"""Trees beside Phase-19: every id of their documents is there, explains itself and is reached where it has a test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.render import reference
from stabtree.render.screen import screen
from stabtree.tree.load import load_defining, load_tree, load_trees, shipped, shipped_titles
from tests.conftest import make_run
from tests.leaves.errors import LINES
from tests.leaves.make import healthy, logged, with_rerun
from tests.leaves.precision import leading, never_held

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis

TREE = load_trees()
DOCUMENT = [*(f"P{n}" for n in range(1, 20)), *(f"O{n}" for n in range(1, 27))]
CHECKED = {"phase19": 0, "convergence": 6, "precision": 7, "errors": 35}


@pytest.mark.parametrize("id_", DOCUMENT)
def test_every_id_of_the_documents_explains_itself(id_: str) -> None:
    """P1 to P19 and O1 to O26 exist and say what is wrong, why, and what to do."""
    alone = load_defining(id_)
    assert alone is not None
    nodes, by_id = reference.find(alone, id_)
    assert by_id
    told = reference.explain(alone, nodes)
    assert re.search(r"^ (why|cause) ", told, re.MULTILINE)
    assert re.search(r"^ (fix |fixes|goes) ", told, re.MULTILINE)
    assert reference.find(TREE, id_)[1]


def test_the_counts_of_checks_are_known() -> None:
    """A check that is added gets a made run or a made line, and is counted here."""
    for name, count in CHECKED.items():
        assert sum(section.check for section in load_tree(name).sections) == count, name
    assert {TREE.leaves[leaf].of for leaf in LINES} == {id_ for id_ in TREE.questions if id_.startswith("E.")}


def test_a_healthy_run_passes_every_check() -> None:
    """None of the checks that read metrics finds what it looks for."""
    sound = diagnose(make_run(healthy(), n_classes=55, grad_clip=5.0, dtype="fp32"), TREE)
    assert sound.verdict == "ok"


def test_a_rise_of_the_norm_before_a_spike_is_shown_with_its_lead() -> None:
    """The precursor is confirmed under the spike's leaf, with its lead in steps; a spike without one rules it out."""
    cause = next(c for f in diagnose(leading(), TREE).findings for c in f.causes if c.cause.id == "P12.lead")
    assert cause.state is CauseState.CONFIRMED
    assert "a lead of 8 steps" in cause.evidence[0].text
    sudden = make_run(healthy(loss=leading().series["loss"].values))
    cause = next(c for f in diagnose(sudden, TREE).findings for c in f.causes if c.cause.id == "P12.lead")
    assert cause.state is CauseState.RULED_OUT


def test_a_run_that_never_holds_needs_another_rate_to_tell() -> None:
    """P17 is confirmed by a rerun at another learning rate and not checkable without one."""

    def state(found: Diagnosis) -> CauseState:
        return next(c.state for f in found.findings for c in f.causes if c.cause.id == "P17.init")

    assert state(diagnose(never_held(1e-3), TREE)) is CauseState.NOT_CHECKABLE
    assert state(diagnose(with_rerun(never_held(1e-3), never_held(1e-4)), TREE)) is CauseState.CONFIRMED


@pytest.mark.parametrize("leaf", LINES)
def test_every_message_is_found_with_its_line(leaf: str) -> None:
    """A hand-written line of each kind is reported with its number and its severity."""
    found = diagnose(logged(LINES[leaf]))
    finding = next((item for item in found.findings if item.leaf.of == TREE.leaves[leaf].of), None)
    assert finding is not None
    assert finding.evidence[0].text.startswith("line 41: ")
    assert finding.leaf.severity in (found.verdict, "warning", "note")


def test_what_the_run_survived_is_a_note() -> None:
    """An error after which rows of metrics go on has not ended the run."""
    found = diagnose(logged(LINES["cuda-oom"], after=30))
    assert [item.leaf.id for item in found.findings if item.leaf.of == "E.oom"] == ["cuda-oom-survived"]


def test_a_log_of_nothing_but_an_error_is_judged() -> None:
    """A run that died before its first row is critical, and never ok."""
    run = logged("Traceback (most recent call last):", LINES["cuda-oom"], rows=0)
    found = diagnose(run)
    assert not run.series
    assert found.verdict == "critical"
    assert found.findings[0].leaf.id == "cuda-oom"
    assert "Healthy" not in screen(found)


def test_many_lines_are_bounded_and_counted() -> None:
    """Of lines that differ in digits only the first ones are kept; an escape code does not get through."""
    spam = [f"WARNING: worker {n} is slow, connection {n}" for n in range(5000)]
    run = logged(*spam, "\x1b[31mRuntimeError: \x1b]0;x\x07CUDA out of memory\x1b[0m")
    assert len(run.lines) < 600
    assert any("4,995 more lines" in note for note in run.notes)
    assert all(line.text.isprintable() for line in run.lines)
    assert diagnose(run).verdict == "critical"


def test_questions_for_a_person_take_one_line_of_the_screen() -> None:
    """O1=yes asks what else is wrong; what is not answered is listed together."""
    flat = make_run({"loss": 2.3 + np.random.default_rng(0).normal(0, 0.01, 600), "lr": np.full(600, 1e-3)})
    assert diagnose(flat, TREE).findings[0].leaf.id == "flat-from-start"
    told = screen(diagnose(flat, TREE, answers={"O1": "yes"}), width=120)
    assert "10 questions for a person (O6, O10, O11, O13, O17, O18, O19, O20, O21, O26)" in " ".join(told.split())
    assert sum("O17" in line for line in told.splitlines()) <= 2


def test_every_cross_reference_exists() -> None:
    """What looks like the id of a node is one, in some shipped tree, and is shown with what it is called."""
    titles = shipped_titles()
    ids = {*TREE.questions, *TREE.entries, *TREE.groups, *TREE.leaves}
    for name in shipped():
        tree = load_tree(name)
        links = [link for question in tree.questions.values() for link in question.see]
        links += [link for leaf in tree.leaves.values() for link in leaf.see]
        links += [link for entry in tree.entries.values() for link in entry.see]
        links += [link for item in tree.signatures for link in item.see]
        for link in links:
            if "/" not in link and " " not in link:
                assert link in ids, link
                assert titles[link] == TREE.title_of(link)
    assert reference.reference_to(load_tree("errors"), "P10").startswith("P10 (fp16: ")


def test_texts_are_of_this_year() -> None:
    """No tree advises the AMP interface that is deprecated."""
    for path in shipped().values():
        assert "torch.cuda.amp" not in path.read_text(encoding="utf-8")
