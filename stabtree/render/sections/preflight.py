"""A configuration on one screen: what to mend before the run, each with its value, its cost, its fix and its source."""

from __future__ import annotations

import itertools
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import UNREAD
from stabtree.render.look import LOOK, Length, Look
from stabtree.render.page import Page, new_page
from stabtree.render.report.preflight import Item, closing, coverage, items, read_from, summed, unjudged
from stabtree.render.report.words import badge, known
from stabtree.render.sections.blocks import Pane, fitted
from stabtree.render.sections.fit import clipped, in_lines
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.outcome import Outcome

MOST_LINES = 40
HEAD = 6
INDENT = 2
MOST_ITEMS = 28  # findings that are named on a screen
MOST_NOTES = 2
LEAST_NAME = 24  # characters of a path
LOUD = (Severity.CRITICAL, Severity.WARNING)


class Form(StrEnum):
    """How long a finding is told."""

    WHOLE = "value, cost, fix and source"
    BRIEF = "value and fix"
    TITLE = "a line"


def screen(outcomes: Sequence[Outcome], look: Look = LOOK) -> str:
    """Configurations' diagnoses for a terminal: one on one screen, or all of it; several in a line each."""
    name, found = outcomes[0]
    if len(outcomes) > 1 or isinstance(found, StabtreeError):
        return _several(outcomes, look)
    return _full(found, name, look) if look.length is Length.FULL else _one(found, name, look)


def headline(outcome: Outcome, look: Look = LOOK) -> str:
    """The verdict of a configuration in one line."""
    from stabtree.render.screen import one_line  # the screen of a run, which that of a configuration needs nothing of

    found = outcome.found
    return _several([outcome], look) if isinstance(found, StabtreeError) else one_line(found, outcome.name, look)


def _one(diagnosis: Diagnosis, name: str, look: Look) -> str:
    found = items(diagnosis)
    loud = [item for item in found if item.severity in LOUD]
    notes = [item for item in found if item.severity not in LOUD]
    forms = tuple(partial(_items, found=loud, shape=shape) for shape in _shapes(min(len(loud), MOST_ITEMS)))
    blocks = [
        Pane("head", (partial(_head, diagnosis=diagnosis, name=name),)),
        Pane("items", forms),
        Pane("notes", (partial(_notes, found=notes, each=True), partial(_notes, found=notes, each=False))),
        Pane("read", (partial(_read, diagnosis=diagnosis, name=name),), close=not found),
        Pane("last", (partial(_last, diagnosis=diagnosis, look=look),), close=True),
    ]
    return fitted(blocks, ["notes", *["items"] * len(forms)], MOST_LINES, partial(new_page, look))


def _shapes(count: int) -> list[tuple[Form, ...]]:
    """How long each finding is told, from all of it for all to a line for each: the worst give way last."""
    steps = itertools.pairwise(Form)
    return [(long,) * most + (short,) * (count - most) for long, short in steps for most in range(count, -1, -1)]


def _several(outcomes: Sequence[Outcome], look: Look) -> str:
    """A line each, and a line for each finding."""
    page = new_page(look)
    for outcome in outcomes:
        found = outcome.found
        if isinstance(found, StabtreeError):
            page.line(
                (f" {LOOKS[UNREAD].word} ", UNREAD),
                ("  ", ""),
                (f"{outcome.name}: {found.problem}", ""),
                hanging=INDENT,
            )
            continue
        page.line(*_headed(page, found, outcome.name), hanging=INDENT)
        for item in items(found):
            page.line(*_short(item), indent=INDENT, hanging=INDENT)
    verdicts = [outcome.verdict for outcome in outcomes]
    told = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
    code = f" · exit {look.exit_code}" if look.exit_code is not None else ""
    page.line((f"{len(outcomes)} configurations: {told}{code}", "heading"))
    return page.text()


def _full(diagnosis: Diagnosis, name: str, look: Look) -> str:
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
    for note in (*read_from(diagnosis, name), *known(diagnosis), *diagnosis.run.notes):
        page.line((note, "dim"), hanging=INDENT)
    _last(page, diagnosis, look)
    return page.text()


def _head(page: Page, diagnosis: Diagnosis, name: str) -> None:
    page.line(*_headed(page, diagnosis, name), hanging=INDENT)


def _headed(page: Page, diagnosis: Diagnosis, name: str) -> list[tuple[str, str]]:
    """The verdict and what was found, in a line where the end of the path is enough to leave room for it."""
    verdict, told, shown = badge(diagnosis), summed(diagnosis), page.plain(name)
    word = f" {LOOKS[verdict].word} "
    room = max(page.width - INDENT - len(word) - len("  : ") - len(page.plain(told)), LEAST_NAME)
    shown = shown if len(shown) <= room else f"…{shown[1 - room :]}"
    return [(word, verdict), ("  ", ""), (f"{shown}: {told}", "heading")]


def _items(page: Page, found: Sequence[Item], shape: tuple[Form, ...]) -> None:
    for place, (item, form) in enumerate(zip(found, shape, strict=False)):
        if place and (form is Form.WHOLE or shape[place - 1] is Form.WHOLE):
            page.blank()
        fix = item.fixes[0] if item.fixes else ""
        _titled(page, item)
        if form is Form.WHOLE:
            for head, text in (("now", item.now), ("cost", item.cost), ("fix", fix)):
                _row(page, head, text, 2)
            _row(page, "from", item.source, 1)
        elif form is Form.BRIEF:
            _row(page, "now", item.now, 1)
            _row(page, "fix", fix, 1)
    if rest := len(found) - len(shape):
        page.line((f"and {rest} more (--full)", ""))


def _titled(page: Page, item: Item) -> None:
    word, name = str(item.severity), f" ({item.leaf})"
    title = clipped(page.plain(item.title), page.width - len(word) - 2 - len(name))
    page.lines([[(word, f"{item.severity} word"), (f"  {title}", "heading"), (name, "id")]])


def _row(page: Page, head: str, text: str, lines: int) -> None:
    width = page.width - INDENT - HEAD
    for place, line in enumerate(in_lines(page.plain(text), width, lines)):
        page.lines([[(f"{'' if place else head:<{HEAD}}", "dim"), (line, "")]], indent=INDENT)


def _short(item: Item) -> list[tuple[str, str]]:
    told = f": {item.fixes[0]}" if item.fixes else ""
    return [
        (str(item.severity), f"{item.severity} word"),
        (f"  {item.title} ", ""),
        (f"({item.leaf})", "id"),
        (told, "dim"),
    ]


def _notes(page: Page, found: Sequence[Item], *, each: bool) -> None:
    """What is no more than a note: a line each, or the names alone."""
    if not found:
        return
    if not each:
        page.item(("note", "note word"), [(", ".join(item.leaf for item in found), "id")], indent=0, head_width=HEAD)
        return
    for item in found:
        text = clipped(page.plain(f"{item.title}: {item.now}"), page.width - HEAD - len(item.leaf) - 3)
        page.lines([[(f"{'note':<{HEAD}}", "note word"), (f"{text} ", ""), (f"({item.leaf})", "id")]])


def _read(page: Page, diagnosis: Diagnosis, name: str) -> None:
    """How much of it could be judged, and what was noted of the file."""
    page.lines([[(coverage(diagnosis, page.width), "")]])
    for note in (*read_from(diagnosis, name), *known(diagnosis, most=MOST_NOTES), *diagnosis.run.notes[:MOST_NOTES]):
        page.lines([[(clipped(page.plain(note), page.width), "dim")]])


def _last(page: Page, diagnosis: Diagnosis, look: Look) -> None:
    page.line((closing(diagnosis, look.exit_code), "heading" if diagnosis.findings else ""))
