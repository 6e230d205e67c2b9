"""What only a whole line shows: where it was measured, whether it is a bar, which numbers are no steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.loaders.text.lines import grammar
from stabtree.loaders.text.lines.line import MAX_STEP, Pair
from stabtree.loaders.text.lines.phase import mark_evaluated, name_apart

if TYPE_CHECKING:
    from stabtree.loaders.text.lines.line import Line
    from stabtree.metrics.names import Names

_AROUND = " '\"[(tensor"  # what may separate a name from its number


def finish(line: str, out: Line, names: Names, *, kinds: bool) -> None:
    """Settle what only the whole line shows: held-out data, bars, numbers that are no steps."""
    first = kinds and grammar.ITERATION.match(line)
    if first and not (out.step or out.epoch):
        out.step = Pair("iteration", first[1], first.start(1), "step")
    elif out.problem and not out.known:
        # Prose of two steps: `Tried to log to step 5 that is less than the current step 51`.
        out.step, out.problem = None, ""
    if out.metrics:
        mark_evaluated(line, out, names)
    if not out.epoch:
        out.epoch = _glued_epoch(line)
    if out.step:
        _check_step(line, out, out.step)
    if out.position:
        out.bar = _bar(line)
    if not out.problem and _lacks_loss(line, out, kinds=kinds):
        out.problem = "has no number behind its loss"
    name_apart(line, out, names)


def _glued_epoch(line: str) -> Pair | None:
    """Return the epoch of a line such as `12epoch`."""
    found = grammar.GLUED_EPOCH.search(line)
    if found:
        return Pair("epoch", found[1], role="epoch")
    return None


def _check_step(line: str, out: Line, step: Pair) -> None:
    """Report a step that is impossible; make a metric of a number that is none: not whole, or with a unit."""
    if not abs(step.value) < MAX_STEP:
        out.problem = out.problem or "names a step that is impossible"
    elif step.text[0] == "-" and step.text[1:].isdecimal():
        out.problem = out.problem or f"names a step that is impossible: {step.text[:20]}"
    elif step.value < 0 or not step.value.is_integer() or _has_unit(line, step):
        out.metrics.append(step)
        out.step = None


def _has_unit(line: str, step: Pair) -> bool:
    """Return whether a unit or a percent sign follows a number; `10k` and `3rd` are counts all the same."""
    after = line[step.start + len(step.text) : step.start + len(step.text) + 1]
    counted = step.power or step.unit in grammar.ORDINALS
    return after == "%" or (after.isalpha() and not counted)


def _bar(line: str) -> str:
    if grammar.KERAS_BAR.search(line):
        return "keras"
    if grammar.TQDM_BAR.search(line):
        return "tqdm"
    return ""


def _lacks_loss(line: str, out: Line, *, kinds: bool) -> bool:
    """Return whether the line names a loss without a number; `Policy Loss: 0.1` has one."""
    if not out.step and "'" not in line:
        return False
    if any(_is_loss(pair, kinds=kinds) for pair in out.metrics):
        return False
    starts = [pair.start for pair in out.metrics]
    for loss in grammar.LOSS_WITHOUT_NUMBER.finditer(line):
        end = loss.end()
        if not any(end <= start and not line[end:start].strip(_AROUND) for start in starts):
            return True
    return False


def _is_loss(pair: Pair, *, kinds: bool) -> bool:
    return pair.role in ("loss", "eval_loss") or (kinds and "loss" in pair.name.lower())
