"""What `diagnose` does for outputs that a service reads: the lines of findings, and the summary of a job."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.cli.printing import tell
from stabtree.common.errors import StabtreeError
from stabtree.render.outputs import GITHUB, SERVICES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.judging.outcome import Outcome
    from stabtree.render.look import Look

SUMMARY = "GITHUB_STEP_SUMMARY"
LARGEST_SUMMARY = 1 << 20  # bytes a step: GitHub shows nothing of a larger one


def located(outcome: Outcome, places: Mapping[Path | None, str]) -> Outcome:
    """The outcome with the lines in which its findings begin, where an output names them."""
    found = outcome.found
    if isinstance(found, StabtreeError) or not set(places.values()) & set(SERVICES):
        return outcome
    from stabtree.loaders.paths.places import with_places

    told = (*found.findings, *found.ignored)
    steps = {finding.onset_step for finding in told if finding.onset_step is not None}
    return outcome._replace(found=replace(found, run=with_places(found.run, steps)))


def summarize(outcomes: Sequence[Outcome], places: Mapping[Path | None, str], look: Look) -> None:
    """Append the report to the job's summary, where GitHub's commands are printed and it says where that is."""
    named = os.environ.get(SUMMARY)
    if places.get(None) != GITHUB or not named:
        return
    from stabtree.render.ci.github import summary

    data = f"{summary(outcomes, look)}\n".encode("utf-8", "replace")
    try:
        with Path(named).open("ab") as stream:
            if stream.tell() + len(data) > LARGEST_SUMMARY:
                tell("note: the job's summary would be larger than GitHub shows; nothing was added to it")
                return
            stream.write(data)
    except (OSError, ValueError) as error:
        tell(f"note: nothing was added to the job's summary: {getattr(error, 'strerror', None) or error}")
