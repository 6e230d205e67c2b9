"""`--steps A:B`: which stretch of a log is judged."""

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
    """The first and the last step that `A:B` names, None for an end that is left open; None for no option.

    Raises:
        StabtreeError: where it is not of that form, or ends before it begins.
    """
    if text is None:
        return None
    first, colon, last = (part.strip() for part in text.partition(":"))
    shown = repr(clean(text, 40))
    numbers = [_number(part) for part in (first, last)]
    if not colon or not (first or last) or any(math.isnan(one) for one in numbers if one is not None):
        raise StabtreeError(f"{shown} is not of the form A:B", where=OPTION, hint=FORMS)
    if wrong := next((reason for part in (first, last) if part and (reason := _unfit(part))), ""):
        raise StabtreeError(f"{shown}: {wrong}", where=OPTION, hint=_instead(*numbers))
    ends = int(first) if first else None, int(last) if last else None
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        hint = f"type {OPTION} {ends[1]}:{ends[0]}"
        raise StabtreeError(f"{shown} ends before it begins", where=OPTION, hint=hint)
    return ends


def _number(part: str) -> float | None:
    """What an end says, spelled as people do (1e3, 1,000); None where it is open, NaN where it says no number."""
    try:
        return float(part.replace(",", "")) if part else None
    except ValueError:
        return math.nan


def _unfit(part: str) -> str:
    """Why a number can't be an end; empty where it can."""
    number = _number(part) or 0.0
    if number < 0:
        return "no step is below 0"
    if number >= MAX_STEP:
        return "no log holds so large a step"
    return "" if plain(part) and part.isdigit() else "a step is written as digits alone"


def _instead(first: float | None, last: float | None) -> str:
    """What to type so that it means the same, with an end that no log reaches left open."""
    low = "" if first is None or first >= MAX_STEP else str(max(0, math.ceil(first)))
    high = "" if last is None or last >= MAX_STEP else str(math.floor(last))
    usable = (low or high) and not high.startswith("-") and int(low or 0) <= int(high or low)
    return f"type {OPTION} {low}:{high}" if usable else FORMS


def cut(loaded: Loaded, ends: Ends | None) -> Loaded:
    """A run that was loaded, cut to the stretch; its error where nothing of it lies there."""
    if ends is None or isinstance(loaded.run, StabtreeError):
        return loaded
    from stabtree.loaders.assemble.stretch import stretch

    try:
        return replace(loaded, run=stretch(loaded.run, *ends))
    except StabtreeError as error:
        return replace(loaded, run=error)
