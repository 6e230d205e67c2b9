"""`--steps A:B`: a stretch of a run is judged as if its log held nothing else, on the log's own steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.assemble.steps import MAX_STEP
from stabtree.run import Gap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.loaders.paths.joined import Loaded
    from stabtree.run import Run, Series

Ends = tuple[int | None, int | None]
OPTION = "--steps"


def stretch_of(text: str | None) -> Ends | None:
    """Return the first and the last step of `A:B`, None for an open end; None without the option.

    Raises:
        StabtreeError: if the text is not of that form, or ends before it begins.
    """
    if text is None:
        return None
    shown, ends = repr(clean(text, 40)), re.fullmatch(r"\s*(\d{0,16})\s*:\s*(\d{0,16})\s*", text, re.ASCII)
    first, last = (int(end) if end else None for end in ends.groups()) if ends else (None, None)
    if (first is None and last is None) or max(first or 0, last or 0) >= MAX_STEP:
        hint = f"type {OPTION} 500:800, {OPTION} 500: or {OPTION} :800"
        raise StabtreeError(f"{shown} is not of the form A:B", where=OPTION, hint=hint)
    if first is not None and last is not None and first > last:
        raise StabtreeError(f"{shown} ends before it begins", where=OPTION, hint=f"type {OPTION} {last}:{first}")
    return first, last


def cut(loaded: Loaded, ends: Ends | None) -> Loaded:
    """Return a loaded run cut to the range of steps; with its error if no step is in it."""
    if ends is None or isinstance(loaded.run, StabtreeError):
        return loaded
    try:
        return replace(loaded, run=stretch(loaded.run, *ends))
    except StabtreeError as error:
        return replace(loaded, run=error)


def stretch(run: Run, first: int | None = None, last: int | None = None) -> Run:
    """Return the run as if its log held the rows of these steps alone, both included; a note says so.

    Checkpoints from before it are kept: a run can go back to them. An error line that ends the log is left out where
    the stretch ends before it; no other line has a step, so those are kept.

    Raises:
        StabtreeError: where it holds no row.
    """
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(one.steps for one in run.series.values())]))
    ends = (int(rows[0]), int(rows[-1])) if len(rows) else (0, 0)
    low, high = ends[0] if first is None else first, ends[1] if last is None else last
    inside = rows[(rows >= low) & (rows <= high)]
    if not len(inside):
        asked = f"{OPTION} {'' if first is None else first}:{'' if last is None else last}"
        hint = f"the log has steps {ends[0]:,} to {ends[1]:,}" if len(rows) else "the log has no rows"
        raise StabtreeError(f"no row of {run.name} lies in it", where=asked, hint=hint)

    def cut_to(series: Mapping[str, Series]) -> dict[str, Series]:
        spans = {name: slice(*np.searchsorted(one.steps, [low, high + 1]).tolist()) for name, one in series.items()}
        return {
            name: replace(one, steps=one.steps[spans[name]], values=one.values[spans[name]])
            for name, one in series.items()
            if spans[name].stop > spans[name].start
        }

    series = cut_to(run.series)
    gaps = []
    for gap in run.gaps:  # the part within the stretch, if the metric was logged in it before
        within = inside[(inside >= gap.first_step) & (inside <= gap.last_step)]
        if gap.metric in series and len(within) and series[gap.metric].steps[0] < within[0]:
            begin, end, count = int(within[0]), int(within[-1]), min(gap.rows, len(within))
            gaps.append(Gap(gap.metric, begin, end, count, gap.at_end or gap.last_step > inside[-1]))
    config = dict(run.config)
    if "checkpoints" in config and isinstance(listed := config["checkpoints"].value, tuple):
        config["checkpoints"] = replace(config["checkpoints"], value=tuple(step for step in listed if step <= high))
    note = f"Judged: steps {low:,} to {high:,} only ({OPTION})"
    note += f"; {len(rows) - len(inside):,} of {len(rows):,} rows lie outside."
    lines = tuple(line for line in run.lines if not (line.at_end and high < ends[1]))
    if any(not line.at_end for line in lines):
        note += " The error lines of the log have no step and are read as they are."
    return replace(
        run,
        series=series,
        config=config,
        ranks={rank: cut_to(own) for rank, own in run.ranks.items()},
        written=cut_to(run.written),
        gaps=tuple(gaps),
        resumes=tuple(item for item in run.resumes if low < item.to_step <= high),
        checkpoints={step: path for step, path in run.checkpoints.items() if step <= high},
        saved={step: line for step, line in run.saved.items() if step <= high},
        epoch_ends={step: epoch for step, epoch in run.epoch_ends.items() if low <= step <= high},
        lines=lines,
        goes_on=high < ends[1],
        notes=(note, *run.notes),
    )
