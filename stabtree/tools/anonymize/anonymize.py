"""A log, or the folder of a run, without names, in the same format: what stabtree reads by stays to the last blank."""

from __future__ import annotations

import codecs
import json
import re
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words
from stabtree.loaders import load_run
from stabtree.loaders.folder import MAX_DEPTH, entries
from stabtree.loaders.formats import choose
from stabtree.loaders.json import manifest
from stabtree.loaders.json.lines import is_wrapped
from stabtree.loaders.source import chunks, open_source
from stabtree.loaders.tables.delimited import find_layout, head_of
from stabtree.metrics.names import Names
from stabtree.tools.anonymize.scrub import PERSONAL_KEY, SECRET_KEY, Scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.tables.delimited import Layout
    from stabtree.run import Run

TEXTS = ("csv", "json", "jsonl", "manifest", "trainer_state", "text")
SERIES = ".jsonl"  # what is written of a file that holds no text
_LINE = re.compile(r"[^\r\n]++")
_RECORD = re.compile(r"([^\r\n]*+)(\r\n|\r|\n|$)")
# Numbers and their separators: most rows of most tables.
_NUMBERS = re.compile(r"[\d\s.,;|+\-eE\"]*+")
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*+(?:"(?P<key>\s*+:)?)?|[^\W\d_][^\s"\',:;\[\]{}()]*+')
MAX_HELD = 4 << 20  # a longer line is cut at a blank or a comma, so that memory stays small
_BREAKS = ("\r", ", ", ",", " ", "\t", ";")
# Bytes that are not UTF-8 are kept; half a letter of UTF-16 can't be.
_ERRORS = {"utf-8": "surrogateescape"}


class Rewritten(Struct, frozen=True):
    """A file without its names.

    Attributes:
        format: the name of the file's loader.
        suffix: what to append to the file's name: empty unless the file holds no text.
        packing: its compression, as in `Source.packed`.
        pieces: its bytes, in order, made while they are consumed.
        notes: notes for a person, complete once all pieces are consumed.
        scrub: what was replaced and kept.
    """

    format: str
    suffix: str
    packing: str
    pieces: Iterator[bytes]
    notes: list[str]
    scrub: Scrub


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
    scrub = scrub or Scrub()
    source = open_source(path)
    name = format_ or _format(source)
    if name in TEXTS:
        notes: list[str] = []
        try:
            if name == "manifest" and manifest.parse(source).files:
                notes.append("It names files that hold the metrics: give its folder to include them.")
        except StabtreeError:
            pass  # what is no manifest names no files
        return Rewritten(name, "", source.packed, _packed(_bytes(source, name, notes, scrub), source), notes, scrub)
    if source.file is None:
        raise StabtreeError(f"is of the format {name}, which is read from a file", hint="name the file")
    note = f"It holds no text to rewrite ({name}): the series that stabtree reads from it were written as JSON lines."
    pieces = series_lines(load_run(str(path), format=name, run=run), scrub)
    return Rewritten(name, SERIES, "", pieces, [note], scrub)


def series_lines(run: Run, scrub: Scrub) -> Iterator[bytes]:
    """Yield what was read of a run as JSON lines: its settings, then a row for each step."""
    settings = {
        key: scrub.value(one.value) if isinstance(one.value, str) else one.value for key, one in run.config.items()
    }
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
    errors = _ERRORS.get(source.encoding, "replace")
    rewrite = _rewriting(source, format_, scrub)
    decoder = codecs.getincrementaldecoder(source.encoding)(errors)
    drop, held = source.bom, ""
    for chunk in chunks(source, notes):
        piece = chunk[drop:]
        drop -= len(chunk) - len(piece)
        held += decoder.decode(piece, final=not chunk)
        cut = len(held)
        if chunk:
            cut = held.rfind("\n") + 1
            if not cut and len(held) >= MAX_HELD:
                cut = next(filter(None, (held.rfind(mark) + 1 for mark in _BREAKS)), len(held))
        if cut:
            yield rewrite(held[:cut]).encode(source.encoding, errors)
            held = held[cut:]


def _packed(pieces: Iterable[bytes], source: Source) -> Iterator[bytes]:
    """Yield the bytes compressed as the source was, so that they are read the same way."""
    if not source.packed:
        yield from pieces
        return
    if source.packed == "gzip":
        compressor = import_module("zlib").compressobj(wbits=31)  # a header without a name or a time
    elif source.packed == "bzip2":
        compressor = import_module("bz2").BZ2Compressor()
    elif source.packed == "xz":
        compressor = import_module("lzma").LZMACompressor()
    else:
        compressor = import_module("zstandard").ZstdCompressor().compressobj()
    yield from filter(None, map(compressor.compress, pieces))
    yield compressor.flush()


def _rewriting(source: Source, format_: str, scrub: Scrub) -> Callable[[str], str]:
    """Return a function that rewrites the texts of a source, one after the other."""
    if format_ == "csv":
        layout = find_layout(head_of(source))
        if layout and layout.header_line:
            return DelimitedRewrite(scrub, layout)
    printed = is_wrapped(source.head)
    if format_ in ("csv", "text") and not printed:
        return lambda text: _LINE.sub(lambda line: scrub.line(line[0]), text)
    return JsonRewrite(scrub, printed)


class DelimitedRewrite(Struct):
    """A rewrite of delimited text: the names in its header stay, its cells are values.

    Attributes:
        scrub: takes the names out.
        layout: the layout of the file.
    """

    scrub: Scrub
    layout: Layout
    _line: int = 0

    def __call__(self, text: str) -> str:
        """Rewrite the next piece of the file."""
        return _RECORD.sub(self._record, text)

    def _record(self, found: re.Match[str]) -> str:
        line, end = found.groups()
        mark, header = self.layout.delimiter, self.layout.header_line
        self._line += bool(end or line)
        if self._line != header and _NUMBERS.fullmatch(line):
            return found[0]
        # Another header is one of which half of the cells, and two, are column names: a second writer appended.
        cells = [cell.strip(" \t'\"\0") for cell in line.split(mark)]
        names = sum(cell in self.layout.names for cell in cells)
        if self._line == header or names >= max(len(cells) / 2, min(len(self.layout.names), 2)):
            return mark.join(self.scrub.column(cell) for cell in line.split(mark)) + end
        if self._line < header or line.startswith("#"):
            return self.scrub.line(line) + end

        def cell(found: re.Match[str]) -> str:
            return found[0] if _NUMBERS.fullmatch(found[0]) else self.scrub.value(found[0])

        return re.sub(rf'"(?:[^"]|"")*+"?|[^{re.escape(mark)}"]++', cell, line) + end


class JsonRewrite(Struct):
    """A rewrite of JSON of any shape, whole or broken: keys are names of columns, texts are values.

    Attributes:
        scrub: takes the names out.
        printed: whether the texts are lines of a text log, as in container logs.
    """

    scrub: Scrub
    printed: bool = False
    _key: str = ""
    _option: bool = False

    def __call__(self, text: str) -> str:
        """Rewrite the next piece of the file."""
        return _STRING.sub(self._string, text)

    def _string(self, found: re.Match[str]) -> str:
        raw = found[0]
        if found["key"] is not None:
            self._key = raw[1 : -len(found["key"]) - 1]
            return f'"{self._inner(self._key, self.scrub.column)}"{found["key"]}'
        if raw[0] != '"' or raw[-1:] != '"' or len(raw) == 1:
            return self.scrub.text(raw)
        return f'"{self._inner(raw[1:-1], self._value)}"'

    def _value(self, text: str) -> str:
        if self.printed:
            return _LINE.sub(lambda line: self.scrub.line(line[0]), text)
        is_secret = self._option or SECRET_KEY.fullmatch(self._key)
        # In a list of arguments the value follows its option as a text of its own.
        self._option = text.startswith("-") and SECRET_KEY.fullmatch(text) is not None
        if is_secret:
            return self.scrub.secret(text)
        return self.scrub.value(text, personal=PERSONAL_KEY.fullmatch(self._key) is not None)

    def _inner(self, raw: str, change: Callable[[str], str]) -> str:
        """Return the text between two quotes, changed without its escapes and escaped again."""
        if "\\" not in raw:
            return change(raw)
        try:
            text = json.loads(f'"{raw}"', strict=False)
        except ValueError:
            return self.scrub.text(raw.replace("\\", "\\ ")).replace("\\ ", "\\")
        changed = change(text)
        return raw if changed == text else json.dumps(changed, ensure_ascii="\\u" in raw)[1:-1]


# ---- the folder of a run

MAX_FILES = 2000  # enough for one file per rank of a large run; a data set holds more
# Text files by name: settings and what programs print.
_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".txt", ".log", ".out", ".err")
_VALUES = ("metrics", "params", "tags")  # MLflow keeps each value in a file of its own, in folders of these names
_REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$')  # in names on Windows, where the folder may be unpacked


class Rewriting(Struct):
    """A folder that is rewritten file by file.

    Attributes:
        folder: the folder to read.
        out: the folder to write to.
        scrub: takes the names out, the same way in all files.
        written: the files that were written, relative to `out`.
        left: the files that were left out, relative to `folder`.
        notes: notes on single files.
    """

    folder: Path
    out: Path
    scrub: Scrub
    written: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Write all logs and settings.

        Raises:
            StabtreeError: if the folder holds more files than a run has.
            OSError: if a file can't be written.
        """
        files: list[Path] = []
        folders = [self.folder]
        for place in folders:
            inner, names = entries(place)
            files += (place / name for name in names)
            if len(place.relative_to(self.folder).parts) < MAX_DEPTH:
                folders += (place / name for name in inner)
        if len(files) > MAX_FILES:
            raise StabtreeError(
                f"holds more than {MAX_FILES:,} files", where=clean(self.folder), hint="name the folder of one run"
            )
        for file in files:
            self._write(file)

    def _write(self, file: Path) -> None:
        relative = file.relative_to(self.folder)
        if not _is_wanted(file):
            self.left.append(clean(relative))
            return
        try:
            done = anonymized(file, self.scrub)
            self._put(relative, done.suffix, done.pieces)
        except StabtreeError as error:
            self.left.append(clean(relative))
            self.notes.append(f"{clean(relative)} was left out: it {clean(error.problem, 120)}.")
            return
        if done.format != "manifest":
            self.notes += [f"{clean(relative)}: {note}" for note in done.notes]

    def _put(self, relative: Path, suffix: str, pieces: Iterable[bytes]) -> None:
        """Write a file to the same place, without the names in its own path."""
        words = [self.scrub.text(part) for part in relative.parts]
        if relative.parent.name not in _VALUES:  # there a file's name is that of a metric
            words = [_REFUSED.sub(lambda found: f"%{ord(found[0]):02X}", word) for word in words]
        target = self.out.joinpath(*words)
        target = target.with_name(target.name + suffix)
        # Ids that differ only in case have the same stand-in.
        others = (target.with_name(f"{number}-{target.name}") for number in range(2, MAX_FILES + 2))
        target = next(path for path in chain([target], others) if not path.exists())
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            stream.writelines(pieces)
        self.written.append(clean(target.relative_to(self.out)))


def _is_wanted(file: Path) -> bool:
    """Return whether a file is a log, a setting or what a program printed, not weights, code or pictures."""
    if file.suffix.lower() in _SUFFIXES or file.parent.name in _VALUES:
        return True
    try:
        choose(open_source(file), Names())
    except StabtreeError:
        return False
    return True


# ---- what a person should check

MAX_COLUMNS = 30
MAX_LISTED = 8  # files
KINDS = ("e-mail addresses", "URLs", "IP addresses", "paths", "ids", "secrets", "names", "words of texts")


def folder_summary(work: Rewriting) -> Iterator[str]:
    """Yield lines about the files of a folder."""
    count = len(work.written)
    yield f"{count:,} file{'' if count == 1 else 's'} written: {_listed(work.written, MAX_LISTED)}."
    if work.left:
        yield f"{len(work.left):,} left out, which are no logs: {_listed(work.left, MAX_LISTED)}."
    yield from work.notes


def summary(scrub: Scrub) -> Iterator[str]:
    """Yield lines about what was replaced and kept."""
    counts = [f"{kind} ({scrub.given[kind]:,})" for kind in KINDS if scrub.given[kind]]
    if counts:
        yield f"Replaced, each word by the same stand-in throughout: {in_words(counts)}."
    else:
        yield "Nothing was replaced: all its words are common in logs."
    if scrub.columns:
        columns = [clean(name, 60) for name in scrub.columns]
        yield f"Kept, as names of columns and keys; check that they may be shared: {_listed(columns, MAX_COLUMNS)}."
        yield "To replace a word in them, use --hide WORD."
    yield f"All {'other ' if scrub.zeroed else ''}numbers were kept{', dates and times too' if scrub.dated else ''}."
    yield "No program can recognise everything that is private: read the result before you send it."


def _listed(names: list[str], limit: int) -> str:
    """Return the first names, and the number of the rest."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{more}"
