"""What became of the tests of a tree, a line each; of one that failed the walk and where it went another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean
from stabtree.report.page import Page
from stabtree.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.visits import Visit
    from stabtree.report.text import Piece
    from stabtree.tools.tune.why.cases import Tried, WrongTurn

INDENT, HEAD = 8, 9
LONGEST = 40  # characters of a log's name


def cases_text(name: str, results: Sequence[Tried], untested: Sequence[str], *, width: int, color: bool) -> str:
    """Return the whole report on the tests of a tree.

    Args:
        name: the tree's name.
        results: its tests, in order.
        untested: the leaves that none of them expects.
        width: of the screen.
        color: whether to colour.
    """
    page = Page(width=width, color=color)
    page.line((clean(name), "id"), (f"  {counted(len(results), 'test')}", "dim"))
    page.blank()
    names = [clean(result.case.run, LONGEST) for result in results]
    for shown, result in zip(names, results, strict=True):
        cells = [_mark(result), (shown, ""), (result.case.reaches, "id")]
        page.rows([cells], indent=1, widths=(INDENT - 1, max(map(len, names)) + 2))
        if not result.passed:
            _failed(page, result)
    page.blank()
    page.line((_totals(results), "heading"))
    if untested:
        page.item((f"no test reaches {len(untested)}", "dim"), [(", ".join(untested), "dim")], indent=0, head_width=20)
    return page.text()


def _mark(result: Tried) -> Piece:
    if result.error:
        return ("error", "failed")
    if result.passed:
        return ("pass", "passed")
    return ("FAIL", "failed")


def _failed(page: Page, result: Tried) -> None:
    """Why a test failed: what was reached, the walk, and the question that was answered otherwise."""
    if result.error:
        _item(page, "error", [(result.error.problem, "")])
        return
    _item(page, "reached", [(", ".join(result.found) or "no leaf: the run was not judged", "")])
    head = "path"
    for line in _path(result.path, page.width - INDENT - HEAD):
        _item(page, head, line)
        head = ""
    if result.turn:
        _item(page, "turn", _turned(result.turn))
    if result.why:
        _item(page, "why", [(result.why, "")])


def _turned(turn: WrongTurn) -> list[Piece]:
    visit = turn.visit
    answer = visit.answer
    reason = ""
    if answer.verdict == UNKNOWN:
        reason = f": {answer.reason}"
    elif answer.evidence:
        reason = f": {answer.evidence[0].text}"
    wanted = " or ".join(verdict.replace("_", " ") for verdict in turn.wanted) or "anything else"
    pieces: list[Piece] = [(visit.question.id, "id"), (" says ", ""), (_verdict(visit), "answer")]
    return [*pieces, (", not ", ""), (wanted, "answer"), (reason, "")]


def _path(visits: Sequence[Visit], width: int) -> list[list[Piece]]:
    """The questions with their answers, on as many lines as it takes; no answer is parted from its question."""
    lines: list[list[Piece]] = [[]]
    for visit in visits:
        step: list[Piece] = [(visit.question.id, "id"), (f" {_verdict(visit)}", "")]
        used = sum(len(text) for text, _ in [*lines[-1], *step])
        if lines[-1] and used + len(" › ›") > width:
            lines[-1].append((" ›", "dim"))
            lines.append(step)
        else:
            if lines[-1]:
                lines[-1].append((" › ", "dim"))
            lines[-1] += step
    return lines


def _verdict(visit: Visit) -> str:
    verdict = visit.answer.verdict
    if verdict == UNKNOWN:
        return "not checked"
    return verdict.replace("_", " ")


def _item(page: Page, head: str, pieces: list[Piece]) -> None:
    page.item((head, "dim"), pieces, indent=INDENT, head_width=HEAD)


def _totals(results: Sequence[Tried]) -> str:
    unread = sum(result.error is not None for result in results)
    passed = sum(result.passed for result in results)
    parts = {"passed": passed, "failed": len(results) - passed - unread, "not read": unread}
    return ", ".join(f"{count} {word}" for word, count in parts.items() if count)
