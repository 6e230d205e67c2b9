"""Where results go: which outputs are wanted, and files written as a whole or not at all, before standard output."""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.cli.terminal import emit, emit_bytes, notify, screen
from stabtree.common import extensions
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, hidden, near
from stabtree.report.outputs import (
    DEFAULT_OPTIONS,
    GITHUB,
    HEADLINE,
    HTML,
    JSON,
    JUNIT,
    MARKDOWN,
    RUN,
    SCREEN,
    RenderOptions,
    names,
)
from stabtree.report.outputs import output as output_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from stabtree.cli.options import OutputOptions
    from stabtree.run import Run

    Targets = dict[Path | None, str]
    """Outputs by the file that each goes to; None is standard output."""

SUMMARY = "GITHUB_STEP_SUMMARY"
ENDINGS = {"md": MARKDOWN, "xml": JUNIT, "txt": SCREEN, "htm": HTML}
"""Outputs by the ending of a file, where that is not their name."""
MAX_SUMMARY_BYTES = 1 << 20  # of a step: GitHub shows nothing of a larger one


def wanted(out: OutputOptions, kind: str = RUN) -> Targets:
    """Return what goes where.

    Args:
        out: what was typed.
        kind: the kind of result, which has its own outputs.

    Raises:
        StabtreeError: where a name is unknown, a FILE can't be written to, or two outputs go to one place.
    """
    found: Targets = {}
    for item in [*out.output, *[JSON] * out.json, *[HEADLINE] * out.quiet] or [SCREEN]:
        name, target = parsed(item, names(kind))
        if target in found:
            hint = f"send one of them elsewhere: --output {name}={'another ' * bool(target)}FILE"
            stream = clean(target.name) if target else "standard output"
            raise StabtreeError(f"{found[target]} and {name} can't both go to {stream}", where="--output", hint=hint)
        found[target] = name
    return found


def parsed(item: str, known: Collection[str]) -> tuple[str, Path | None]:
    """Return the name and the file of `NAME[=FILE]`, or of a FILE whose ending says which; None for standard output.

    Raises:
        StabtreeError: where the name is unknown, or the file can't be written to.
    """
    name, equals, file = item.partition("=")
    ending = item.rpartition(".")[2].lower()
    if not name.isidentifier() and ENDINGS.get(ending, ending) in known:
        name, file = ENDINGS.get(ending, ending), item
    if equals and not file:
        raise StabtreeError("no file is named after =", where=f"--output {item}", hint=f"type --output {name}=FILE")
    if name not in known:
        problem = f"{name!r} is not an output{near(name, known)}"
        raise StabtreeError(problem, where="--output", hint="`--help` lists the outputs")
    if file in ("", "-", "/dev/stdout"):
        return name, None
    try:
        return name, Path(file).resolve()
    except (OSError, RuntimeError, ValueError):  # links in a loop, a name with a NUL
        raise StabtreeError("it can't be written to", where=f"--output {file}", hint="name another file") from None


def protect_run(targets: Iterable[Path | None], run: Run, *rules: str | None) -> None:
    """Refuse to overwrite what is diagnosed, or the trees and settings it is diagnosed by.

    Raises:
        StabtreeError: where a file to write is one of them.
    """
    protect_rules(targets, *rules)
    read: set[Path] = set()
    for one in (run, run.rerun) if run.rerun else (run,):
        read |= {Path(source.path).resolve() for source in one.sources}
        for name in {setting.source for setting in one.config.values()}:
            read |= {log.parent / name for log in list(read)}  # a manifest is beside its log
    _refuse(targets, read)


def protect_log(targets: Iterable[Path | None], name: str) -> None:
    """Refuse to overwrite a log that can't be read: it may be all that is left of a run.

    Raises:
        StabtreeError: where a file to write is that log.
    """
    with suppress(OSError, RuntimeError, ValueError):  # no path leads to it, so none overwrites it
        _refuse(targets, {Path(name).resolve()})


def protect_rules(targets: Iterable[Path | None], *rules: str | None) -> None:
    """Refuse to overwrite what runs are judged by.

    Raises:
        StabtreeError: where a file to write is a tree, the settings or a baseline.
    """
    used = {Path(rule).resolve() for rule in rules if rule}
    inside = {target for target in targets if target and target.parent in used}
    _refuse(targets, used | inside, "is in use: a tree, the settings, or a baseline")


def _refuse(targets: Iterable[Path | None], read: Collection[Path], why: str = "is a file of the run itself") -> None:
    for target in targets:
        if target in read:
            raise StabtreeError(why, where=f"--output {target}", hint="name another file to write to")


def write(path: Path, text: str | bytes) -> None:
    """Write a whole file or leave the old one: into a new file beside it, which then replaces it.

    Raises:
        StabtreeError: where that fails.
    """
    if isinstance(text, str):
        text = hidden(text if text.endswith("\n") else f"{text}\n").encode("utf-8", "replace")
    write_pieces(path, [text])


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a whole file or leave the old one, of a text that comes in pieces.

    Raises:
        StabtreeError: where that fails.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe, or a device such as /dev/null, can't be replaced
            with path.open("wb") as stream:
                stream.writelines(pieces)
            return
        if path.exists():
            path.open("ab").close()  # a file can be replaced without the right to write to it
        beside = path.with_name(f".stabtree-{os.getpid()}.part")
        try:
            with beside.open("wb") as stream:
                stream.writelines(pieces)
            if path.exists():
                beside.chmod(path.stat().st_mode)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StabtreeError(
            f"it can't be written: {error.strerror}",
            where=f"--output {path}",
            hint="name a file in a folder that you can write to",
        ) from None


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
            found = output_of(kind, name)(result, look)
            if isinstance(found, str | bytes):
                write(target, found)
            else:  # of many runs it is never held as a whole
                write_pieces(target, (hidden(piece).encode("utf-8", "replace") for piece in found))
    if None in targets:
        found = output_of(kind, targets[None])(result, on_the_terminal(look))
        if isinstance(found, bytes):
            emit_bytes(found)
        else:
            for piece in [found] if isinstance(found, str) else found:
                emit(piece)


def on_the_terminal(look: RenderOptions) -> RenderOptions:
    """Return the look with what standard output can show."""
    width, color = screen()
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    plain = codecs.lookup(encoding).name not in ("utf-8", "utf-16", "utf-32")
    return replace(look, width=width, color=color, ascii=plain)


def summarize(runs: Sequence[Any], targets: Mapping[Path | None, str], look: RenderOptions) -> None:
    """Append the report to the job's summary, where GitHub's commands are printed and it says where that is."""
    named = os.environ.get(SUMMARY)
    if targets.get(None) != GITHUB or not named:
        return
    summary = extensions.function("summary")
    data = hidden(f"{summary(runs, look)}\n").encode("utf-8", "replace")
    try:
        with Path(named).open("ab") as stream:
            if stream.tell() + len(data) > MAX_SUMMARY_BYTES:
                notify("note: nothing was added to the job's summary: it would be larger than GitHub shows")
                return
            stream.write(data)
    except (OSError, ValueError) as error:
        notify(f"note: nothing was added to the job's summary: {getattr(error, 'strerror', None) or error}")
