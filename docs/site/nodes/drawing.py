"""A section of a tree as a picture: its first question at the top left, every answer a branch.

Where an answer is no and the walk goes on, it goes down; whatever else follows stands to the right.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from docs.site.markup import has_page
from docs.site.nodes.ways import exits
from stabtree.common.answer import NO
from stabtree.tree.build import file_of
from stabtree.tree.model import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tree.model import Section, Tree

WIDTH, LINE, PAD, APART = 168, 15, 7, 9  # px: of a box, of a line in it, around its text, between two boxes
LETTER, MIN_GAP, MARGIN = 6.2, 46, 2  # px: of a letter on a branch, between two columns, around the picture
STEM, BEND, DOWN = 11, 6, 22  # px: from a box to where its branches part, radius of a turn, to what is below
ASKS, AWAY = "question", "away"
WRAP = 22  # letters in a line of a box


@dataclass(slots=True)
class Box:
    """A question, an end, or a way to another place, with what follows from it.

    Attributes:
        said: the answers that lead to it.
        id: of the node that it links to; empty for none.
        words: the lines in it, the id aside.
        look: its class.
        onward: what follows to its right.
        below: what follows where the answer is no, and the walk goes on.
        top: where its upper edge lies, px.
    """

    said: str
    id: str
    words: list[str]
    look: str
    onward: list[Box] = field(default_factory=list)
    below: Box | None = None
    top: float = 0.0

    @property
    def height(self) -> float:
        """In px."""
        return LINE * (len(self.words) + bool(self.id)) + 2 * PAD

    @property
    def branch(self) -> float:
        """In px, the height at which branches come and go: the same for all boxes, so that a first one is straight."""
        return self.top + PAD + LINE * 0.9

    @property
    def asks(self) -> bool:
        """Whether it is no end."""
        return self.look in (ASKS, AWAY)


def drawn(tree: Tree, section: Section) -> str:
    """The picture, as SVG in a block that scrolls."""
    root = _box(tree, section.entry, section, "", set())
    high = _placed(root, MARGIN) + MARGIN
    gaps: list[float] = []
    _widen(root, 0, gaps)
    lefts = [MARGIN + sum(WIDTH + gap for gap in gaps[:depth]) for depth in range(len(gaps) + 1)]
    wide = lefts[-1] + WIDTH + MARGIN
    title = escape(f"{section.heading}, drawn as a tree")
    svg = f'<svg viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" height="{high:.0f}" role="group"'
    shapes = "\n".join(_shapes(root, 0, lefts))
    return f'```{{raw}} html\n<div class="drawn">{svg} aria-label="{title}">\n{shapes}\n</svg></div>\n```'


def _box(tree: Tree, id_: str, section: Section, said: str, seen: set[str]) -> Box:
    if id_ in tree.leaves:
        leaf = tree.leaves[id_]
        if leaf.title == NOTHING:
            return Box(said, "", ["nothing found"], AWAY)
        return Box(said, id_, textwrap.wrap(leaf.title, WRAP), str(leaf.severity))
    question = tree.questions[id_]
    if question.section != section.id:
        return Box(said, id_, textwrap.wrap(tree.section(question.section).heading, WRAP), AWAY)
    if id_ in seen:
        return Box(said, id_, ["drawn elsewhere"], AWAY)
    seen.add(id_)
    box = Box(said, id_, textwrap.wrap(question.short or question.ask, WRAP), ASKS)
    for target, verdicts in exits(question).items():
        child = _box(tree, target, section, ", ".join(verdicts), seen)
        if NO in verdicts and child.asks:
            box.below = child
        else:
            box.onward.append(child)
    return box


def _placed(box: Box, top: float) -> float:
    """Place a box at `top`, and what follows from it beside and below; where all of it ends."""
    box.top = end = top
    for place, child in enumerate(box.onward):
        end = _placed(child, end + (APART if place else 0))
    end = max(end, top + box.height)
    return _placed(box.below, end + DOWN) if box.below else end


def _widen(box: Box, depth: int, gaps: list[float]) -> None:
    """The room between the columns: as much as the longest answer there takes."""
    for child in box.onward:
        if depth == len(gaps):
            gaps.append(MIN_GAP)
        gaps[depth] = max(gaps[depth], LETTER * len(child.said) + STEM + 12)
        _widen(child, depth + 1, gaps)
    if box.below:
        _widen(box.below, depth, gaps)


def _shapes(box: Box, depth: int, lefts: list[float]) -> Iterator[str]:
    left = lefts[depth]
    for child in box.onward:
        start, end, y, to = left + WIDTH, lefts[depth + 1], box.branch, child.branch
        turn = f"V{to - BEND:.1f}q0 {BEND} {BEND} {BEND}" if to > y else ""
        yield f'<path class="edge" d="M{start:.1f} {y:.1f}H{start + STEM:.1f}{turn}H{end:.1f}"/>'
        yield f'<text class="said" x="{end - 5:.1f}" y="{to - 4:.1f}" text-anchor="end">{escape(child.said)}</text>'
        yield from _shapes(child, depth + 1, lefts)
    if box.below:
        x, start, end = left + 2 * STEM, box.top + box.height, box.below.top
        yield f'<path class="edge" d="M{x:.1f} {start:.1f}V{end:.1f}"/>'
        yield f'<text class="said" x="{x + 5:.1f}" y="{end - 5:.1f}">{escape(box.below.said)}</text>'
        yield from _shapes(box.below, depth, lefts)
    yield _shape(box, left)


def _shape(box: Box, left: float) -> str:
    name = [f'<tspan class="id">{escape(box.id)}</tspan>'] if box.id else []
    words = [escape(word) for word in box.words]
    spans = "".join(
        f'<tspan x="{left + 8:.1f}" y="{box.top + PAD + LINE * (place + 0.78):.1f}">{line}</tspan>'
        for place, line in enumerate([*name, *words] if box.asks else [*words, *name])
    )
    rect = f'<rect x="{left:.1f}" y="{box.top:.1f}" width="{WIDTH}" height="{box.height:.1f}" rx="6"/>'
    shape = f'<g class="{box.look}">{rect}<text>{spans}</text></g>'
    folder = has_page(box.id) if box.id else ""
    return f'<a href="../{folder}/{file_of(box.id)}.html">{shape}</a>' if folder else shape
