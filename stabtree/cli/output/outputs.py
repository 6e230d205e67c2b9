"""`--output NAME[=FILE]`: which outputs are wanted, and where each goes."""

from __future__ import annotations

import codecs
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.shell.help import OUTPUT
from stabtree.cli.shell.printing import emit, screen, tell
from stabtree.common.errors import StabtreeError
from stabtree.render.look import LOOK, Look
from stabtree.render.outputs import COMPARISONS, GITHUB, HEADLINE, JSON, OUTPUTS, SCREEN, SERVICES, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from stabtree.comparing.result import Comparison
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

OutputOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="NAME[=FILE]",
        help=f"Print {', '.join(OUTPUTS)} (default: {SCREEN}), or write it to FILE; may be given several times.",
        rich_help_panel=OUTPUT,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help=f"Print the verdict only, in one line: --output {HEADLINE}.",
        rich_help_panel=OUTPUT,
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full", help="Print all of it: every number, the log's rows around the onset.", rich_help_panel=OUTPUT
    ),
]
NoPlots = Annotated[bool, typer.Option("--no-plots", help="Draw no figures.", rich_help_panel=OUTPUT)]
LINKING_VTE = 5000  # from this version of the library on
LINKING = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper")
"""What TERM_PROGRAM says of terminals that show links; others say so by a variable of their own."""

SUMMARY = "GITHUB_STEP_SUMMARY"
LARGEST_SUMMARY = 1 << 20  # bytes a step: GitHub shows nothing of a larger one


def wanted(
    output: list[str] | None, *, json: bool, quiet: bool, known: Collection[str] = OUTPUTS
) -> dict[Path | None, str]:
    """What goes where, by file; None stands for standard output.

    Args:
        output: what was typed.
        json: whether JSON was asked for by its short form.
        quiet: whether one line was.
        known: the outputs that there are.

    Raises:
        StabtreeError: where a name is unknown, or two outputs would go to one place.
    """
    items = [*(output or []), *([JSON] if json else []), *([HEADLINE] if quiet else [])]
    found: dict[Path | None, str] = {}
    for item in items or [SCREEN]:
        name, equals, file = item.partition("=")
        if equals and not file:
            raise StabtreeError("no file is named after =", where=f"--output {item}", hint=f"type --output {name}=FILE")
        if name not in known:
            import difflib  # only a mistake needs it

            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean --output {near[0]}?" if near else "`--help` lists the outputs"
            raise StabtreeError(f"{name!r} is not an output", where="--output", hint=hint)
        place = None if file in ("", "-", "/dev/stdout") else _resolved(file)
        if place in found:
            stream, other = ("standard output", "FILE") if place is None else (file, "another FILE")
            hint = f"give one of them a place of its own: --output {name}={other}"
            raise StabtreeError(f"{found[place]} and {name} can't both go to {stream}", where="--output", hint=hint)
        found[place] = name
    return found


def _resolved(file: str) -> Path:
    try:
        return Path(file).resolve()
    except (OSError, RuntimeError, ValueError):  # links in a loop, a name with a NUL
        raise StabtreeError("it can't be written to", where=f"--output {file}", hint="name another file") from None


def spare(places: Iterable[Path | None], run: Run, *rules: str | None) -> None:
    """Refuse to write over what is diagnosed, or over the trees and settings that it is diagnosed by.

    Raises:
        StabtreeError: where a file to write is one that the run was read from.
    """
    runs = [run, *([run.rerun] if run.rerun else [])]
    logs = {Path(source.path).resolve() for one in runs for source in one.sources}
    settings = {setting.source for one in runs for setting in one.config.values()}
    spare_rules(places, *rules)
    read = logs | {log.parent / name for log in logs for name in settings}  # a manifest stands beside its log
    for place in places:
        if place in read:
            raise StabtreeError(
                "is a file of the run itself", where=f"--output {place}", hint="name another file to write to"
            )


def spare_rules(places: Iterable[Path | None], *rules: str | None) -> None:
    """Refuse to write over what runs are judged by.

    Raises:
        StabtreeError: where a file to write is a tree, the settings or a baseline.
    """
    used = {Path(rule).resolve() for rule in rules if rule}
    for place in places:
        if place and (place in used or place.parent in used):
            problem = "is in use: a tree, the settings, or a baseline"
            raise StabtreeError(problem, where=f"--output {place}", hint="name another file to write to")


def spare_unread(places: Iterable[Path | None], name: str) -> None:
    """Refuse to write over a log that can't be read: it may be all that is left of a run.

    Raises:
        StabtreeError: where a file to write is that log.
    """
    try:
        log = Path(name).resolve()
    except (OSError, RuntimeError, ValueError):
        return  # what no path leads to is written over by none
    for place in places:
        if place == log:
            hint = "name another file to write to"
            raise StabtreeError("is a file of the run itself", where=f"--output {place}", hint=hint)


def deliver(diagnosis: Diagnosis, places: Mapping[Path | None, str], look: Look = LOOK) -> None:
    """Write each output to its place, files first.

    Args:
        diagnosis: what was found.
        places: the outputs, by place.
        look: how long it is to be, and what of it was asked for; the terminal says the rest.

    Raises:
        StabtreeError: where one can't be written.
    """
    emit_all(lambda name, look: OUTPUTS[name](diagnosis, look), places, look)


def deliver_all(outcomes: Sequence[Outcome], places: Mapping[Path | None, str], look: Look = LOOK) -> None:
    """Write each output of several runs to its place, files first.

    Raises:
        StabtreeError: where one can't be written, or is of one run alone.
    """
    known = tables()
    for name in places.values():
        if name not in known:
            raise StabtreeError(
                f"{name} is of one run, these are {len(outcomes)}", where="--output", hint="name one run"
            )
    emit_all(lambda name, look: known[name](outcomes, look), places, look)


def deliver_comparison(comparison: Comparison, places: Mapping[Path | None, str], look: Look = LOOK) -> None:
    """Write each output of a comparison to its place, files first.

    Raises:
        StabtreeError: where one can't be written.
    """
    emit_all(lambda name, look: COMPARISONS[name](comparison, look), places, look)


def emit_all(text: Callable[[str, Look], str], places: Mapping[Path | None, str], look: Look = LOOK) -> None:
    """Write what a text is made of, by the name of an output, to each place, files first.

    Raises:
        StabtreeError: where one can't be written.
    """
    for place, name in places.items():
        if place is not None:
            write(place, text(name, look))
    if None in places:
        emit(text(places[None], on_the_terminal(look)))


def on_the_terminal(look: Look) -> Look:
    """The look with what standard output can show."""
    width, color = screen()
    encoding = (sys.stdout.encoding or "utf-8") if sys.stdout is not None else "utf-8"
    plain = codecs.lookup(encoding).name not in ("utf-8", "utf-16", "utf-32")
    return replace(look, width=width, color=color, ascii=plain, links=color and _links())


def _links() -> bool:
    """Whether the terminal shows links, as far as its variables tell."""
    version = os.environ.get("VTE_VERSION", "")
    known = os.environ.get("TERM_PROGRAM") in LINKING or (version.isdecimal() and int(version) >= LINKING_VTE)
    return known or any(name in os.environ for name in ("WT_SESSION", "KITTY_WINDOW_ID", "FORCE_HYPERLINK"))


def deliver_pieces(
    pieces: Callable[[str, Look], Iterator[str]], places: Mapping[Path | None, str], look: Look = LOOK
) -> None:
    """Write outputs that come in pieces, files first, without holding any as a whole.

    Raises:
        StabtreeError: where one can't be written.
    """
    for place, name in places.items():
        if place is not None:
            write_pieces(place, (piece.encode("utf-8", "replace") for piece in pieces(name, look)))
    if None in places:
        for piece in pieces(places[None], on_the_terminal(look)):
            if piece:
                emit(piece)


def write(path: Path, text: str | bytes, option: str = "--output") -> None:
    """Write a whole file or leave the old one: into a new file beside it, which then takes its place.

    Raises:
        StabtreeError: where that fails.
    """
    if isinstance(text, str):
        text = (text if text.endswith("\n") else f"{text}\n").encode("utf-8", "replace")
    write_pieces(path, [text], option)


def write_pieces(path: Path, pieces: Iterable[bytes], option: str = "--output") -> None:
    """Write a whole file or leave the old one, of a text that comes in pieces.

    Raises:
        StabtreeError: where that fails.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe or a device such as /dev/null: nothing to put in its place
            _write_all(path, pieces)
            return
        if path.exists():
            path.open("ab").close()  # taking its place asks for no right to write to it
        beside = path.with_name(f".stabtree-{os.getpid()}.part")
        try:
            _write_all(beside, pieces)
            if path.exists():
                beside.chmod(path.stat().st_mode)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StabtreeError(
            f"it can't be written: {error.strerror}", where=f"{option} {path}", hint="name a file in a folder of yours"
        ) from None


def _write_all(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as stream:
        stream.writelines(pieces)


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
