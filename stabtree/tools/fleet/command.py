"""What `stabtree diagnose` does of several runs: all of them judged in parallel, the worst told first."""

from __future__ import annotations

import gc
import sys
import time
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from msgspec.structs import replace

from stabtree.cli.options import tell_of_links
from stabtree.cli.output import deliver, protect_log, summarize
from stabtree.cli.terminal import emit, notify
from stabtree.common import extensions
from stabtree.common.errors import FOUND, OUR_FAULT, StabtreeError
from stabtree.report.outputs import DEFAULT_OPTIONS, JSON, JSONL, RUNS, SERVICES, RenderOptions, output
from stabtree.report.page import counted
from stabtree.tools.fleet.scan import scan

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from stabtree.cli.options import EffectiveSettings
    from stabtree.tools.fleet.record import Record

EVERY_SECONDS = 15  # a line on how far it is, where it goes to no terminal


def judge_many(
    paths: Sequence[str], effective: EffectiveSettings, targets: dict[Path | None, str], look: RenderOptions, **how: Any
) -> None:
    """Judge all runs below paths, and write what was asked for.

    Args:
        paths: what was named.
        effective: the settings.
        targets: the outputs, by file.
        look: how they look.
        how: what is judged, and how: as `scan` takes it.

    Raises:
        StabtreeError: where there is no run, or an output can't be written.
        Exit: with the code that all runs add up to, where that is not 0.
    """
    if look.worst is not None and look.worst < 1:
        raise StabtreeError(f"{look.worst} is too few", where="--worst", hint="type a number from 1 up")
    gc.enable()  # this takes long, unlike other commands
    names = {*targets.values()}
    existing = {target for target in targets if target and target.exists()}
    services = None
    if not names.isdisjoint(SERVICES):
        services = partial(extensions.function("tell"), look=look)
    with _progress(lines=targets.get(None) == JSONL) as tell:
        fleet = scan(*paths, documents=not names.isdisjoint((JSON, JSONL)), services=services, tell=tell, **how)
    tell_of_links(fleet.outside)
    for run in fleet:
        for path in run.files if existing else ():
            protect_log(existing, path)
        for text in run.outdated:  # a table has no room for it
            notify(f"note: {run.name}: {text}")
    if not len(fleet) and not fleet.stopped:
        hint = "name a folder with runs below it; `stabtree info formats` lists what is read"
        raise StabtreeError("no log found", where=" ".join(paths), hint=hint)
    code = effective.exit_code(fleet)
    if any(run.fault for run in fleet) and code != FOUND:
        code = OUR_FAULT
    look = replace(look, exit_code=code)
    if targets.get(None) == JSONL:
        del targets[None]  # written already
    if len(fleet):
        deliver(RUNS, fleet.records, targets, look)
        summarize(fleet.records, targets, look)
    if fleet.stopped:
        notify("note: this was interrupted: runs are missing")
        raise KeyboardInterrupt
    if code:
        raise typer.Exit(code)


@contextmanager
def _progress(*, lines: bool) -> Iterator[Callable[[Sequence[Record], Counter[str], int], None]]:
    """Yield what shows how far it is: a line that moves on a terminal, elsewhere another every so often.

    Args:
        lines: whether to print each run as a line of JSON when it is judged.
    """
    from rich.console import Console

    begin = told = time.monotonic()
    moves = sys.stderr is not None and sys.stderr.isatty()
    with Console(stderr=True).status("", spinner="line") if moves else nullcontext() as status:

        def progress(records: Sequence[Record], found: Counter[str], waiting: int) -> None:
            nonlocal told
            if lines and records:
                emit("".join(output(RUNS, JSONL)(records, DEFAULT_OPTIONS)))
            counts = ", ".join(f"{count:,} {badge}" for badge, count in found.most_common())
            now = time.monotonic()
            line = f"{counted(found.total(), 'run')} in {now - begin:,.0f} s, {waiting:,} folders to go: {counts}"
            if status is not None:
                status.update(line)
            elif now - told >= EVERY_SECONDS:
                told = now
                notify(line)

        yield progress
