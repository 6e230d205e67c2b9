"""A healthy run in three lines: the verdict, the path with its closest margin, and what was not checked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.answer import NO
from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.loaders.assemble.choice import ENOUGH
from stabtree.render.report.model import Tick
from stabtree.render.report.words import MOST_KNOWN, counted, known, span, title, unchecked
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
NOT_CHECKED = "Not checked  "
ROWS_OF_A_LEVEL = 5


def healthy(page: Page, report: Report) -> None:
    """Three lines."""
    badge = f" {LOOKS[report.badge].word} "
    room = page.width - len(badge) - 1
    told = page.plain(report.title)
    if len(told) > room and report.diagnosis.ignored:
        told = page.plain(title(report.diagnosis, named=False))
    pieces: list[Piece] = [(badge, report.badge), (" ", ""), (clipped(told, room), "heading")]
    used = sum(len(text) for text, _ in pieces)
    for part in _parts(report):
        width = sum(len(page.plain(text)) for text, _ in part) + 3
        if used + width <= page.width:
            pieces += [(" · ", "dim"), *part]
            used += width
    page.lines([pieces])
    _path(page, report)
    _not_checked(page, report)
    for text in (report.careful, *report.diagnosis.said, *known(report.diagnosis, most=MOST_KNOWN)):
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
    parts = [ticks, [(_levels(run), "")]]
    # The numbered sections ask for a loss: without one they say nothing of what was judged.
    for part in parts if run.get("loss") is not None else reversed(parts):
        if any(text for text, _ in part):
            yield part
    notes = [finding for finding in (report.finding, *report.also) if finding]
    if report.notes:
        yield [(counted(report.notes, "note"), "")]
    if notes:
        first = f": {notes[0].leaf.id}" + (f" at {step:,}" if (step := notes[0].onset_step) is not None else "")
        yield [(f"{counted(len(notes), 'note')}{first}", "")]
    yield [(run.name, "")]


def _levels(run: Run) -> str:
    """The loss at the beginning and at the end; of a run without one the series that it is judged by, which says so."""
    name = next((name for name in ("loss", *ENOUGH) if run.get(name) is not None), "")
    judged = run.get(name) if name else None
    if judged is None or len(values := judged.values[np.isfinite(judged.values)]) < 2:
        return ""
    first, last = median(values[:ROWS_OF_A_LEVEL]), median(values[-ROWS_OF_A_LEVEL:])
    return f"{'' if name == 'loss' else 'judged by '}{name} {first:.3g} → {last:.3g}"


def _path(page: Page, report: Report) -> None:
    """The path in one line, in words where they fit, with the answer that was the closest to another one."""
    id_, share = _closest(report)
    forms = ((True, f"{share} of its limit"), (False, f"{share} of its limit"), (False, share))
    chains = [_marked(chain(report, report.walks[0], shorts=shorts), id_, margin) for shorts, margin in forms]
    room = page.width - HEAD
    fit = (pieces for pieces in chains if sum(len(page.plain(text)) for text, _ in pieces) <= room)
    page.item(("Path", "heading"), next(fit, chains[-1]), indent=0, head_width=HEAD)


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
    """What was not checked and what to log for it, in a line with how much was noted of the log."""
    noted = report.diagnosis.run.notes
    tail = f"{counted(len(noted), 'note')} on the log (--full)" if noted else ""
    if not report.open:
        page.lines([[(tail, "")]] if tail else [])
        return
    names = dict.fromkeys(item.text for item in report.open if item.how)
    parts = [unchecked(report.diagnosis)] if report.diagnosis.missing else []
    parts += [f"log {', '.join(names)}"] if names else [report.open[0].text] if not parts else []
    tail = f" · {tail}" if tail else ""
    told = clipped(page.plain("; ".join(parts)), page.width - len(NOT_CHECKED) - len(page.plain(tail)) - 1)
    page.lines([[(NOT_CHECKED, "heading"), (told, ""), (tail, "")]])
