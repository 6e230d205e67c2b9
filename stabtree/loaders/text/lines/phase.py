"""Which numbers of a line were measured on held-out data, and how those of one name are distinguished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.loaders.text.lines import grammar
from stabtree.loaders.text.lines.grammar import role

if TYPE_CHECKING:
    from stabtree.loaders.text.lines.line import Line, Pair
    from stabtree.metrics.names import Names

MAX_GROUP = 40


def mark_evaluated(line: str, out: Line, names: Names) -> None:
    """Rename the metrics after a word such as `eval`, as measured on held-out data."""
    begins = [pair.start - len(pair.name) for pair in out.metrics]
    tags = _tags(line, max(begins))
    out.held = any(held for _, held in tags)
    if not out.held:
        return
    for index, (pair, begin) in enumerate(zip(out.metrics, begins, strict=True)):
        before = [held for start, held in tags if start < begin]
        if before and before[-1] and pair.role not in ("eval_loss", "lr"):
            out.metrics[index] = held_out(pair, names)


def _tags(line: str, end: int) -> list[tuple[int, bool]]:
    """Return where the words are that say what follows them was measured on, and whether it was held-out data."""
    # What is printed behind a bar does not belong to the name of the bar.
    bars = [bar.end() for bar in grammar.BAR_END.finditer(line) if bar.end() <= end]
    scope = max(0, max(bars, default=0) - 1)
    return [(tag.start(), tag["held"] is not None) for tag in grammar.EVALUATED.finditer(line, scope)]


def held_out(pair: Pair, names: Names) -> Pair:
    """Return a pair by the name of the same metric on held-out data."""
    if not pair.role and grammar.HELD_OUT.search(pair.name):
        return pair
    name = f"valid/{pair.name}"
    if pair.role and not role(name, names).role:
        name = f"valid/{pair.role}"
    return _renamed(pair, name, names)


def _renamed(pair: Pair, name: str, names: Names) -> Pair:
    kind, preference = role(name, names)
    return replace(pair, name=name, role=kind, preference=preference)


def name_apart(line: str, out: Line, names: Names) -> None:
    """Give a name that comes again on its line the name of its group: `loss[loss=7.5], tot_loss[loss=7.4]`."""
    met: set[str] = set()
    held = False
    for index, pair in enumerate(out.metrics):
        name = pair.name
        if name in met:
            name = _apart(line, pair, index, held)
            out.metrics[index] = _renamed(pair, name, names)
        else:
            held = grammar.HELD_OUT.search(name) is not None
        met.add(name)


def _apart(line: str, pair: Pair, index: int, held: bool) -> str:
    """Return another name for the pair at `index`; `held` says whether those before it are of held-out data."""
    group = _group(line, pair.start)
    if group:
        return f"{group}/{pair.name}"
    if held:
        return f"valid/{pair.name}"
    return f"{pair.name} ({index + 1})"


def _group(line: str, start: int) -> str:
    """Return the word before the bracket that is open at `start`; nothing where none is."""
    low = max(0, start - grammar.MAX_KEY)
    bracket = max(line.rfind(sign, low, start) for sign in "[({")
    if bracket < max(line.rfind(sign, low, start) for sign in "])}"):
        return ""
    found = grammar.GROUP.search(line, max(low, bracket - MAX_GROUP), bracket)
    return found[0] if found else ""
