"""`--interactive`: ask a person at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stabtree.cli.shell.printing import notify, screen
from stabtree.common.answer import NO, UNKNOWN, YES

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.tree.model import Question, Tree

SYNONYMS = {"y": YES, "true": YES, "1": YES, "n": NO, "false": NO, "0": NO, "?": "?"}
NOT_KNOWN = ("", UNKNOWN, "u", "skip", "don't know")


def asker(tree: Tree) -> Callable[[Question], str | None]:
    """Return what asks a question; on standard error, so that standard output holds the result alone."""
    asking = True

    def ask(question: Question) -> str | None:
        nonlocal asking
        verdicts = [verdict for verdict in question.go if verdict != UNKNOWN]
        if asking:
            _show(tree, question, verdicts)
        while asking:
            prompt = f"  {', '.join(verdicts)}, ? for more, or nothing if you don't know"
            try:
                typed = str(typer.prompt(prompt, default="", show_default=False, err=True)).strip().lower()
            except typer.Abort:
                # The input has ended: all further answers are unknown.
                asking = False
                break
            if typed in NOT_KNOWN:
                return None
            word = _understood(typed, [*verdicts, *question.words])
            if word == "?":
                notify(_explained(tree, question))
            elif word:
                return word
            else:
                notify(f"  {typed!r} is not one of them")
        return None

    return ask


def _show(tree: Tree, question: Question, verdicts: list[str]) -> None:
    notify(f"\n{question.id}  {question.ask}")
    if question.person:
        notify(f"  {question.person}")
    for verdict in verdicts:
        target = question.go[verdict]
        if target in tree.leaves:
            leads = tree.leaves[target].title
        else:
            leads = f"asks next: {tree.questions[target].ask}"
        words = [word for word, meant in question.words.items() if meant == verdict]
        also = f" (or {', '.join(words)})" if words else ""
        notify(f"    {verdict}{also}: {leads}")


def _understood(typed: str, choices: list[str]) -> str | None:
    """Return the answer that is meant: as typed, by another word for yes or no, or with spaces or dashes in it."""
    words = (typed, SYNONYMS.get(typed, ""), typed.replace(" ", "_").replace("-", "_"))
    return next((word for word in words if word in (*choices, "?")), None)


def _explained(tree: Tree, question: Question) -> str:
    from stabtree.report.explain import find, one_screen

    width, color = screen()
    found, _ = find(tree, question.id)
    return one_screen(tree, found, named=question.id, width=width, color=color)
