"""Write each output to its target: files first, then standard output."""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.cli.output.write import write, write_pieces
from stabtree.cli.shell.printing import emit, emit_bytes, notify, screen
from stabtree.common import extensions
from stabtree.common.errors import StabtreeError
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.outputs import GITHUB, SERVICES
from stabtree.report.outputs import output as output_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stabtree.judging.outcome import Outcome

MIN_VTE_VERSION = 5000  # the first version of the library that shows links
TERMINALS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper")
"""Values of TERM_PROGRAM of terminals that show links; others set a variable of their own."""
TERMINAL_VARIABLES = ("WT_SESSION", "KITTY_WINDOW_ID", "FORCE_HYPERLINK")

SUMMARY = "GITHUB_STEP_SUMMARY"
MAX_SUMMARY_BYTES = 1 << 20  # of a step: GitHub shows nothing of a larger one


def deliver(
    kind: str, result: object, targets: Mapping[Path | None, str], look: RenderOptions = DEFAULT_OPTIONS
) -> None:
    """Write each output of a result.

    Args:
        kind: the kind of result, as `stabtree.report.outputs` names it.
        result: what was found.
        targets: the outputs, by file.
        look: how long it is to be, and what of it was asked for; the terminal says the rest.

    Raises:
        StabtreeError: where one can't be written.
    """
    for target, name in targets.items():
        if target is not None:
            write(target, output_of(kind, name)(result, look))
    if None in targets:
        text = output_of(kind, targets[None])(result, on_the_terminal(look))
        if isinstance(text, bytes):
            emit_bytes(text)
        else:
            emit(text)


def deliver_pieces(pieces: Callable[[str, RenderOptions], Iterator[str]], targets: Mapping[Path | None, str]) -> None:
    """Write outputs that come in pieces, without holding any as a whole.

    Raises:
        StabtreeError: where one can't be written.
    """
    for target, name in targets.items():
        if target is not None:
            write_pieces(target, (piece.encode("utf-8", "replace") for piece in pieces(name, DEFAULT_OPTIONS)))
    if None in targets:
        for piece in pieces(targets[None], on_the_terminal(DEFAULT_OPTIONS)):
            if piece:
                emit(piece)


def on_the_terminal(look: RenderOptions) -> RenderOptions:
    """Return the look with what standard output can show."""
    width, color = screen()
    encoding = (sys.stdout.encoding if sys.stdout is not None else None) or "utf-8"
    plain = codecs.lookup(encoding).name not in ("utf-8", "utf-16", "utf-32")
    return replace(look, width=width, color=color, ascii=plain, links=color and _shows_links())


def _shows_links() -> bool:
    """Return whether the terminal shows links, as far as its variables say."""
    version = os.environ.get("VTE_VERSION", "")
    if version.isdecimal() and int(version) >= MIN_VTE_VERSION:
        return True
    return os.environ.get("TERM_PROGRAM") in TERMINALS or any(name in os.environ for name in TERMINAL_VARIABLES)


def with_lines(outcome: Outcome, targets: Mapping[Path | None, str]) -> Outcome:
    """Return the outcome with the line of the log where each finding begins, if an output names it."""
    found = outcome.found
    if isinstance(found, StabtreeError) or set(targets.values()).isdisjoint(SERVICES):
        return outcome
    from stabtree.loaders.paths.stored import with_places

    findings = (*found.findings, *found.ignored)
    steps = {finding.onset_step for finding in findings if finding.onset_step is not None}
    return outcome._replace(found=replace(found, run=with_places(found.run, steps)))


def summarize(outcomes: Sequence[Outcome], targets: Mapping[Path | None, str], look: RenderOptions) -> None:
    """Append the report to the job's summary, where GitHub's commands are printed and it says where that is."""
    named = os.environ.get(SUMMARY)
    if targets.get(None) != GITHUB or not named:
        return
    summary = extensions.function("summary")
    data = f"{summary(outcomes, look)}\n".encode("utf-8", "replace")
    try:
        with Path(named).open("ab") as stream:
            if stream.tell() + len(data) > MAX_SUMMARY_BYTES:
                notify("note: nothing was added to the job's summary: it would be larger than GitHub shows")
                return
            stream.write(data)
    except (OSError, ValueError) as error:
        notify(f"note: nothing was added to the job's summary: {getattr(error, 'strerror', None) or error}")
