"""The formats of logs rewritten in place: everything but names stays as it is, to the last blank."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.loaders.formats import choose
from stabtree.loaders.json.wrapped import is_wrapped
from stabtree.loaders.tables.delimited import head_of
from stabtree.loaders.tables.layout import find_layout
from stabtree.metrics.names import Names
from stabtree.tools.anonymize.shapes import PERSONAL_KEY, SECRET_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.loaders.source import Source
    from stabtree.loaders.tables.layout import Layout
    from stabtree.tools.anonymize.scrub import Scrub

TEXTS = ("csv", "json", "jsonl", "manifest", "trainer_state", "text")
LOOKED_AT = 4096
_LINE = re.compile(r"[^\r\n]++")
_RECORD = re.compile(r"([^\r\n]*+)(\r\n|\r|\n|$)")
# Numbers and their separators: most rows of most tables.
_NUMBERS = re.compile(r"[\d\s.,;|+\-eE\"]*+")
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*+(?:"(?P<key>\s*+:)?)?|[^\W\d_][^\s"\',:;\[\]{}()]*+')


def format_of(source: Source) -> str:
    """Return the format to rewrite a source as: that of its loader if it is in `TEXTS`, else json or text.

    Raises:
        StabtreeError: if it is binary and no loader reads it.
    """
    try:
        found = choose(source, Names()).name
    except StabtreeError:
        if source.binary or source.cut:
            raise
        return "text"
    if found in TEXTS or source.binary or "\0" in source.head[:LOOKED_AT]:
        return found
    # a file of a tracker's folder
    if source.head.lstrip().startswith(("{", "[")):
        return "json"
    return "text"


def rewriting(source: Source, format_: str, scrub: Scrub) -> Callable[[str], str]:
    """Return a function that rewrites the texts of a source, one after the other.

    Args:
        source: the file.
        format_: one of `TEXTS`.
        scrub: takes the names out.
    """
    if format_ == "csv":
        layout = find_layout(head_of(source))
        if layout and layout.header_line:
            return DelimitedRewrite(scrub, layout)
    if format_ in ("csv", "text") and not is_wrapped(source.head):
        return lambda text: _LINE.sub(lambda line: scrub.line(line[0]), text)
    return JsonRewrite(scrub, printed=is_wrapped(source.head))


@dataclass(slots=True)
class DelimitedRewrite:
    """A rewrite of delimited text: the names in its header stay, its cells are values.

    Attributes:
        scrub: takes the names out.
        layout: the layout of the file.
    """

    scrub: Scrub
    layout: Layout
    _line: int = 0

    @property
    def _cells(self) -> re.Pattern[str]:
        return re.compile(rf'"(?:[^"]|"")*+"?|[^{re.escape(self.layout.delimiter)}"]++')

    def __call__(self, text: str) -> str:
        """Rewrite the next piece of the file."""
        return _RECORD.sub(self._record, text)

    def _record(self, found: re.Match[str]) -> str:
        line, end = found.groups()
        self._line += bool(end or line)
        if self._line != self.layout.header_line and _NUMBERS.fullmatch(line):
            return found[0]
        mark = self.layout.delimiter
        if self._line == self.layout.header_line or self._is_header(line):
            scrubbed = mark.join(self.scrub.column(cell) for cell in line.split(mark))
        elif self._line < self.layout.header_line or line.startswith("#"):
            scrubbed = self.scrub.line(line)
        else:
            scrubbed = self._cells.sub(lambda cell: self._cell(cell[0]), line)
        return scrubbed + end

    def _cell(self, cell: str) -> str:
        if _NUMBERS.fullmatch(cell):
            return cell
        return self.scrub.value(cell)

    def _is_header(self, line: str) -> bool:
        """Return whether half of the cells, and two, are column names, as when a second writer appended."""
        cells = [cell.strip(" \t'\"\0") for cell in line.split(self.layout.delimiter)]
        names = sum(cell in self.layout.names for cell in cells)
        return names >= max(len(cells) / 2, min(len(self.layout.names), 2))


@dataclass(slots=True)
class JsonRewrite:
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
        if raw[0] != '"':
            return self.scrub.text(raw)
        if found["key"] is not None:
            self._key = raw[1 : -len(found["key"]) - 1]
            return f'"{self._inner(self._key, self.scrub.column)}"{found["key"]}'
        if raw[-1:] != '"' or len(raw) == 1:
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
        if changed == text:
            return raw
        return json.dumps(changed, ensure_ascii="\\u" in raw)[1:-1]
