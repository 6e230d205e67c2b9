"""A comparison on one screen: where they part, who was first, what differs, what each was told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stabtree.common.text import clean, to_ascii
from stabtree.comparing.result import Parted
from stabtree.render.figure.braille import columns_for, strips
from stabtree.render.figure.overlay import overlay
from stabtree.render.look import LOOK, Length, Look
from stabtree.render.page import new_page
from stabtree.render.report import comparison as words
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from stabtree.comparing.result import Comparison
    from stabtree.render.page import Page

MOST_PARTINGS = 6
MOST_SETTINGS = 8
MOST_LEFT_OUT = 3
MOST_NAME = 32
INDENT = 2
LONGEST_LINE = 400


def screen(comparison: Comparison, look: Look = LOOK) -> str:
    """A comparison for a terminal."""
    page = new_page(look)
    whole = look.length is Length.FULL
    word, style = words.WORDS[comparison.parted]
    page.line((f" {word} ", style), ("  ", ""), (words.title(comparison), "heading"))
    for text in filter(None, (words.basis(comparison), *comparison.notes)):
        page.line((text, "dim"))
    _partings(page, comparison, len(comparison.partings) if whole else MOST_PARTINGS)
    _strips(page, comparison, look)
    _settings(page, comparison, len(comparison.settings) if whole else MOST_SETTINGS)
    _told(page, comparison)
    _left_out(page, comparison, len(comparison.left_out) if whole else MOST_LEFT_OUT)
    page.blank()
    page.line((words.closing(comparison), "critical word" if comparison.parted is Parted.YES else ""))
    page.lines([[(f"next: {words.next_command(comparison)}", "dim")]])
    return page.text()


def _partings(page: Page, comparison: Comparison, most: int) -> None:
    rows = words.partings(comparison)
    if not rows:
        return
    page.heading("Who parted first")
    shown = rows[:most]
    widths = [max(len(page.plain(row[column])) for row in (*shown, ("", "", "good", "bad", ""))) for column in range(4)]
    at, metric, good, bad = widths
    metric = min(metric, MOST_NAME)
    head = f"{'':<{at}}  {'':<{metric}}  {'good':>{good}}  {'bad':>{bad}}"
    page.lines([[(head, "dim")]], indent=INDENT)
    for place, row in enumerate(shown):
        name = row.metric if len(row.metric) <= metric else f"{row.metric[: metric - 1]}…"
        page.lines(
            [
                [
                    (f"{row.at:<{at}}  ", "number"),
                    (f"{name:<{metric}}  ", "first" if place == 0 else ""),
                    (f"{row.good:>{good}}  ", "behind"),
                    (f"{row.bad:>{bad}}  ", "mark"),
                    (row.how, "dim"),
                ]
            ],
            indent=INDENT,
        )
    if len(rows) > most:
        page.line((f"and {len(rows) - most} more, the last at {rows[-1].at}: --full", "dim"), indent=INDENT)


def _strips(page: Page, comparison: Comparison, look: Look) -> None:
    drawn = overlay(comparison, columns_for(look.width)) if look.plots else None
    if drawn is None:
        return
    page.blank()
    page.lines(strips(drawn, look.width - INDENT, ascii=look.ascii), indent=INDENT)
    good = "the good run" if len(comparison.good) == 1 else f"the {len(comparison.good)} good runs"
    page.line(("solid: the bad run", "curve"), (" · ", "dim"), (f"dotted: {good}", "behind"), indent=INDENT)


def _settings(page: Page, comparison: Comparison, most: int) -> None:
    if not comparison.settings:
        return
    page.heading("Settings that differ")
    rows = [words.setting(item) for item in comparison.settings]
    widths = tuple(max(len(page.plain(row[column])) for row in (*rows, ("", "good", ""))) + 2 for column in range(2))
    widths = min(widths[0], MOST_NAME), min(widths[1], page.width // 3)
    cells = [[("", ""), ("good", "dim"), ("bad", "dim")]]
    cells += [[(key, ""), (good, "behind"), (bad, "mark")] for key, good, bad in rows[:most]]
    page.rows(cells, indent=INDENT, widths=widths)
    if len(rows) > most:
        page.line((f"and {len(rows) - most} more: --full", "dim"), indent=INDENT)


def _told(page: Page, comparison: Comparison) -> None:
    rows = words.told(comparison)
    if not rows:
        return
    page.heading("What each is told")
    badges = max(len(LOOKS[row.badge].word) for row in rows) + 4
    name = min(max(len(page.plain(row.name)) for row in rows), MOST_NAME) + 2
    for row in rows:
        word = f" {LOOKS[row.badge].word} "
        shown = row.name if len(row.name) < name - 1 else f"…{row.name[3 - name :]}"
        lead = [(word, row.badge), (" " * (badges - len(word)), ""), (f"{shown:<{name}}", "")]
        beside = page.width - INDENT - badges - name
        if len(page.plain(row.text)) <= beside:
            page.lines([[*lead, (row.text, "dim")]], indent=INDENT)
        else:
            page.lines([lead], indent=INDENT)
            page.line((row.text, "dim"), indent=INDENT + badges)
    if apart := words.findings_apart(comparison):
        page.line((apart[:1].upper() + apart[1:], "dim"), indent=INDENT)


def _left_out(page: Page, comparison: Comparison, most: int) -> None:
    if not comparison.left_out:
        return
    page.heading("Not compared")
    for metric, why in comparison.left_out[:most]:
        page.line((f"{clean(metric)}: {why}", "dim"), indent=INDENT)
    if len(comparison.left_out) > most:
        page.line((f"and {len(comparison.left_out) - most} more: --full", "dim"), indent=INDENT)


def headline(comparison: Comparison, look: Look = LOOK) -> str:
    """It in one line, with the name of the bad run."""
    word, _ = words.WORDS[comparison.parted]
    told = clean(f"{word}  {comparison.names[-1]}: {words.title(comparison)}", LONGEST_LINE)
    return to_ascii(told) if look.ascii else told


def to_json(comparison: Comparison, _look: Look = LOOK) -> str:
    """All of it for machines."""
    return json.dumps(comparison.to_dict(), indent=2, allow_nan=False) + "\n"
