"""`stabtree tree test`: the tests that a tree carries itself, each a log with the leaf that it must reach."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from stabtree.cli.terminal import emit, screen
from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tree.model import Case, Tree

INDENT, HEAD = 8, 9
NAME = 40  # characters of a log's name
Name = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A shipped tree, or a YAML file.")]


class Tried(NamedTuple):
    """A test with the leaves that were reached, worst first, and lines that say why it failed."""

    case: Case
    reached: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    error: StabtreeError | None = None

    @property
    def passed(self) -> bool:
        """Whether the leaf was reached."""
        return self.case.reaches in self.reached


def test(name: Name) -> None:
    """Run a tree's own tests: logs beside it, each with the leaf that it must reach.

    The exit code is 0 if all passed, 1 if one failed, 2 if the tree or a log can't be read.
    """
    from stabtree.common.errors import FOUND, UNUSABLE
    from stabtree.tree.load import load_tree

    tree = load_tree(name)
    if not tree.tests:
        hint = "add `tests: [{run: fixtures/run.csv, reaches: LEAF}]` to it"
        raise StabtreeError("has no tests", where=clean(name), hint=hint)
    results = [_tried(tree, case, Path(name).parent) for case in tree.tests]
    emit(_text(tree, results))
    if not all(result.passed for result in results):
        raise typer.Exit(FOUND if any(not (result.passed or result.error) for result in results) else UNUSABLE)


def _tried(tree: Tree, case: Case, folder: Path) -> Tried:
    """Diagnose the run of a test, whose log is in the folder of the tree."""
    from stabtree.diagnosis.walk import diagnose
    from stabtree.loaders import load_run
    from stabtree.run import CONFIG
    from stabtree.tools.check.load import load_config

    try:
        file = folder / case.run
        if not file.resolve().is_relative_to(folder.resolve()):
            raise StabtreeError("it is a link that leads out of the tree's folder", hint="copy the log to the tree")
        run = load_config(file) if CONFIG in tree.when else load_run(file)
        found = diagnose(run, tree, answers=case.answers)
    except StabtreeError as error:
        return Tried(case, error=error)
    except (OSError, RuntimeError, ValueError):  # links in a loop, a name with a NUL
        return Tried(case, error=StabtreeError("it is not a name of a file", hint="name a log beside the tree"))
    walks = (found.path, *found.further)
    reached = tuple(finding.leaf.id for finding in found.reached)
    if not reached and found.verdict != UNKNOWN:
        reached = tuple(dict.fromkeys(walk[-1].target for walk in walks if walk and walk[-1].target in tree.leaves))
    result = Tried(case, reached)
    return result if result.passed else result._replace(lines=tuple(_why(found, result)))


def _why(found: Diagnosis, result: Tried) -> list[tuple[str, str]]:
    """Return what a failed test shows: the leaves, the walk to the worst, and what keeps a run from being ok."""
    from stabtree.report.words import answer_word

    lines = [("reached", ", ".join(result.reached) or "no leaf: the run was not judged")]
    ends = {walk[-1].target: walk for walk in reversed((found.path, *found.further)) if walk}
    walk = ends.get(result.reached[0], found.path) if result.reached else found.path
    lines.append(("path", " › ".join(f"{visit.question.id} {answer_word(visit)}" for visit in walk)))
    if result.reached and found.tree.leaves[result.case.reaches].severity is Severity.OK:
        # What keeps a run from an ok leaf is the worst finding, whichever section it is of.
        visit = next((item for item in reversed(walk) if item.answer.verdict not in (NO, UNKNOWN)), None)
        if visit and visit.answer.evidence:
            lines.append(("turn", f"{visit.question.id} says {answer_word(visit)}: {visit.answer.evidence[0].text}"))
    return lines


def _text(tree: Tree, results: Sequence[Tried]) -> str:
    """Return a line for each test, what each failed one shows, and the leaves that no test expects."""
    from stabtree.report.page import Page, counted

    width, color = screen()
    page = Page(width=width, color=color)
    page.line((clean(tree.name), "id"), (f"  {counted(len(results), 'test')}", "dim"))
    page.blank()
    names = [clean(result.case.run, NAME) for result in results]
    for name, result in zip(names, results, strict=True):
        mark = ("pass", "passed") if result.passed else ("FAIL", "failed")
        if result.error:
            mark = ("error", "failed")
        widths = (INDENT - 1, max(map(len, names)) + 2)
        page.rows([[mark, (name, ""), (result.case.reaches, "id")]], indent=1, widths=widths)
        for head, text in [("error", result.error.problem)] if result.error else result.lines:
            page.item((head, "dim"), [(text, "")], indent=INDENT, head_width=HEAD)
    page.blank()
    unread, passed = (
        sum(map(bool, flags)) for flags in zip(*((item.error, item.passed) for item in results), strict=True)
    )
    parts = {"passed": passed, "failed": len(results) - passed - unread, "not read": unread}
    page.line((", ".join(f"{count} {word}" for word, count in parts.items() if count), "heading"))
    if untested := _untested(tree):
        page.item((f"no test reaches {len(untested)}", "dim"), [(", ".join(untested), "dim")], indent=0, head_width=20)
    return page.text()


def _untested(tree: Tree) -> list[str]:
    """Return the leaves that a tree itself states, not those that it uses, which no test expects."""
    from stabtree.tree.model import NOTHING

    own = {section.id for section in tree.sections if section.tree in ("", tree.name)}
    nodes = {id_ for id_, question in tree.questions.items() if question.section in own}
    nodes |= {id_ for id_, group in tree.groups.items() if group.section in own}
    expected = {case.reaches for case in tree.tests}
    leaves = (leaf for leaf in tree.leaves.values() if leaf.of in nodes and leaf.title != NOTHING)
    return [leaf.id for leaf in leaves if leaf.id not in expected]
