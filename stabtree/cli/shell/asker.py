"""`--interactive`: asks a person at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stabtree.cli.shell.printing import screen, tell
from stabtree.common.answer import NO, UNKNOWN, YES

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.tree.model import Question, Tree

SYNONYMS = {"y": YES, "true": YES, "1": YES, "n": NO, "false": NO, "0": NO, "?": "?"}
NOT_KNOWN = ("", UNKNOWN, "u", "skip", "don't know")


def asker(tree: Tree) -> Callable[[Question], str | None]:
    """What asks a question on standard error, so that the result stays alone on standard output."""
    asking = True

    def ask(question: Question) -> str | None:
        nonlocal asking
        verdicts = [verdict for verdict in question.go if verdict != UNKNOWN]
        if asking:
            _show(tree, question, verdicts)
        while asking:
            prompt = f"  {', '.join(verdicts)}, ? for more, or nothing if you don't know"
            try:
                told = str(typer.prompt(prompt, default="", show_default=False, err=True)).strip().lower()
            except typer.Abort:
                # The input has ended: what is left stays unknown.
                asking = False
                break
            if told in NOT_KNOWN:
                return None
            word = _understood(told, [*verdicts, *question.words])
            if word == "?":
                tell(_explained(tree, question))
            elif word:
                return word
            else:
                tell(f"  {told!r} is not one of them")
        return None

    return ask


def _show(tree: Tree, question: Question, verdicts: list[str]) -> None:
    tell(f"\n{question.id}  {question.ask}")
    if question.person:
        tell(f"  {question.person}")
    for verdict in verdicts:
        target = question.go[verdict]
        leads = tree.leaves[target].title if target in tree.leaves else f"asks next: {tree.questions[target].ask}"
        words = [word for word, meant in question.words.items() if meant == verdict]
        also = f" (or {', '.join(words)})" if words else ""
        tell(f"    {verdict}{also}: {leads}")


def _understood(told: str, choices: list[str]) -> str | None:
    """The answer that is meant: as it stands, in another word for yes and no, or with spaces or dashes in it."""
    words = (told, SYNONYMS.get(told, ""), told.replace(" ", "_").replace("-", "_"))
    return next((word for word in words if word in (*choices, "?")), None)


def _explained(tree: Tree, question: Question) -> str:
    from stabtree.render.trees import nodes, reference

    width, color = screen()
    found, _ = nodes.find(tree, question.id)
    return reference.explain(tree, found, width=width, color=color)
