"""Blocks that fold until all of them fit on a screen: each is drawn and its lines are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stabtree.report.page import Page


@dataclass(frozen=True, slots=True)
class Pane:
    """A part of a screen.

    Attributes:
        name: what it is called in the order of folding.
        forms: how to draw it, from the longest form to the shortest.
        close: whether no empty line separates it from the block before it.
        most: how many lines it may have by itself; a longer form is passed over for a shorter one, where it has one.
    """

    name: str
    forms: tuple[Callable[[Page], None], ...]
    close: bool = False
    most: int | None = None


def fitted(blocks: Sequence[Pane], folds: Iterable[str], most: int, new_page: Callable[[], Page]) -> str:
    """Return the blocks as one text, each folded no further than it takes to fit.

    Args:
        blocks: in their order on the screen.
        folds: names of blocks; each time a name comes up, that block takes its next form.
        most: how many lines there may be.
        new_page: makes an empty page to draw on.
    """
    forms = {block.name: _first(block, new_page) for block in blocks}
    drawn = {block.name: _drawn(block, forms[block.name], new_page) for block in blocks}
    known = {block.name: block for block in blocks}
    for name in folds:
        if _joined(blocks, drawn).count("\n") <= most:
            break
        if name in known and forms[name] + 1 < len(known[name].forms):
            forms[name] += 1
            drawn[name] = _drawn(known[name], forms[name], new_page)
    return _joined(blocks, drawn)


def _first(block: Pane, new_page: Callable[[], Page]) -> int:
    """Return the longest form of a block that is no longer than it may be; else its shortest."""
    last = len(block.forms) - 1
    if block.most is None:
        return 0
    short = (form for form in range(last) if _drawn(block, form, new_page).count("\n") < block.most)
    return next(short, last)


def _drawn(block: Pane, form: int, new_page: Callable[[], Page]) -> str:
    page = new_page()
    block.forms[form](page)
    return page.text().strip("\n")


def _joined(blocks: Sequence[Pane], drawn: dict[str, str]) -> str:
    text = ""
    for block in blocks:
        part = drawn[block.name]
        if text and part:
            text += "\n" if block.close else "\n\n"
        text += part
    return f"{text}\n"
