"""A diagnosis on one screen: what it takes to act. `--full` prints all of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from stabtree.common.text import clean, inert, to_ascii
from stabtree.render.figure.braille import columns_for, strips
from stabtree.render.figure.build import figure
from stabtree.render.look import LOOK, Length, Look
from stabtree.render.page import Page, new_page
from stabtree.render.report import words
from stabtree.render.report.build import report
from stabtree.render.sections.act import FEW_EVENTS, MOST_EVENTS, do_now, events, head, last_line
from stabtree.render.sections.blocks import Pane, fitted
from stabtree.render.sections.causes import FEW_CAUSES, LINES_OF_A_CAUSE, MOST_CAUSES, causes
from stabtree.render.sections.healthy import healthy
from stabtree.render.sections.path import path_chain, path_rows
from stabtree.render.sections.rest import MOST_NOTES, MOST_OPEN, also, not_checked, notes
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.render.figure.model import Figure
    from stabtree.render.report.model import Report

MOST_LINES = 40
LINES_OF_A_PATH = 6
STRIPS = (4, 2)
ONE_ROW = "Nothing is drawn: no series that would show it has more than one row."
INDENT = 2
LONGEST_LINE = 400
FORMS_OF_CAUSES = ((MOST_CAUSES, LINES_OF_A_CAUSE), (MOST_CAUSES, 1), (FEW_CAUSES, 1))
FOLDS = (
    *("head", "notes", "path", "strips", "causes", "path", "do now"),
    *("path", "strips", "also", "causes", "not checked", "events", "path"),
)
"""What gives way first. Neither the verdict, the restart, the questions of the path nor the last line ever do."""


def screen(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """A diagnosis for a terminal: on one screen, or all of it."""
    if diagnosis.why_not:
        from stabtree.render.sections.why_not import why_not_text

        page = new_page(look)
        page.line((headline(diagnosis, look), ""))
        page.blank()
        why_not_text(page, diagnosis)
        return page.text()
    if look.length is Length.FULL:
        from stabtree.render.sections.full import full

        return full(diagnosis, look)
    told = report(diagnosis, exit_code=look.exit_code)
    if told.badge == Severity.OK:
        page = new_page(look)
        healthy(page, told)
        return page.text()
    return fitted(_blocks(told, look), FOLDS, MOST_LINES, partial(new_page, look))


def _blocks(told: Report, look: Look) -> list[Pane]:
    """The parts of the screen in their order, each in its forms."""
    return [
        Pane("head", (lambda page: head(page, told, room=True), lambda page: head(page, told, room=False))),
        Pane("do now", (lambda page: do_now(page, told, room=True), lambda page: do_now(page, told, room=False))),
        Pane("events", tuple(partial(events, report=told, most=most) for most in (MOST_EVENTS, FEW_EVENTS))),
        Pane("strips", tuple(partial(_strips, drawn=one, look=look) for one in _figures(told, look))),
        Pane("causes", tuple(partial(causes, report=told, most=most, lines=lines) for most, lines in FORMS_OF_CAUSES)),
        Pane(
            "path",
            (
                lambda page: path_rows(page, told, lines=2),
                lambda page: path_rows(page, told, lines=1),
                lambda page: path_chain(page, told, shorts=True, number=True),
                lambda page: path_chain(page, told, shorts=True, number=False),
                lambda page: path_chain(page, told, shorts=False, number=False),
            ),
            close=bool(told.causes),
            most=LINES_OF_A_PATH,
        ),
        Pane("also", tuple(partial(also, report=told, named=named) for named in (True, False)), close=True),
        Pane("not checked", tuple(partial(not_checked, report=told, most=most) for most in (MOST_OPEN, 1)), close=True),
        Pane("notes", tuple(partial(notes, report=told, most=most) for most in (MOST_NOTES, 0)), close=True),
        Pane("last", (lambda page: last_line(page, told),)),
    ]


def _figures(told: Report, look: Look) -> list[Figure | str]:
    """The figure with ever fewer strips, at last none; in its place why nothing is drawn of what was found."""
    drawn = figure(told.diagnosis, told.finding, columns_for(look.width)) if look.plots else None
    if drawn is None:
        return [ONE_ROW if look.plots and told.finding and told.diagnosis.run.series else ""]
    return [*(replace(drawn, strips=drawn.strips[:most]) for most in STRIPS), ""]


def _strips(page: Page, drawn: Figure | str, look: Look) -> None:
    if isinstance(drawn, str):
        page.line((drawn, ""), indent=INDENT)
    else:
        page.lines(strips(drawn, look.width - INDENT, ascii=look.ascii), indent=INDENT)


def headline(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """The verdict in one line, with the path of the log."""
    sources = diagnosis.run.sources
    more = f" and {len(sources) - 1:,} more" if len(sources) > 1 else ""
    return one_line(diagnosis, f"{sources[0].path}{more}" if sources else diagnosis.run.name, look)


def one_line(diagnosis: Diagnosis, name: str, look: Look = LOOK) -> str:
    """The verdict of a run in one line, under the name by which the user knows it."""
    finding = words.main_finding(diagnosis)
    leaf = f" [{finding.leaf.id}]" if finding else ""
    leaf = "; see stabtree inspect" if diagnosis.misread and not finding else leaf
    told = clean(f"{LOOKS[words.badge(diagnosis)].word}  {name}: {words.headline(diagnosis)}{leaf}", LONGEST_LINE)
    return inert(to_ascii(told) if look.ascii else told)
