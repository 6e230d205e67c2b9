"""What became of the tests of a tree, a line each; of one that failed the walk and where it went another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean
from stabtree.render.page import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.visits import Visit
    from stabtree.diagnosis.why.cases import Swerve, Tried
    from stabtree.render.plot import Piece

INDENT, HEAD = 8, 9
LONGEST = 40  # characters of a log's name
MARKS: dict[str, Piece] = {"pass": ("pass", "passed"), "fail": ("FAIL", "failed"), "unread": ("error", "failed")}


def cases_text(name: str, results: Sequence[Tried], untested: Sequence[str], *, width: int, color: bool) -> str:
    """The whole report on the tests of a tree.

    Args:
        name: the tree's name.
        results: its tests, in order.
        untested: the leaves that none of them expects.
        width: of the screen.
        color: whether to colour.
    """
    page = Page(width=width, color=color)
    page.line((clean(name), "id"), (f"  {len(results):,} test{'s' if len(results) != 1 else ''}", "dim"))
    page.blank()
    names = [clean(result.case.run, LONGEST) for result in results]
    for shown, result in zip(names, results, strict=True):
        mark = MARKS["unread" if result.error else "pass" if result.passed else "fail"]
        cells = [mark, (shown, ""), (result.case.reaches, "id")]
        page.rows([cells], indent=1, widths=(INDENT - 1, max(map(len, names)) + 2))
        if not result.passed:
            _failed(page, result)
    page.blank()
    page.line((_counted(results), "heading"))
    if untested:
        page.item((f"no test reaches {len(untested)}", "dim"), [(", ".join(untested), "dim")], indent=0, head_width=20)
    return page.text()


def _failed(page: Page, result: Tried) -> None:
    """Why a test failed: what was reached, the walk, and the question that was answered otherwise."""
    if result.error:
        _told(page, "error", [(result.error.problem, "")])
        return
    _told(page, "reached", [(", ".join(result.found) or "no leaf: the run was not judged", "")])
    for place, line in enumerate(_path(result.path, page.width - INDENT - HEAD)):
        _told(page, "" if place else "path", line)
    if result.turn:
        _told(page, "turn", _turned(result.turn))
    if result.why:
        _told(page, "why", [(result.why, "")])


def _turned(turn: Swerve) -> list[Piece]:
    visit = turn.visit
    answer = visit.answer
    told = answer.reason if answer.verdict == UNKNOWN else answer.evidence[0].text if answer.evidence else ""
    wanted = " or ".join(verdict.replace("_", " ") for verdict in turn.wanted) or "anything else"
    pieces: list[Piece] = [(visit.question.id, "id"), (" says ", ""), (_verdict(visit), "answer")]
    pieces += [(", not ", ""), (wanted, "answer"), (f": {told}" if told else "", "")]
    return pieces


def _path(visits: Sequence[Visit], width: int) -> list[list[Piece]]:
    """The questions with their answers, on as many lines as it takes; no answer stands apart from its question."""
    lines: list[list[Piece]] = [[]]
    for visit in visits:
        step: list[Piece] = [(visit.question.id, "id"), (f" {_verdict(visit)}", "")]
        used = sum(len(text) for text, _ in [*lines[-1], *step])
        if lines[-1] and used + len(" › ›") > width:
            lines[-1].append((" ›", "dim"))
            lines.append(step)
        else:
            lines[-1] += [*([(" › ", "dim")] if lines[-1] else []), *step]
    return lines


def _verdict(visit: Visit) -> str:
    verdict = visit.answer.verdict
    return "not checked" if verdict == UNKNOWN else verdict.replace("_", " ")


def _told(page: Page, head: str, pieces: list[Piece]) -> None:
    page.item((head, "dim"), pieces, indent=INDENT, head_width=HEAD)


def _counted(results: Sequence[Tried]) -> str:
    unread = sum(result.error is not None for result in results)
    passed = sum(result.passed for result in results)
    parts = {"passed": passed, "failed": len(results) - passed - unread, "not read": unread}
    return ", ".join(f"{count} {word}" for word, count in parts.items() if count)
