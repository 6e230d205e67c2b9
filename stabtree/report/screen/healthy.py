"""A healthy run in a few lines: the verdict, what it was checked for, the path with its closest margin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.answer import NO
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.context.find import context_of
from stabtree.loaders.assemble.choice import ENOUGH
from stabtree.report.model.run_facts import step_range
from stabtree.report.model.words import MAX_ACCEPTED, accepted_notes, title
from stabtree.report.screen.path import chain
from stabtree.report.text import counted, uncut
from stabtree.report.verdicts import BADGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.context.model import Context
    from stabtree.report.model.report import Report
    from stabtree.report.page import Page
    from stabtree.report.text import Line, Piece
    from stabtree.run import Run

HEAD = 6
SETTINGS = "Settings  "


def healthy(page: Page, report: Report) -> None:
    """Add three lines: verdict, what was checked, and the path."""
    badge = f" {BADGES[report.badge].word} "
    room = page.width - len(badge) - 1
    text = page.plain(report.title)
    if len(text) > room and report.diagnosis.ignored:
        text = page.plain(title(report.diagnosis, named=False))
    pieces: Line = [(badge, report.badge), (" ", ""), (text, "heading")]
    used = sum(len(text) for text, _ in pieces)
    for part in _parts(report):
        width = _width(page, part) + 3
        if part and used + width <= page.width:
            pieces += [(" · ", "dim"), *part]
            used += width
    page.item(pieces[0], pieces[1:], indent=0, head_width=len(badge))
    _checked(page, report)
    _path(page, report)
    for text in report.diagnosis.setting_notes:
        page.item((SETTINGS, "heading"), [(text, "")], indent=0, head_width=len(SETTINGS))
    for text in (report.misread, *report.diagnosis.answer_notes, *accepted_notes(report.diagnosis, most=MAX_ACCEPTED)):
        if text:
            page.line((text, ""))


def _width(page: Page, pieces: Iterable[Piece]) -> int:
    return sum(len(page.plain(text)) for text, _ in pieces)


def _parts(report: Report) -> Iterator[Line]:
    """Yield the parts of the first line, each shown while there is room; empty ones among them."""
    run = report.diagnosis.run
    yield _plain(step_range(run))
    yield _plain(_levels(run, context_of(run)))
    yield _plain(_best_eval(run))
    if report.notes:
        yield _plain(counted(report.notes, "note"))
    yield _plain(_first_note(report))
    yield _plain(run.name)


def _plain(text: str) -> Line:
    if text:
        return [(text, "")]
    return []


def _first_note(report: Report) -> str:
    notes = [finding for finding in (report.finding, *report.also) if finding]
    if not notes:
        return ""
    text = f"{counted(len(notes), 'note')}: {notes[0].leaf.id}"
    if notes[0].onset_step is not None:
        text += f" at {notes[0].onset_step:,}"
    return text


def _levels(run: Run, context: Context) -> str:
    """Return the first and last loss, as they are in the log; without a loss the series that the run is judged by.

    Of a run that learns from rewards that is the reward: a critic's loss rises with the returns that it predicts.
    """
    leading = context.outcome.value if context.learns_from_rewards else None
    name = next((name for name in (leading or "loss", "loss", *ENOUGH) if run.get(name) is not None), "")
    judged = run.get(name)
    if judged is None:
        return ""
    values = judged.values[np.isfinite(judged.values)]
    if len(values) < 2:
        return ""
    levels = f"{name} {figure(float(values[0]))} → {figure(float(values[-1]))}"
    if name == "loss":
        return levels
    return f"judged by {levels}"


def _best_eval(run: Run) -> str:
    """Return the lowest loss on held-out data; empty where there is none."""
    held_out = run.get("eval_loss")
    if held_out is None or not np.isfinite(held_out.values).any() or run.get("loss") is None:
        return ""
    best = int(np.nanargmin(held_out.values))
    return f"eval_loss {figure(held_out.values[best])} at best"


def _path(page: Page, report: Report) -> None:
    """Add the path in one line, in words where they fit, with the answer that was the closest to another one."""
    share, id_ = max(_shares(report), default=(0.0, ""))
    whole = f"{share:.0%} of its limit"
    forms = ((True, whole), (False, whole), (False, f"{share:.0%}"))
    chains = [_with_margin(chain(report.walks[0], shorts=shorts), id_, margin) for shorts, margin in forms]
    fit = (pieces for pieces in chains if _width(page, pieces) <= page.width - HEAD)
    page.item(("Path", "heading"), next(fit, chains[-1]), indent=0, head_width=HEAD)


def _with_margin(pieces: Line, id_: str, margin: str) -> Line:
    """Return the pieces of a chain with a margin behind one answer; before it are the id and the question."""
    if (id_, "id") not in pieces:
        return pieces
    end = pieces.index((id_, "id")) + 3
    return [*pieces[:end], (f" ({margin})", ""), *pieces[end:]]


def _shares(report: Report) -> Iterator[tuple[float, str]]:
    """Yield how much of its threshold each number behind a no reached, and its question."""
    for visit in report.diagnosis.path:
        if visit.answer.verdict == NO:
            for item in visit.answer.evidence:
                share = _share(item.observed, item.threshold)
                if share is not None:
                    yield share, visit.question.id


def _share(observed: float | None, threshold: float | None) -> float | None:
    """Return how far towards its threshold a number came, where both are of one sign."""
    if observed is None or not threshold or not math.isfinite(observed) or observed * threshold < 0:
        return None
    share = observed / threshold
    if share <= 1:
        return share
    return None


def _checked(page: Page, report: Report) -> None:
    """Add what was not found; then what nothing explains, else what was not judged and how much was noted."""
    tail = f"{counted(len(report.diagnosis.run.notes), 'note')} on the log (--full)"
    if report.unexplained:  # of more use than what was not judged, and never left out
        unexplained = f"unexplained: {' '.join(report.unexplained)}"
        short = f"unexplained: {counted(len(report.unexplained), 'problem')} (--full)"
        texts = [_joined(report.passed, unexplained), _joined(report.passed, short), short]
    else:
        judged = [_joined(report.passed, text) for text in _not_judged(report)]
        texts = [f"{text} · {tail}" for text in judged if report.diagnosis.run.notes and text] + judged
    fitting = [text for text in map(page.plain, texts) if len(text) <= page.width]
    for line in fitting[:1] or uncut(page.plain(texts[-1]), page.width, 1):
        page.lines([[(line[:1].upper() + line[1:], "")]])


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))


def _not_judged(report: Report) -> list[str]:
    """Return which sections were not judged, shorter and shorter; of a run without a loss, how many questions."""
    if report.diagnosis.run.get("loss") is not None:
        return [report.unjudged]
    if not report.unchecked:
        return [""]
    begin = f"{report.unchecked} not answered"
    names = list(dict.fromkeys(item.text for item in report.open if item.how))
    if not names:
        return [begin]
    shorter = [f"{begin}: log {', '.join(names[:count])} and more" for count in range(len(names) - 1, 0, -1)]
    return [f"{begin}: log {', '.join(names)}", *shorter, begin]
