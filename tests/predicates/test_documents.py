"""Trees beside Phase-19: every id of their documents is there, explains itself and is reached where it has a test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.render import reference
from stabtree.render.screen import screen
from stabtree.tree.load import load_defining, load_tree, load_trees, shipped, shipped_titles
from tests.conftest import make_run
from tests.documents import LINES, RUNS, healthy, leading, never_held, with_rerun

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis

TREE = load_trees()
DOCUMENT = [*(f"P{n}" for n in range(1, 20)), *(f"O{n}" for n in range(1, 27))]
CHECKED = {"phase19": 0, "convergence": 6, "precision": 7, "errors": 35}
ROW = "step: {step} loss: {loss:.3f} lr: 0.001\n"


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
    assert set(LINES) == {id_ for id_ in TREE.questions if id_.startswith("E.")}
    tested = {s.entry for s in TREE.sections if s.check and s.tree in CHECKED} - set(LINES) | {"P11.log"}
    assert tested == {TREE.leaves[leaf].of for leaf in RUNS}


@pytest.mark.parametrize("leaf", RUNS)
def test_a_made_run_reaches_its_check(leaf: str) -> None:
    """Each check that reads metrics finds what it looks for, with evidence, and nothing in a healthy run."""
    found = diagnose(RUNS[leaf](), TREE)
    finding = next((item for item in found.findings if item.leaf.id == leaf), None)
    assert finding is not None
    assert finding.evidence
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


def write(folder: Path, *lines: str, rows: int = 40, after: int = 0) -> Path:
    """A text log: rows of metrics, lines, and rows again."""
    losses = 1 + 3 * np.exp(-np.arange(rows + after) / 20)
    made = [ROW.format(step=step, loss=loss) for step, loss in enumerate(losses)]
    path = folder / "train.log"
    path.write_text("".join([*made[:rows], *(f"{line}\n" for line in lines), *made[rows:]]), encoding="utf-8")
    return path


@pytest.mark.parametrize("id_", LINES)
def test_every_message_is_found_with_its_line(id_: str, tmp_path: Path) -> None:
    """A hand-written line of each kind is reported with its number and its severity."""
    found = diagnose(load_run(write(tmp_path, LINES[id_])))
    finding = next((item for item in found.findings if item.leaf.of == id_), None)
    assert finding is not None
    assert finding.evidence[0].text.startswith("line 41: ")
    assert finding.leaf.severity in (found.verdict, "warning", "note")


def test_what_the_run_survived_is_a_note(tmp_path: Path) -> None:
    """An error after which rows of metrics go on has not ended the run."""
    found = diagnose(load_run(write(tmp_path, LINES["E.oom"], after=30)))
    assert [item.leaf.id for item in found.findings if item.leaf.of == "E.oom"] == ["cuda-oom-survived"]


def test_a_log_of_nothing_but_an_error_is_judged(tmp_path: Path) -> None:
    """A run that died before its first row is critical, and never ok."""
    run = load_run(write(tmp_path, "Traceback (most recent call last):", LINES["E.oom"], rows=0))
    found = diagnose(run)
    assert not run.series
    assert found.verdict == "critical"
    assert found.findings[0].leaf.id == "cuda-oom"
    assert "Healthy" not in screen(found)


def test_many_lines_are_bounded_and_counted(tmp_path: Path) -> None:
    """Of lines that differ in digits only the first ones are kept; an escape code does not get through."""
    spam = [f"WARNING: worker {n} is slow, connection {n}" for n in range(5000)]
    run = load_run(write(tmp_path, *spam, "\x1b[31mRuntimeError: \x1b]0;x\x07CUDA out of memory\x1b[0m"))
    assert len(run.lines) < 600
    assert any("4,995 more lines" in note for note in run.notes)
    assert all(line.text.isprintable() for line in run.lines)
    assert diagnose(run).verdict == "critical"


def test_answers_drive_the_chain_of_questions_for_a_person() -> None:
    """O1=no asks what cuts the loop, O1=yes what else is wrong; unanswered ones take one line of the screen."""
    flat = make_run({"loss": 2.3 + np.random.default_rng(0).normal(0, 0.01, 600), "lr": np.full(600, 1e-3)})
    assert diagnose(flat, TREE).findings[0].leaf.id == "flat-from-start"
    assert diagnose(flat, TREE, answers={"O1": "no"}).findings[0].leaf.id == "loop-broken"
    for id_, leaf in (("O3", "loss-detached"), ("O5", "wrong-mode"), ("O14", "wrong-targets")):
        found = diagnose(flat, TREE, answers={"O1": "no", id_: "yes"})
        assert leaf in {item.leaf.id for item in found.findings}
    assert "wrong-order" in {f.leaf.id for f in diagnose(flat, TREE, answers={"O1": "no", "O4.order": "yes"}).findings}
    persons = [
        q.id for q in TREE.questions.values() if not q.test and q.id not in ("O1", "O3", "O5", "O14", "O4.order")
    ]
    assert len(persons) == 10
    for id_ in persons:
        found = diagnose(flat, TREE, answers={"O1": "yes", id_: "yes"})
        assert TREE.questions[id_].go["yes"] in {item.leaf.id for item in found.findings}
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
