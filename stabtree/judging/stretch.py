"""`--steps A:B`: the range of steps that is judged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, plain
from stabtree.loaders.assemble.steps import MAX_STEP

if TYPE_CHECKING:
    from stabtree.loaders import Loaded

Ends = tuple[int | None, int | None]
OPTION = "--steps"
FORMS = f"type {OPTION} 500:800, {OPTION} 500: or {OPTION} :800"


def stretch_of(text: str | None) -> Ends | None:
    """Return the first and the last step of `A:B`, None for an open end; None without the option.

    Raises:
        StabtreeError: if the text is not of that form, or ends before it begins.
    """
    if text is None:
        return None
    first, colon, last = (part.strip() for part in text.partition(":"))
    shown = repr(clean(text, 40))
    if not colon or not _are_numbers(first, last):
        raise StabtreeError(f"{shown} is not of the form A:B", where=OPTION, hint=FORMS)
    for part in filter(None, (first, last)):
        problem = _step_problem(part)
        if problem:
            raise StabtreeError(f"{shown}: {problem}", where=OPTION, hint=_suggestion(_number(first), _number(last)))
    low, high = _end(first), _end(last)
    if low is not None and high is not None and low > high:
        hint = f"type {OPTION} {high}:{low}"
        raise StabtreeError(f"{shown} ends before it begins", where=OPTION, hint=hint)
    return low, high


def _are_numbers(first: str, last: str) -> bool:
    """Return whether at least one end is there, and each that is there is a number."""
    numbers = [_number(part) for part in (first, last)]
    known = [one for one in numbers if one is not None]
    return bool(known) and not any(map(math.isnan, known))


def _end(part: str) -> int | None:
    """Return the step of an end; None where it is open."""
    if part:
        return int(part)
    return None


def _number(part: str) -> float | None:
    """Parse an end, spelled as people do (1e3, 1,000); None if it is open, NaN if it is not a number."""
    if not part:
        return None
    try:
        return float(part.replace(",", ""))
    except ValueError:
        return math.nan


def _step_problem(part: str) -> str:
    """Return why a number can't be an end; empty if it can."""
    number = _number(part) or 0.0
    if number < 0:
        return "no step is below 0"
    if number >= MAX_STEP:
        return "no log holds so large a step"
    if plain(part) and part.isdigit():
        return ""
    return "a step is written as digits alone"


def _suggestion(first: float | None, last: float | None) -> str:
    """Return what to type to say the same; an end that no log reaches is left open."""
    low = high = ""
    if first is not None and first < MAX_STEP:
        low = str(max(0, math.ceil(first)))
    if last is not None and last < MAX_STEP:
        high = str(math.floor(last))
    usable = (low or high) and not high.startswith("-") and int(low or 0) <= int(high or low)
    if usable:
        return f"type {OPTION} {low}:{high}"
    return FORMS


def cut(loaded: Loaded, ends: Ends | None) -> Loaded:
    """Return a loaded run cut to the range of steps; with its error if no step is in it."""
    if ends is None or isinstance(loaded.run, StabtreeError):
        return loaded
    from stabtree.loaders.assemble.stretch import stretch

    try:
        return replace(loaded, run=stretch(loaded.run, *ends))
    except StabtreeError as error:
        return replace(loaded, run=error)
