"""A configuration on one screen: what to fix before the run, each with its value, its cost, its fix and its source."""

from __future__ import annotations

import itertools
from collections import Counter
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import UNREAD
from stabtree.report.options import DEFAULT_OPTIONS, Length, RenderOptions
from stabtree.report.page import Page, Pane, fitted, new_page
from stabtree.report.screen import one_line
from stabtree.report.text import clipped, in_lines
from stabtree.report.verdicts import BADGES
from stabtree.report.words import accepted_notes, badge
from stabtree.tools.check.report import Item, closing, coverage, items, read_from, summary, unjudged
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.outcome import Outcome

MAX_LINES = 40
HEAD = 6
INDENT = 2
MAX_ITEMS = 28  # findings that are named on a screen
MAX_NOTES = 2
MIN_NAME = 24  # characters of a path
LOUD = (Severity.CRITICAL, Severity.WARNING)


class Form(StrEnum):
    """How much is shown of a finding."""

    WHOLE = "value, cost, fix and source"
    BRIEF = "value and fix"
    TITLE = "a line"


def screen(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return configurations' diagnoses for a terminal: one on one screen or in full, several in a line each."""
    name, found = outcomes[0]
    if len(outcomes) > 1 or isinstance(found, StabtreeError):
        return _several(outcomes, look)
    if look.length is Length.FULL:
        return _full(found, name, look)
    return _one(found, name, look)


def headline(outcome: Outcome, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the verdict of a configuration in one line."""
    found = outcome.found
    if isinstance(found, StabtreeError):
        return _several([outcome], look)
    return one_line(found, outcome.name, look)


def _one(diagnosis: Diagnosis, name: str, look: RenderOptions) -> str:
    found = items(diagnosis)
    loud = [item for item in found if item.severity in LOUD]
    notes = [item for item in found if item.severity not in LOUD]
    forms = tuple(partial(_items, found=loud, shape=shape) for shape in _shapes(min(len(loud), MAX_ITEMS)))
    blocks = [
        Pane("head", (partial(_head, diagnosis=diagnosis, name=name),)),
        Pane("items", forms),
        Pane("notes", (partial(_notes, found=notes, each=True), partial(_notes, found=notes, each=False))),
        Pane("read", (partial(_read, diagnosis=diagnosis, name=name),), close=not found),
        Pane("last", (partial(_last, diagnosis=diagnosis, look=look),), close=True),
    ]
    return fitted(blocks, ["notes", *["items"] * len(forms)], MAX_LINES, partial(new_page, look))


def _shapes(count: int) -> list[tuple[Form, ...]]:
    """Return the forms of all findings, longest first, down to a line for each: the worst are shortened last."""
    return [
        (long,) * whole + (short,) * (count - whole)
        for (long, short), whole in itertools.product(itertools.pairwise(Form), range(count, -1, -1))
    ]


def _several(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return a line for each configuration, and one for each of its findings."""
    page = new_page(look)
    for outcome in outcomes:
        found = outcome.found
        if isinstance(found, StabtreeError):
            unread = f" {BADGES[UNREAD].word} "
            page.line((unread, UNREAD), ("  ", ""), (f"{outcome.name}: {found.problem}", ""), hanging=INDENT)
            continue
        page.line(*_headed(page, found, outcome.name), hanging=INDENT)
        for item in items(found):
            page.line(*_short(item), indent=INDENT, hanging=INDENT)
    verdicts = [outcome.verdict for outcome in outcomes]
    counts = ", ".join(f"{count} {word}" for word, count in Counter(verdicts).items())
    code = f" · exit {look.exit_code}" if look.exit_code is not None else ""
    page.line((f"{len(outcomes)} configurations: {counts}{code}", "heading"))
    return page.text()


def _full(diagnosis: Diagnosis, name: str, look: RenderOptions) -> str:
    page = new_page(look)
    _head(page, diagnosis, name)
    for item in items(diagnosis):
        page.blank()
        _titled(page, item)
        rows = [("now", item.now), ("cost", item.cost), *(("fix", fix) for fix in item.fixes), ("from", item.source)]
        for head, text in rows:
            page.item((head, "dim"), [(text, "")], indent=INDENT, head_width=HEAD)
    page.blank()
    page.line((coverage(diagnosis), "heading"))
    for rule in unjudged(diagnosis):
        page.line((f"{rule.id} ", "id"), (f"{rule.ask} {rule.reason}", ""), indent=INDENT, hanging=INDENT)
    for note in (*read_from(diagnosis, name), *accepted_notes(diagnosis), *diagnosis.run.notes):
        page.line((note, "dim"), hanging=INDENT)
    _last(page, diagnosis, look)
    return page.text()


def _head(page: Page, diagnosis: Diagnosis, name: str) -> None:
    page.line(*_headed(page, diagnosis, name), hanging=INDENT)


def _headed(page: Page, diagnosis: Diagnosis, name: str) -> list[tuple[str, str]]:
    """Return the verdict and the summary in a line; of a long path only the end, so that they fit."""
    verdict, text, shown = badge(diagnosis), summary(diagnosis), page.plain(name)
    word = f" {BADGES[verdict].word} "
    room = max(page.width - INDENT - len(word) - len("  : ") - len(page.plain(text)), MIN_NAME)
    if len(shown) > room:
        shown = f"…{shown[1 - room :]}"
    return [(word, verdict), ("  ", ""), (f"{shown}: {text}", "heading")]


def _items(page: Page, found: Sequence[Item], shape: tuple[Form, ...]) -> None:
    before = Form.TITLE
    for item, form in zip(found, shape, strict=False):
        if item is not found[0] and Form.WHOLE in (form, before):
            page.blank()
        before = form
        _titled(page, item)
        if form is Form.WHOLE:
            for head, text in (("now", item.now), ("cost", item.cost), ("fix", _fix(item))):
                _row(page, head, text, 2)
            _row(page, "from", item.source, 1)
        elif form is Form.BRIEF:
            _row(page, "now", item.now, 1)
            _row(page, "fix", _fix(item), 1)
    rest = len(found) - len(shape)
    if rest:
        page.line((f"and {rest} more (--full)", ""))


def _fix(item: Item) -> str:
    return next(iter(item.fixes), "")


def _titled(page: Page, item: Item) -> None:
    word, name = str(item.severity), f" ({item.leaf})"
    title = clipped(page.plain(item.title), page.width - len(word) - 2 - len(name))
    page.lines([[(word, f"{item.severity} word"), (f"  {title}", "heading"), (name, "id")]])


def _row(page: Page, head: str, text: str, lines: int) -> None:
    width = page.width - INDENT - HEAD
    for line in in_lines(page.plain(text), width, lines):
        page.lines([[(f"{head:<{HEAD}}", "dim"), (line, "")]], indent=INDENT)
        head = ""


def _short(item: Item) -> list[tuple[str, str]]:
    fix = f": {item.fixes[0]}" if item.fixes else ""
    return [
        (str(item.severity), f"{item.severity} word"),
        (f"  {item.title} ", ""),
        (f"({item.leaf})", "id"),
        (fix, "dim"),
    ]


def _notes(page: Page, found: Sequence[Item], *, each: bool) -> None:
    """Show the notes: a line each, or only the names."""
    if not found:
        return
    if not each:
        page.item(("note", "note word"), [(", ".join(item.leaf for item in found), "id")], indent=0, head_width=HEAD)
        return
    for item in found:
        text = clipped(page.plain(f"{item.title}: {item.now}"), page.width - HEAD - len(item.leaf) - 3)
        page.lines([[(f"{'note':<{HEAD}}", "note word"), (f"{text} ", ""), (f"({item.leaf})", "id")]])


def _read(page: Page, diagnosis: Diagnosis, name: str) -> None:
    """Show how much could be judged, and the notes on the file."""
    page.lines([[(coverage(diagnosis, page.width), "")]])
    for note in (
        *read_from(diagnosis, name),
        *accepted_notes(diagnosis, most=MAX_NOTES),
        *diagnosis.run.notes[:MAX_NOTES],
    ):
        page.lines([[(clipped(page.plain(note), page.width), "dim")]])


def _last(page: Page, diagnosis: Diagnosis, look: RenderOptions) -> None:
    page.line((closing(diagnosis, look.exit_code), "heading" if diagnosis.findings else ""))
