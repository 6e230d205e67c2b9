"""A healthy run in three lines: the verdict, the path with its closest margin, and what was not checked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO
from stabtree.render.report.model import Tick
from stabtree.render.report.words import counted, span, unchecked
from stabtree.render.sections.fit import clipped
from stabtree.render.sections.path import chain
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.render.page import Page
    from stabtree.render.plot import Piece
    from stabtree.render.report.model import Report
    from stabtree.run import Run

TICKS = {Tick.PASSED: "✓", Tick.FOUND: "✗", Tick.OPEN: "?", Tick.SKIPPED: "–"}
TICK_STYLES = {Tick.PASSED: "passed", Tick.FOUND: "failed", Tick.OPEN: "", Tick.SKIPPED: ""}
HEAD = 6
ROWS_OF_A_LEVEL = 5


def healthy(page: Page, report: Report) -> None:
    """Three lines."""
    badge = f" {LOOKS[report.badge].word} "
    title = clipped(page.plain(report.title), page.width - len(badge) - 1)
    pieces: list[Piece] = [(badge, report.badge), (" ", ""), (title, "heading")]
    used = sum(len(text) for text, _ in pieces)
    for part in _parts(report):
        width = sum(len(page.plain(text)) for text, _ in part) + 3
        if used + width <= page.width:
            pieces += [(" · ", "dim"), *part]
            used += width
    page.lines([pieces])
    _path(page, report)
    _not_checked(page, report)
    for text in (report.careful, *report.diagnosis.said):
        if text:
            page.line((text, ""))


def _parts(report: Report) -> Iterator[list[Piece]]:
    """What the first line holds, as far as there is room, in its order."""
    run = report.diagnosis.run
    if steps := span(run):
        yield [(steps, "")]
    ticks: list[Piece] = []
    for id_, tick in report.ticks:
        ticks += [(f"{' ' if ticks else ''}§{id_} ", ""), (TICKS[tick], TICK_STYLES[tick])]
    if ticks:
        yield ticks
    if levels := _levels(run):
        yield [(levels, "")]
    notes = [finding for finding in (report.finding, *report.also) if finding]
    if notes:
        first = f": {notes[0].leaf.id}" + (f" at {step:,}" if (step := notes[0].onset_step) is not None else "")
        yield [(f"{counted(len(notes), 'note')}{first}", "")]
    yield [(run.name, "")]


def _levels(run: Run) -> str:
    """The loss at the beginning and at the end."""
    loss = run.get("loss")
    values = loss.values[np.isfinite(loss.values)] if loss is not None else ()
    if len(values) < 2:
        return ""
    return f"loss {float(np.median(values[:ROWS_OF_A_LEVEL])):.3g} → {float(np.median(values[-ROWS_OF_A_LEVEL:])):.3g}"


def _path(page: Page, report: Report) -> None:
    """The path in one line, in words where they fit, with the answer that was the closest to another one."""
    id_, share = _closest(report)
    room = page.width - HEAD
    for shorts, margin in ((True, f"{share} of its limit"), (False, f"{share} of its limit"), (False, share)):
        pieces = _marked(chain(report, report.walks[0], shorts=shorts), id_, margin)
        if sum(len(page.plain(text)) for text, _ in pieces) <= room:
            break
    page.lines([[(f"{'Path':<{HEAD}}", "heading"), *pieces]])


def _marked(pieces: list[Piece], id_: str, margin: str) -> list[Piece]:
    """The pieces of a chain with a margin behind the answer to one question: its id, what was asked, the answer."""
    place = next((place for place, piece in enumerate(pieces) if piece == (id_, "id")), None)
    return pieces if place is None else [*pieces[: place + 3], (f" ({margin})", ""), *pieces[place + 3 :]]


def _closest(report: Report) -> tuple[str, str]:
    """Which no was the closest to a yes, and how much of its threshold was reached; empty where none can be told."""
    shares = [
        (share, visit.question.id)
        for visit in report.diagnosis.path
        if visit.answer.verdict == NO
        for item in visit.answer.evidence
        if (share := _share(item.observed, item.threshold)) is not None
    ]
    share, id_ = max(shares, default=(0.0, ""))
    return id_, f"{share:.0%}"


def _share(observed: float | None, threshold: float | None) -> float | None:
    """How far towards its threshold something came, where both are of one sign."""
    if observed is None or not threshold or not math.isfinite(observed) or observed * threshold < 0:
        return None
    share = observed / threshold
    return share if share <= 1 else None


def _not_checked(page: Page, report: Report) -> None:
    notes = report.diagnosis.run.notes
    parts = []
    if report.open:
        names = list(dict.fromkeys(item.text for item in report.open if item.how))
        log = f"; log {', '.join(names)}" if names else ""
        parts.append(clipped(page.plain(f"{unchecked(report.diagnosis)}{log}"), page.width - 42))
    parts += [f"{counted(len(notes), 'note')} on the log (--full)"] if notes else []
    if parts:
        head = ("Not checked  " if report.open else "", "heading")
        page.line(head, (" · ".join(parts), ""))
