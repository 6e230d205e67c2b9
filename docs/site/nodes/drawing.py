"""A section of a tree as a picture: its first question at the top left, every answer a branch to the right."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from docs.site.markup import file_of, has_page
from stabtree.tree.compose import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tree.model import Section, Tree

WIDTH, LINE, PAD, APART = 168, 15, 7, 9  # px: of a box, of a line in it, around its text, between two boxes
LETTER, LEAST_GAP, MARGIN = 6.2, 46, 2  # px: of a letter on a branch, between two columns, around the picture
STEM, BEND = 11, 6  # px: from a box to where its branches part, radius of a turn
WRAP = 23  # letters in a line of a box


@dataclass(slots=True)
class Box:
    """A question, an end, or a way to another place, with what follows from it.

    Attributes:
        said: the answers that lead to it.
        id: of the node that it links to; empty for none.
        words: the lines in it, the id aside.
        look: its class.
        onward: what follows.
        top: where its upper edge lies, px.
    """

    said: str
    id: str
    words: list[str]
    look: str
    onward: list[Box] = field(default_factory=list)
    top: float = 0.0

    @property
    def height(self) -> float:
        """In px."""
        return LINE * (len(self.words) + bool(self.id)) + 2 * PAD

    @property
    def branch(self) -> float:
        """In px, the height at which branches come and go: the same for all boxes, so that a first one is straight."""
        return self.top + PAD + LINE * 0.9


def drawn(tree: Tree, section: Section) -> str:
    """The picture, as SVG in a block that scrolls."""
    root = _box(tree, section.entry, section, "", set())
    height = _placed(root, MARGIN)
    gaps = _gaps(root)
    lefts = [MARGIN + sum(WIDTH + gap for gap in gaps[:depth]) for depth in range(len(gaps) + 1)]
    shapes = "\n".join(_shapes(root, 0, lefts))
    wide, high = lefts[-1] + WIDTH + MARGIN, height + MARGIN
    title = escape(f"{section.heading}, drawn as a tree")
    svg = f'<svg viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" height="{high:.0f}" role="group"'
    return f'```{{raw}} html\n<div class="drawn">{svg} aria-label="{title}">\n{shapes}\n</svg></div>\n```'


def _box(tree: Tree, id_: str, section: Section, said: str, seen: set[str]) -> Box:
    if id_ in tree.leaves:
        leaf = tree.leaves[id_]
        if leaf.title == NOTHING:
            return Box(said, "", ["nothing found"], "away")
        return Box(said, id_, textwrap.wrap(leaf.title, WRAP), str(leaf.severity))
    question = tree.questions[id_]
    if question.section != section.id:
        return Box(said, id_, textwrap.wrap(tree.section(question.section).heading, WRAP), "away")
    if id_ in seen:
        return Box(said, id_, ["as above"], "away")
    seen.add(id_)
    box = Box(said, id_, textwrap.wrap(question.short or question.ask, WRAP), "question")
    for target in dict.fromkeys(question.go.values()):
        verdicts = ", ".join(verdict for verdict, to in question.go.items() if to == target)
        box.onward.append(_box(tree, target, section, verdicts, seen))
    return box


def _placed(box: Box, top: float) -> float:
    """Place a box at `top`, and what follows from it beside and below; where all of it ends."""
    box.top = end = top
    for place, child in enumerate(box.onward):
        end = _placed(child, end + (APART if place else 0))
    return max(end, top + box.height)


def _gaps(box: Box, depth: int = 0, found: list[float] | None = None) -> list[float]:
    """The room between the columns: as much as the longest answer there takes."""
    gaps: list[float] = [] if found is None else found
    for child in box.onward:
        if depth == len(gaps):
            gaps.append(LEAST_GAP)
        gaps[depth] = max(gaps[depth], LETTER * len(child.said) + STEM + 12)
        _gaps(child, depth + 1, gaps)
    return gaps


def _shapes(box: Box, depth: int, lefts: list[float]) -> Iterator[str]:
    left = lefts[depth]
    for child in box.onward:
        start, end = left + WIDTH, lefts[depth + 1]
        y, to = box.branch, child.branch
        turn = f"V{to - BEND:.1f}q0 {BEND} {BEND} {BEND}" if to > y else ""
        yield f'<path class="edge" d="M{start:.1f} {y:.1f}H{start + STEM:.1f}{turn}H{end:.1f}"/>'
        yield f'<text class="said" x="{end - 5:.1f}" y="{to - 4:.1f}" text-anchor="end">{escape(child.said)}</text>'
        yield from _shapes(child, depth + 1, lefts)
    lines = [f'<tspan class="id">{escape(box.id)}</tspan>'] if box.id and box.look in ("question", "away") else []
    lines += [escape(word) for word in box.words]
    if box.id and box.look not in ("question", "away"):
        lines.append(f'<tspan class="id">{escape(box.id)}</tspan>')
    spans = "".join(
        f'<tspan x="{left + 8:.1f}" y="{box.top + PAD + LINE * (place + 0.78):.1f}">{line}</tspan>'
        for place, line in enumerate(lines)
    )
    rect = f'<rect x="{left:.1f}" y="{box.top:.1f}" width="{WIDTH}" height="{box.height:.1f}" rx="6"/>'
    shape = f'<g class="{box.look}">{rect}<text>{spans}</text></g>'
    folder = has_page(box.id) if box.id else ""
    yield f'<a href="../{folder}/{file_of(box.id)}.html">{shape}</a>' if folder else shape
