"""A log, or the folder of a run, without names, in the same format: what stabtree reads by stays to the last blank."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders import load_run
from stabtree.loaders.folder import MAX_DEPTH, entries
from stabtree.loaders.formats import choose
from stabtree.loaders.json.lines import is_wrapped
from stabtree.loaders.source import chunks, open_source
from stabtree.loaders.tables.delimited import find_layout, head_of
from stabtree.metrics.names import Names
from stabtree.report.page import counted
from stabtree.tools.anonymize.scrub import SECRET_KEY, Scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.tables.delimited import Layout
    from stabtree.run import Run

TEXTS = ("csv", "json", "jsonl", "manifest", "trainer_state", "text")
_LINE = re.compile(r"[^\r\n]++")
_RECORD = re.compile(r"([^\r\n]*+)(\r\n|\r|\n|$)")
# Numbers and their separators: most rows of most tables.
_NUMBERS = re.compile(r"[\d\s.,;|+\-eE\"]*+")
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*+(?:"(?P<key>\s*+:)?)?|[^\W\d_][^\s"\',:;\[\]{}()]*+')
MAX_HELD = 4 << 20  # a longer line is cut at a blank or a comma, so that memory stays small
_BREAKS = ("\r", ", ", ",", " ", "\t", ";")


class Rewritten(NamedTuple):
    """A file without its names.

    Attributes:
        pieces: its bytes, in order, made while they are consumed.
        notes: notes for a person, complete once all pieces are consumed.
        suffix: what to append to the file's name: empty unless the file holds no text.
    """

    pieces: Iterator[bytes]
    notes: list[str]
    suffix: str = ""


def anonymized(
    path: str | Path, scrub: Scrub | None = None, *, format_: str | None = None, run: str | None = None
) -> Rewritten:
    """Take the names out of a file; nothing is written yet.

    Args:
        path: the file; `-` for standard input.
        scrub: what was replaced in other files of the run, so that the same names get the same stand-ins.
        format_: the name of a loader, if the user gave one.
        run: the run, if a file without text holds several.

    Raises:
        StabtreeError: if the file can't be read.
    """
    scrub, source = scrub or Scrub(), open_source(path)
    name = format_ or _format(source)
    if name in TEXTS:
        notes: list[str] = []
        return Rewritten(_bytes(source, name, notes, scrub), notes)
    if source.file is None:
        raise StabtreeError(f"is of the format {name}, which is read from a file", hint="name the file")
    note = f"It holds no text to rewrite ({name}): the series that stabtree reads from it were written as JSON lines."
    return Rewritten(_series_lines(load_run(str(path), format=name, run=run), scrub), [note], ".jsonl")


def _series_lines(run: Run, scrub: Scrub) -> Iterator[bytes]:
    """Yield what was read of a run as JSON lines: its settings, then a row for each step."""
    settings = {key: setting.value for key, setting in run.config.items()}
    settings |= {key: scrub.value(value, key) for key, value in settings.items() if isinstance(value, str)}
    if settings:
        yield json.dumps({"config": settings}).encode() + b"\n"
    rows: dict[int, dict[str, Any]] = {}
    for metric, series in run.series.items():
        name = scrub.column(metric)
        for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True):
            label = series.labels.get(value)
            rows.setdefault(step, {"step": step})[name] = value if label is None else scrub.value(label)
    for _, row in sorted(rows.items()):
        yield json.dumps(row).encode() + b"\n"


def _format(source: Source) -> str:
    """Return the format to rewrite a source as: that of its loader if it is in `TEXTS`, else json or text.

    Raises:
        StabtreeError: if it is binary and no loader reads it.
    """
    try:
        name = choose(source, Names()).name
    except StabtreeError:
        if source.binary or source.cut:
            raise
        return "text"
    if name in TEXTS or source.binary or "\0" in source.head[:4096]:
        return name
    return "json" if source.head.lstrip().startswith(("{", "[")) else "text"  # a file of a tracker's folder


def _bytes(source: Source, format_: str, notes: list[str], scrub: Scrub) -> Iterator[bytes]:
    """Yield the rewritten bytes, in pieces that end with a line if lines are shorter than 4 MiB."""
    yield source.data[: source.bom]
    # Bytes that are not UTF-8 are kept; half a letter of UTF-16 can't be.
    errors = {"utf-8": "surrogateescape"}.get(source.encoding, "replace")
    decoder = codecs.getincrementaldecoder(source.encoding)(errors)
    layout = find_layout(head_of(source)) if format_ == "csv" else None
    printed = is_wrapped(source.head)
    rewrite: Callable[[str], str] = JsonRewrite(scrub, printed)
    if layout and layout.header_line:
        rewrite = DelimitedRewrite(scrub, layout)
    elif format_ in ("csv", "text") and not printed:
        rewrite = lambda text: _LINE.sub(lambda line: scrub.line(line[0]), text)  # noqa: E731
    drop, held = source.bom, ""
    for chunk in chunks(source, notes):
        piece = chunk[drop:]
        drop -= len(chunk) - len(piece)
        held += decoder.decode(piece, final=not chunk)
        cut = held.rfind("\n") + 1 if chunk else len(held)
        if not cut and len(held) >= MAX_HELD:
            cut = next(filter(None, (held.rfind(mark) + 1 for mark in _BREAKS)), len(held))
        if cut:
            yield rewrite(held[:cut]).encode(source.encoding, errors)
            held = held[cut:]


class DelimitedRewrite(Struct):
    """A rewrite of delimited text, piece by piece: the names in its header stay, its cells are values."""

    scrub: Scrub
    layout: Layout
    _line: int = 0

    def __call__(self, text: str) -> str:
        """Rewrite the next piece of the file."""
        return _RECORD.sub(self._record, text)

    def _record(self, found: re.Match[str]) -> str:
        line, end = found.groups()
        mark, names, header = self.layout.delimiter, self.layout.names, self.layout.header_line
        self._line += bool(end or line)
        if self._line != header and _NUMBERS.fullmatch(line):
            return found[0]
        # Another header is one of which half of the cells, and two, are column names: a second writer appended.
        cells = line.split(mark)
        named = sum(cell.strip(" \t'\"\0") in names for cell in cells)
        if self._line == header or named >= max(len(cells) / 2, min(len(names), 2)):
            return mark.join(map(self.scrub.column, cells)) + end
        if self._line < header or line.startswith("#"):
            return self.scrub.line(line) + end
        cell = rf'"(?:[^"]|"")*+"?|[^{re.escape(mark)}"]++'
        return (
            re.sub(cell, lambda cell: cell[0] if _NUMBERS.fullmatch(cell[0]) else self.scrub.value(cell[0]), line) + end
        )


class JsonRewrite(Struct):
    """A rewrite of JSON of any shape, whole or broken, piece by piece: keys are names of columns, texts are values.

    Attributes:
        scrub: takes the names out.
        printed: whether the texts are lines of a text log, as in container logs.
    """

    scrub: Scrub
    printed: bool
    _key: str = ""
    _option: str = ""

    def __call__(self, text: str) -> str:
        """Rewrite the next piece of the file."""
        return _STRING.sub(self._string, text)

    def _string(self, found: re.Match[str]) -> str:
        raw, end = found[0], found["key"] or ""
        if raw[0] != '"' or len(raw) == 1 or not (end or raw[-1] == '"'):
            return self.scrub.text(raw)
        raw = raw[1 : -len(end) - 1]
        change: Callable[[str], str] = self._value
        if end:
            self._key, change = raw, self.scrub.column
        if "\\" not in raw:
            return f'"{change(raw)}"{end}'
        try:
            text = json.loads(f'"{raw}"', strict=False)
        except ValueError:
            return '"' + self.scrub.text(raw.replace("\\", "\\ ")).replace("\\ ", "\\") + f'"{end}'
        changed = change(text)
        if changed == text:
            return found[0]
        return json.dumps(changed, ensure_ascii="\\u" in raw) + end

    def _value(self, text: str) -> str:
        if self.printed:
            return _LINE.sub(lambda line: self.scrub.line(line[0]), text)
        # In a list of arguments the value follows its option as a text of its own.
        key, self._option = self._option or self._key, text if text[:1] == "-" and SECRET_KEY.fullmatch(text) else ""
        return self.scrub.value(text, key)


# ---- the folder of a run

MAX_FILES = 2000  # enough for one file per rank of a large run; a data set holds more
MAX_LISTED = 8
# Text files by name: settings and what programs print.
_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".txt", ".log", ".out", ".err")
_VALUES = ("metrics", "params", "tags")  # MLflow keeps each value in a file of its own, in folders of these names


def anonymize_folder(folder: Path, out: Path, scrub: Scrub) -> list[str]:
    """Write all logs and settings of a folder to another one, without names; return notes for a person.

    Raises:
        StabtreeError: if the folder holds more files than a run has.
        OSError: if a file can't be written.
    """
    files: list[Path] = []
    folders = [folder]
    for place in folders:
        inner, names = entries(place)
        files += (place / name for name in names)
        if len(place.relative_to(folder).parts) < MAX_DEPTH:
            folders += (place / name for name in inner)
    if len(files) > MAX_FILES:
        problem = f"holds more than {MAX_FILES:,} files"
        raise StabtreeError(problem, where=clean(folder), hint="name the folder of one run")
    written: list[str] = []
    left: list[str] = []
    notes: list[str] = []
    for file in files:
        shown = clean(file.relative_to(folder))
        if not _is_wanted(file):
            left.append(shown)
            continue
        try:
            done = anonymized(file, scrub)
            target = out.joinpath(*map(scrub.text, file.relative_to(folder).parts))
            target = target.with_name(target.name + done.suffix)
            if target.exists():  # ids that differ only in case have the same stand-in
                target = target.with_name(f"{len(written)}-{target.name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as stream:
                stream.writelines(done.pieces)
        except StabtreeError as error:
            left.append(shown)
            notes.append(f"{shown} was left out: it {clean(error.problem, 120)}.")
        else:
            written.append(clean(target.relative_to(out)))
            notes += [f"{shown}: {note}" for note in done.notes]
    heads = [f"{counted(len(written), 'file')} written: {listed(written, MAX_LISTED)}."]
    if left:
        heads.append(f"{len(left):,} left out, which are no logs: {listed(left, MAX_LISTED)}.")
    return heads + notes


def listed(names: list[str], limit: int) -> str:
    """Return the first names, and the number of the rest."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{more}"


def _is_wanted(file: Path) -> bool:
    """Return whether a file is a log, a setting or what a program printed, not weights, code or pictures."""
    if file.suffix.lower() in _SUFFIXES or file.parent.name in _VALUES:
        return True
    try:
        choose(open_source(file), Names())
    except StabtreeError:
        return False
    return True
