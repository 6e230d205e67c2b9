"""`--steps A:B`: which stretch of a log is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.text import plain

if TYPE_CHECKING:
    from stabtree.loaders import Loaded

Ends = tuple[int | None, int | None]
OPTION = "--steps"


def stretch_of(text: str | None) -> Ends | None:
    """The first and the last step that `A:B` names, None for an end that is left open; None for no option.

    Raises:
        StabtreeError: where it is not of that form, or ends before it begins.
    """
    if text is None:
        return None
    first, colon, last = (part.strip() for part in text.partition(":"))
    if not colon or not (first or last) or not all(_whole(part) for part in (first, last) if part):
        hint = f"type {OPTION} 500:800, {OPTION} 500: or {OPTION} :800"
        raise StabtreeError(f"{text!r} is not of the form A:B", where=OPTION, hint=hint)
    ends = int(first) if first else None, int(last) if last else None
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise StabtreeError(f"{text!r} ends before it begins", where=OPTION, hint=f"type {OPTION} {last}:{first}")
    return ends


def _whole(text: str) -> bool:
    return plain(text) and text.isdigit() and len(text) < 19


def cut(loaded: Loaded, ends: Ends | None) -> Loaded:
    """A run that was loaded, cut to the stretch; its error where nothing of it lies there."""
    if ends is None or isinstance(loaded.run, StabtreeError):
        return loaded
    from stabtree.loaders.assemble.stretch import stretch

    try:
        return replace(loaded, run=stretch(loaded.run, *ends))
    except StabtreeError as error:
        return replace(loaded, run=error)
