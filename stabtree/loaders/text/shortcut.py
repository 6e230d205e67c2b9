"""The layout of a line, learned once: most lines of a log differ in their numbers only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.loaders.text.grammar import role
from stabtree.loaders.text.rows import Block

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.loaders.text.line import Line
    from stabtree.loaders.text.rows import Rows

_TOKEN = re.compile(
    r"[+-]?\d+(?:[.,:]\d+)*(?:\.(?!\d))?(?:[eE][+-]?\d+)?|(?<![\w.])[+-]?(?:nan|inf)(?!\w)", re.IGNORECASE
)
# One set of characters is matched far faster than the exact form of a number; `Block.flush` checks it.
# Nothing is ever given back (`++`), so that a line which fits almost costs no more than one that fits.
_VALUE = r"([-+.\deEnNaAiIfF]++)"
_OTHER = r"[-+.,:\deEnNaAiIfF]++"
MAX_LAYOUTS = 4
MAX_LEARNED = 24
MAX_TOKENS = 80
LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Layout:
    """What all lines of one kind have in common.

    Attributes:
        match: a compiled pattern's `fullmatch`, one group for each name.
        step: which group holds the step.
        names: the metrics that a line holds, for joining other lines to it.
        block: where the rows go.
    """

    match: Callable[[str], re.Match[str] | None]
    step: int
    names: frozenset[str]
    block: Block


def learn(text: str, line: Line, rows: Rows) -> Layout | None:
    """The layout of a line that names its own step; None where it has no fixed form."""
    if not line.step or line.step.start < 0 or line.bar or line.problem or len(text) > LONGEST:
        return None
    wanted = {line.step.start: "step"}
    for name, pair in (("epoch", line.epoch), ("rank", line.rank)):
        if pair and pair.start >= 0:
            wanted[pair.start] = name
    trains = any(role(pair.name)[0] == "loss" for pair in line.metrics)
    for pair in line.metrics:
        # The count of NaN iterations matters only where the loss is missing.
        if rows.wanted(pair.name) and (rows.names[pair.name] or not trains):
            if pair.start < 0:
                return None
            wanted[pair.start] = pair.name
    metrics = {role(name)[0] for name in wanted.values()} - {"", "step", "epoch", "rank"}
    if len(set(wanted.values())) < len(wanted) or not metrics:
        return None
    tokens = list(_TOKEN.finditer(text))
    starts = {token.start() for token in tokens}
    if len(tokens) > MAX_TOKENS or not wanted.keys() <= starts:
        return None
    pattern = _pattern(text, tokens, wanted)
    found = pattern.fullmatch(text)
    names = tuple(wanted[start] for start in sorted(wanted))
    values = {pair.start: pair.text for pair in (line.step, line.epoch, line.rank, *line.metrics) if pair}
    if not found or any(found[i] != values[start] for i, start in enumerate(sorted(wanted), 1)):
        return None
    block = Block(names, line.step.name, trains)
    rows.blocks.append(block)
    return Layout(pattern.fullmatch, names.index("step"), frozenset(pair.name for pair in line.metrics), block)


def _pattern(text: str, tokens: list[re.Match[str]], wanted: dict[int, str]) -> re.Pattern[str]:
    parts: list[str] = []
    end = 0
    for token in tokens:
        name = wanted.get(token.start())
        if token.start() == end and name is None and parts and parts[-1] == _OTHER:
            # The parts of a date.
            end = token.end()
            continue
        parts.append(_literal(text[end : token.start()]))
        parts.append(_OTHER if name is None else r"(\d++)" if name == "step" else _VALUE)
        end = token.end()
    parts.append(_literal(text[end:]))
    return re.compile("".join(parts))


def _literal(text: str) -> str:
    """Text that stays, with blanks that padding may widen or close."""
    pieces = re.split(r"( +)", text)
    return "".join(" *+" if piece.isspace() and piece else re.escape(piece) for piece in pieces)
