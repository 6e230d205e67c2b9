"""`stabtree anonymize`: a log without names, for sharing."""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options import OUTPUT, Only, ReadOptions, option
from stabtree.cli.output import write_pieces
from stabtree.cli.terminal import Busy, emit_bytes, notify
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words

if TYPE_CHECKING:
    from stabtree.tools.anonymize.scrub import Scrub

PathArg = Annotated[str, typer.Argument(metavar="PATH", help="A log, or the folder of a run; - reads standard input.")]
Out = Annotated[
    str | None,
    option(
        OUTPUT,
        "-o, --output FILE",
        "Write to FILE instead of standard output; a folder to a new folder. The log itself is never overwritten.",
    ),
]
Hide = Annotated[
    list[str] | None,
    typer.Option(
        "--hide",
        metavar="WORD",
        help="Replace WORD everywhere, even in column names and where it is a common word; may be given several times.",
    ),
]

EPILOG = """\b
Examples:
  stabtree anonymize run.csv > sent.csv  in the log's own format
  stabtree anonymize runs/7 -o sent      a folder, to a new folder

\b
Exit codes:
  0  written
  2  a mistake in what was typed, or a file that can't be read or written
  4  stabtree itself failed; --debug shows where
"""


MAX_COLUMNS = 30
NOTHING = "Nothing was replaced: all its words are common in logs."
ALWAYS = (
    "Numbers were kept, dates and times too, but for those of secrets and texts.",
    "No program can recognise everything that is private: read the result before you send it.",
)
KINDS = ("e-mail addresses", "URLs", "IP addresses", "paths", "ids", "secrets", "names", "words of texts")


def anonymize(
    path: PathArg,
    read: Annotated[ReadOptions, Only("format", "run_name")],
    output: Out = None,
    hide: Hide = None,
) -> None:
    """Anonymize a log for sharing.

    Numbers, column names and words that are common in logs stay. Any other word, in paths, hosts, addresses, runs and
    texts, is replaced by a stand-in, the same one throughout. The result has the same format, down to its oddities, so
    stabtree reads from it what it read from the log. What was replaced, and what was kept that you should look at, is
    listed on standard error. It is an aid, not a guarantee: read the result before you send it.
    """
    from stabtree.tools.anonymize.anonymize import anonymized
    from stabtree.tools.anonymize.scrub import Scrub

    target = None if output in (None, "-", "/dev/stdout") else Path(str(output))
    if _same(target, path):
        where = f"--output {clean(target)}" if target else "standard output"
        hint = "name another file to write to"
        raise StabtreeError("is the log itself, which is never overwritten", where=where, hint=hint)
    for word in hide or ():
        if not re.search(r"[^\W\d_]{2}", word):
            raise StabtreeError("is not a word; numbers stay", where=f"--hide {clean(word)}", hint="name letters")
    scrub = Scrub(hidden=frozenset(hide or ()))
    if Path(path).is_dir():
        notes = _folder(Path(path), target, scrub)
    else:
        done = anonymized(path, scrub, format_=read.format, run=read.run_name)
        notes = done.notes
        with Busy(wanted=target is not None).doing(f"rewriting {clean(path)}"):
            if target:
                write_pieces(target, done.pieces)
            else:
                for piece in done.pieces:
                    emit_bytes(piece)
    for line in (*notes, *_summary(scrub)):
        notify(f"note: {line}")


def _summary(scrub: Scrub) -> list[str]:
    """Return what a person should know of the result."""
    counts = [f"{kind} ({scrub.given[kind]:,})" for kind in KINDS if scrub.given[kind]]
    lines = [f"Replaced, each word by the same stand-in throughout: {in_words(counts)}." if counts else NOTHING]
    if scrub.columns:
        from stabtree.tools.anonymize.anonymize import listed

        columns = listed([clean(name, 60) for name in scrub.columns], MAX_COLUMNS)
        lines.append(f"Kept, as names of columns and keys; check that they may be shared: {columns}.")
        lines.append("To replace a word in them, use --hide WORD.")
    return [*lines, *ALWAYS]


def _folder(folder: Path, target: Path | None, scrub: Scrub) -> list[str]:
    """Write a folder without names; return notes on its files."""
    from stabtree.tools.anonymize.anonymize import anonymize_folder

    if target is None:
        raise StabtreeError("is a folder, and so is the result", where=clean(folder), hint="type -o FOLDER")
    shown = f"--output {clean(target)}"
    if target.resolve().is_relative_to(folder.resolve()):
        raise StabtreeError("is inside the folder that is read", where=shown, hint="name a folder elsewhere")
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise StabtreeError("is not empty", where=shown, hint="name a new folder")
        with Busy(wanted=True).doing(f"rewriting {clean(folder)}"):
            return anonymize_folder(folder, target, scrub)
    except OSError as error:
        problem = f"can't be written: {clean(error.strerror or error)}"
        raise StabtreeError(problem, where=shown, hint="name another place") from None


def _same(target: Path | None, path: str) -> bool:
    """Return whether the output is the input, whatever each was named, redirected or linked as."""
    with suppress(OSError, ValueError, AttributeError):  # the last where a stream is closed
        read = os.fstat(sys.stdin.fileno()) if path == "-" else Path(path).stat()
        written = target.stat() if target else os.fstat(sys.stdout.fileno())
        stored = stat.S_ISREG(read.st_mode) or stat.S_ISDIR(read.st_mode)  # a terminal is both as well
        return stored and os.path.samestat(read, written)
    return False
