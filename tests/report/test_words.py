"""One voice: the same headline in every output, and nothing that the log contradicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from stabtree.diagnosis.walk import diagnose
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_run
from stabtree.report.html import html
from stabtree.report.json import to_json
from stabtree.report.markdown import markdown, postmortem
from stabtree.report.outputs import RUNS, RenderOptions, output
from stabtree.report.screen import headline as quiet
from stabtree.report.screen import screen
from stabtree.report.words import earlier, headline
from stabtree.tree.load import load_trees
from stabtree.tree.model import Severity
from tests.conftest import FIXTURES, recorded

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis

OPTIONS = RenderOptions(width=80, exit_code=0)


def judged(name: str, *ignore: str) -> Diagnosis:
    """The diagnosis of a fixture, without some leaves."""
    run = load_run(FIXTURES / "phase19" / name)
    return diagnose(run, load_trees(run), ignore=ignore)


def outputs(found: Diagnosis) -> dict[str, str]:
    """A diagnosis in all forms that a person reads, each in one line."""
    forms = {
        "screen": screen(found, OPTIONS),
        "full": screen(found, replace(OPTIONS, full=True)),
        "quiet": quiet(found, OPTIONS),
        "markdown": markdown(found, OPTIONS),
        "post-mortem": postmortem(found, OPTIONS),
        "page": html(found, OPTIONS),
    }
    return {name: " ".join(text.split()) for name, text in forms.items()}


def test_notes_of_a_healthy_run_are_told_with_one_voice() -> None:
    """Every output calls it healthy with its note; the verdict for machines stays a note."""
    found = judged("spike-minor")
    assert found.verdict == Severity.NOTE
    assert json.loads(to_json(found))["verdict"] == "note"
    for name, text in outputs(found).items():
        assert "Healthy (1 note)" in text, name
        assert "NOTE" not in text, name
    told = "".join(
        output(RUNS, "screen")(recorded(Outcome("a.csv", found), Outcome("b.csv", judged("plateau"))), OPTIONS)
    )
    assert "2 runs: 1 note, 1 ok" in told
    assert "Healthy (1 note)" in told


@pytest.mark.parametrize(
    ("name", "ignored", "told"),
    [
        ("nan-forward", ["nan-forward"], "(1 ignored: nan-forward at step 412)"),
        (
            "fp16-overflow",
            ["fp16-overflow", "eval-nonfinite", "scale-drifts-down"],
            "(3 ignored: fp16-overflow at step 730 and 2 more)",
        ),
    ],
)
def test_nothing_is_claimed_that_what_is_ignored_contradicts(name: str, ignored: list[str], told: str) -> None:
    """A NaN that is ignored is named in each output, and no note says that the loss has settled."""
    found = judged(name, *ignored)
    assert found.verdict in (Severity.OK, Severity.NOTE)
    for form, text in outputs(found).items():
        assert told in text.replace("\\", ""), form
        assert "has settled" not in text or form == "page", form  # which shows where each answer would have led
    assert "not divergence" not in " ".join(outputs(found).values())
    assert len(screen(found, OPTIONS).splitlines()) <= 3
    assert "1 ignored" in screen(found, replace(OPTIONS, width=40)) or "3 ignored" in screen(
        found, replace(OPTIONS, width=40)
    )


def test_what_came_before_the_finding_is_told_on_top() -> None:
    """A jump of the rate stands below the headline of the NaN that it made; nothing does where nothing came before."""
    found = judged("nan-backward")
    assert headline(found) == "Step 439: The gradient was inf before the loss stopped being finite"
    for form, text in outputs(found).items():
        assert "Before it, at step 430: lr jumps 0.03 → 0.42" in text or form == "quiet", form
    for name in ("nan-forward", "lr-rising", "spike-lr-jump"):
        other = judged(name)
        assert earlier(other, other.findings[0]) == ""
