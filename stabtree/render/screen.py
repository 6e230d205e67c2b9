"""A diagnosis on one screen: what it takes to act. `--full` prints all of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from stabtree.render.figure.braille import columns_for, strips
from stabtree.render.figure.build import figure
from stabtree.render.look import LOOK, Length, Look
from stabtree.render.page import Page, new_page
from stabtree.render.report.build import report
from stabtree.render.report.words import main_finding, step_of, title
from stabtree.render.sections.act import FEW_EVENTS, MOST_EVENTS, do_now, events, head, last_line
from stabtree.render.sections.blocks import Block, fitted
from stabtree.render.sections.causes import FEW_CAUSES, MOST_CAUSES, causes
from stabtree.render.sections.full import full
from stabtree.render.sections.healthy import healthy
from stabtree.render.sections.path import path_chain, path_rows
from stabtree.render.sections.rest import MOST_NOTES, MOST_OPEN, also, not_checked, notes
from stabtree.render.verdicts import LOOKS
from stabtree.text import clean, to_ascii
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.render.figure.model import Figure
    from stabtree.render.report.model import Report

MOST_LINES = 40
STRIPS = (4, 2)
FOLDS = ("head", "notes", "strips", "path", "strips", "also", "causes", "not checked", "events", "do now", "causes", "path")
"""What gives way first. Neither the verdict, the restart, the questions of the path nor the last line ever do."""


def screen(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """A diagnosis for a terminal: on one screen, or all of it."""
    if look.length is Length.FULL:
        return full(diagnosis, look)
    told = report(diagnosis, exit_code=look.exit_code)
    if told.badge == Severity.OK:
        page = new_page(look)
        healthy(page, told)
        return page.text()
    return fitted(_blocks(told, look), FOLDS, MOST_LINES, partial(new_page, look))


def _blocks(told: Report, look: Look) -> list[Block]:
    """The parts of the screen in their order, each in its forms."""

    def drawn(draw: object, *forms: dict[str, object]) -> tuple[partial[None], ...]:
        return tuple(partial(draw, report=told, **form) for form in forms)  # type: ignore[call-overload]

    return [
        Block("head", drawn(head, {"room": True}, {"room": False})),
        Block("do now", drawn(do_now, {"room": True}, {"room": False})),
        Block("events", drawn(events, {"most": MOST_EVENTS}, {"most": FEW_EVENTS})),
        Block("strips", tuple(partial(_strips, drawn=one, look=look) for one in _figures(told, look))),
    ]


def headline(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """The verdict in one line."""
