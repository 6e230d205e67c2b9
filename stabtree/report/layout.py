"""Blocks that fold until all of them fit on a screen: each is drawn and its lines are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass

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
        free: whether its lines don't count.
        group: no empty line separates neighbours of one group; empty where it has none.
    """

    name: str
    forms: tuple[Callable[[Page], None], ...]
    close: bool = False
    free: bool = False
    group: str = ""


def fitted(blocks: Sequence[Pane], folds: Iterable[str], most: int, new_page: Callable[[], Page]) -> str:
    """Return the blocks as one text, each folded no further than it takes to fit.

    Args:
        blocks: in their order on the screen.
        folds: names of blocks; each time a name comes up, that block takes its next form.
        most: how many lines there may be.
        new_page: makes an empty page to draw on.
    """
    forms = {block.name: 0 for block in blocks}
    drawn = {block.name: _drawn(block, forms[block.name], new_page) for block in blocks}
    known = {block.name: block for block in blocks}
    counted = [block for block in blocks if not block.free]
    for name in folds:
        if _joined(counted, drawn).count("\n") <= most:
            break
        if name in known and forms[name] + 1 < len(known[name].forms):
            forms[name] += 1
            drawn[name] = _drawn(known[name], forms[name], new_page)
    return _joined(blocks, drawn)


def _drawn(block: Pane, form: int, new_page: Callable[[], Page]) -> str:
    page = new_page()
    block.forms[form](page)
    return page.text().strip("\n")


def _joined(blocks: Sequence[Pane], drawn: dict[str, str]) -> str:
    text = last = ""
    for block in blocks:
        part = drawn[block.name]
        if not part:
            continue
        if text:
            text += "\n" if block.close or (block.group and block.group == last) else "\n\n"
        text += part
        last = block.group
    return f"{text}\n"
