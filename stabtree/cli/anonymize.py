"""`stabtree anonymize`: a log without names, to send to someone."""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options import Format, RunName  # noqa: TC001 - typer reads the hint
from stabtree.cli.output.outputs import write_pieces
from stabtree.cli.shell.help import OUTPUT
from stabtree.cli.shell.printing import emit_bytes, tell
from stabtree.cli.shell.progress import Busy
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

PathArg = Annotated[
    str,
    typer.Argument(metavar="PATH", help="A log, or the folder of a run; - reads standard input."),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to FILE instead of standard output, of a folder to a new folder; never over the log itself.",
        rich_help_panel=OUTPUT,
    ),
]
Hide = Annotated[
    list[str] | None,
    typer.Option(
        "--hide",
        metavar="WORD",
        help="Replace WORD wherever it stands, in the names of columns too, also where it is a common one; repeatable.",
    ),
]


def anonymize(
    path: PathArg,
    output: Out = None,
    hide: Hide = None,
    format: Format = None,  # noqa: A002 - the option's name
    run_name: RunName = None,
) -> None:
    """Take names out of a log, so that it can be sent to someone.

    Numbers and the names of columns stay, and the words that are common in logs; any other word, in paths, hosts,
    addresses, runs and texts, gets a stand-in, the same one throughout. The result is of the same format, down to
    its oddities, so that stabtree reads of it what it read of the log. What was replaced, and what was kept that you
    should look at, is told on standard error. It is an aid and no guarantee: read the result before you send it.
    """
    place = None if output in (None, "-", "/dev/stdout") else Path(str(output))
    if _same(place, path):
        hint = "name another file to write to"
        raise StabtreeError("is the log itself, which stays as it is", where=_shown(place), hint=hint)
    words = frozenset(hide or ())
    if strange := [word for word in words if not re.search(r"[^\W\d_]{2}", word)]:
        raise StabtreeError("is no word: numbers stay", where=f"--hide {clean(strange[0])}", hint="name letters")
    lines = _folder(Path(path), place, words) if Path(path).is_dir() else _file(path, place, words, format, run_name)
    for line in lines:
        tell(f"note: {line}")


def _file(
    path: str, place: Path | None, words: frozenset[str], format_: str | None, run_name: str | None
) -> Iterator[str]:
    """Write a file without names; what there is to say of it."""
    from stabtree.anonymize.anonymize import anonymized
    from stabtree.anonymize.scrub import Scrub
    from stabtree.anonymize.told import told

    found = anonymized(path, Scrub(hidden=words), format_=format_, run=run_name)
    if found.packing and place is None and sys.stdout is not None and sys.stdout.isatty():
        raise StabtreeError("is compressed, and so is the result", where=clean(path), hint="type -o FILE")
    with Busy(wanted=place is not None).doing(f"rewriting {clean(path)}"):
        if place:
            write_pieces(place, found.pieces)
        else:
            for piece in found.pieces:
                emit_bytes(piece)
    return told(found.scrub, found.notes)


def _folder(folder: Path, place: Path | None, words: frozenset[str]) -> Iterator[str]:
    """Write a folder without names; what there is to say of it."""
    from stabtree.anonymize.folder import Rewriting
    from stabtree.anonymize.scrub import Scrub
    from stabtree.anonymize.told import told, told_of_folder

    if place is None:
        raise StabtreeError("is a folder, and so is the result", where=clean(folder), hint="type -o FOLDER")
    shown = f"--output {clean(place)}"
    if place.resolve().is_relative_to(folder.resolve()):
        raise StabtreeError("lies in the folder that is read", where=shown, hint="name a folder elsewhere")
    work = Rewriting(folder, place, Scrub(hidden=words))
    try:
        place.mkdir(parents=True, exist_ok=True)
        if any(place.iterdir()):
            raise StabtreeError("holds files already", where=shown, hint="name a new folder")
        with Busy(wanted=True).doing(f"rewriting {clean(folder)}"):
            work.run()
    except OSError as error:
        raise StabtreeError(
            f"can't be written: {clean(error.strerror or error)}", where=shown, hint="name another place"
        ) from None
    return chain(told_of_folder(work.written, work.left, work.notes), told(work.scrub, []))


def _same(place: Path | None, path: str) -> bool:
    """Whether what is written to is what is read, whatever each was named, redirected or linked as."""
    with suppress(OSError, ValueError, AttributeError):  # the last where a stream is closed
        read = os.fstat(sys.stdin.fileno()) if path == "-" else Path(path).stat()
        written = place.stat() if place else os.fstat(sys.stdout.fileno())
        stored = stat.S_ISREG(read.st_mode) or stat.S_ISDIR(read.st_mode)  # a terminal is both as well
        return stored and os.path.samestat(read, written)
    return False


def _shown(place: Path | None) -> str:
    return f"--output {clean(place)}" if place else "standard output"
