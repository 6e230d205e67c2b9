"""Numbers are written as people write them, in all that is printed of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from stabtree.common.figures import against, as_factor, as_share, deviations, figure
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.markdown import markdown, postmortem
from stabtree.report.outputs import RenderOptions
from stabtree.report.screen import screen
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis

OPTIONS = RenderOptions(width=100, exit_code=0)
RUNS = sorted(path for path in FIXTURES.glob("*/*") if path.is_dir())[::8]
NOBODY_WRITES = (
    re.compile(r"\de\+\d\d"),
    re.compile(r"(?<![\d,.])\d{4,}%"),
    re.compile(r"by chance \d|by chance (?:no|about) "),
    re.compile(r"\d{4,}(?:\.\d+)?σ"),
    re.compile(r"trend z|\bz -?\d"),
    re.compile(r"\d{2}×10"),
    re.compile(r"\b(?:mend|borne|told|tells|by the letter|in force|let count)\b", re.IGNORECASE),
)


def sentences(found: Diagnosis) -> list[str]:
    """All evidence and every reason of a walk."""
    answers = [visit.answer for visit in found.path]
    evidence = [item for answer in answers for item in answer.evidence]
    for finding in found.findings:
        for cause in finding.causes:
            evidence += cause.evidence
    return [*(item.text for item in evidence), *(item.brief for item in evidence), *(each.reason for each in answers)]


def printed(found: Diagnosis) -> list[str]:
    """What a person reads of a diagnosis, a line each."""
    texts = (screen(found, OPTIONS), screen(found, replace(OPTIONS, full=True)))
    return [
        line for text in (*texts, markdown(found, OPTIONS), postmortem(found, OPTIONS)) for line in text.splitlines()
    ]


def check(found: Diagnosis, *, quoted: bool) -> None:
    """Whether no sentence of ours has a number or a word that nobody writes; of quoted rows only the evidence."""
    for text in [*sentences(found), *([] if quoted else printed(found))]:
        assert not [form.pattern for form in NOBODY_WRITES if form.search(text)], text


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_no_output_has_a_number_that_nobody_writes(path: Path) -> None:
    """No 1.06e+04σ, no 76455%, no odds of chance; nor a word of our own dialect."""
    run = load_run(path)
    check(diagnose(run, load_trees(run)), quoted=False)


@pytest.mark.parametrize("exponent", range(-12, 40, 4))
@pytest.mark.parametrize("mantissa", [1.0, 1.0648, 9.9996, -3.35])
def test_every_size_has_a_plain_form(exponent: int, mantissa: float) -> None:
    """Of each function: what it writes reads as the number, to the digits that it keeps."""
    value = mantissa * 10.0**exponent
    assert float(figure(value, 4).replace(",", "")) == pytest.approx(value, rel=1e-3)
    for text in (figure(value), as_factor(value), as_share(value), deviations(value), against(value, 5.0, ".2g")):
        assert not [form.pattern for form in NOBODY_WRITES if form.search(text)], text
