"""`stabtree anonymize`: a log without names, to send to someone."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options import Format  # noqa: TC001 - typer reads the hint
from stabtree.cli.shell.help import OUTPUT
from stabtree.cli.shell.printing import tell
from stabtree.cli.shell.progress import Busy
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

PathArg = Annotated[
    str,
    typer.Argument(metavar="PATH", help="A log; - reads standard input."),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to FILE instead of standard output; never over the log itself.",
        rich_help_panel=OUTPUT,
    ),
]


def anonymize(path: PathArg, output: Out = None, format: Format = None) -> None:  # noqa: A002 - the option's name
    """Take names out of a log, so that it can be sent to someone.

    Numbers and the names of columns stay, and the words that are common in logs; any other word, in paths, hosts,
    addresses, runs and texts, gets a stand-in, the same one throughout. The result is of the same format, down to
    its oddities, so that stabtree reads of it what it read of the log. What was replaced, and what was kept that you
    should look at, is told on standard error. It is an aid and no guarantee: read the result before you send it.
    """
    from stabtree.anonymize.anonymize import anonymized
    from stabtree.anonymize.pack import packed
    from stabtree.anonymize.told import told

    place = None if output in (None, "-", "/dev/stdout") else Path(str(output))
    if place and _same(place, path):
        hint = "name another file to write to"
        raise StabtreeError("is the log itself, which stays as it is", where=f"--output {clean(place)}", hint=hint)
    found = anonymized(path, format_=format)
    if found.source.packed and place is None and sys.stdout is not None and sys.stdout.isatty():
        raise StabtreeError("is compressed, and so is the result", where=found.source.path, hint="type -o FILE")
    with Busy(wanted=place is not None).doing(f"rewriting {clean(path)}"):
        _write(packed(found.bytes(), found.source.packed), place)
    for line in told(found.scrub, found.notes):
        tell(f"note: {line}")


def _same(place: Path, path: str) -> bool:
    with suppress(OSError, ValueError):
        return place.exists() and Path(path).exists() and place.samefile(path)
    return False


def _write(pieces: Iterable[bytes], place: Path | None) -> None:
    """Write to a file or to standard output.

    Raises:
        StabtreeError: where that can't be done.
    """
    shown = f"--output {clean(place)}" if place else "standard output"
    try:
        if place:
            with place.open("wb") as stream:
                stream.writelines(pieces)
        elif sys.stdout is None:
            raise StabtreeError("is closed", where=shown, hint="type -o FILE")
        elif stored := getattr(sys.stdout, "buffer", None):
            stored.writelines(pieces)
            stored.flush()
        else:  # a stream of text alone, such as io.StringIO
            sys.stdout.write(b"".join(pieces).decode("utf-8", "replace"))
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise StabtreeError(f"can't be written: {clean(reason)}", where=shown, hint="name another file") from None
