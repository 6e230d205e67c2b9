"""The options of `stabtree watch` alone."""

from __future__ import annotations

from typing import Annotated

from stabtree.cli.program.expand import option
from stabtree.cli.program.help import INPUT, JUDGING, OUTPUT
from stabtree.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """How a log is followed, and when that ends, as typed."""

    every: Annotated[float, option(INPUT, "--every SECONDS", "Time between two looks.")] = 1.0
    until_found: Annotated[
        bool, option(JUDGING, "--until-found", "Exit 1 at the first finding at or above --fail-on.")
    ] = False
    stall: Annotated[
        str | None,
        option(
            JUDGING, "--stall TIME", "Exit 1 if nothing is written for TIME (90s, 30m, 2h) and the run is not complete."
        ),
    ] = None
    exec: Annotated[
        str | None,
        option(
            OUTPUT, "--exec CMD", "Run CMD, without a shell, for each change, which it gets as JSON on standard input."
        ),
    ] = None
    webhook: Annotated[str | None, option(OUTPUT, "--webhook URL", "Post each change as JSON to URL.")] = None
    page: Annotated[
        str | None, option(OUTPUT, "--page FILE", "Write the report to FILE, a page that refreshes itself.")
    ] = None
    serve: Annotated[
        int | None,
        option(OUTPUT, "--serve PORT", "Serve that page on 127.0.0.1 under a secret path; 0 takes any free port."),
    ] = None
    keep_checkpoint: Annotated[
        bool,
        option(OUTPUT, "--keep-checkpoint", "Link the last clean checkpoint as kept-NAME when a finding names it."),
    ] = False
