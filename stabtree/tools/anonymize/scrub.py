"""Text without names: common words of logs stay, and every number; any other word gets a stand-in.

A stand-in is made of letters, like the word it replaces, so that a line is read the same way as before.
"""

from __future__ import annotations

import re
from dataclasses import field

from stabtree.common.dataclass import dataclass
from stabtree.loaders.text.lines.grammar import ANSI
from stabtree.loaders.text.messages import MAX_FORM, error_words
from stabtree.tools.anonymize.shapes import (
    ADDRESS,
    IPV4,
    NOT_A_NAME,
    SECRET_KEY,
    SECRET_VALUE,
    SPECIAL,
    is_mixed,
    kind_of,
)
from stabtree.tools.anonymize.standins import StandIns
from stabtree.tools.anonymize.words import in_pieces, known, of_errors, pieces

# Text between blanks, quotes and brackets; escape codes of terminals end in a letter that is not a word.
_CHUNK = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[@-Z\\^_])?|[^\s\x1b\"'`<>|,;()\[\]{}=&?]++")
_TOKEN = re.compile(r"[^\W_]++")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_DURATION = re.compile(r"(?:\d{1,9}(?:ms|us|ns|[dhms]))++|\d++[eE]\d*+")
_WHOLE = re.compile(rf"{IPV4}|[^\W_]++")
_DATE = re.compile(r"(?:19|20)\d\d[-/.]?[01]\d[-/.]?[0-3]\d(?!\d)")
# The key of a number, right before it; `host:8080`, `train.py:96` and a path are not keys.
_NUMBER = (
    r"(?:\s*+[:=]\s*+[\"']?(?:tensor\()?[\[(]?[+-]?(?:\d*\.\d|nan\b|inf\b)"
    r"|\s*+(?:=|[\"']?\s*+:\s)\s*+[\"'\[(]*+[+-]?\d)"
)
_KEYED = re.compile(rf"(?<![\w/\\@.:~-])([^\W\d_][\w./%-]{{0,120}}+)(?=[\"']?{_NUMBER})", re.IGNORECASE)
MIN_ID_IN_COLUMN = 16  # characters: so long a mix of letters and digits is not the name of a column
MIN_PROSE = 4  # words in a value that is a text, if
MIN_UNKNOWN = 2  # of them are unknown
MAX_AFFIX = 3  # letters of an ending, such as that of `errors`
MAX_LENGTH = 4096  # characters without a blank whose parts are looked at
MAX_CACHED = 100_000
MAX_CHUNK = 200


@dataclass(slots=True)
class Scrub:
    """Takes names out of texts, the same way in all texts that it is given.

    Attributes:
        names: the stand-ins.
        columns: names of columns that were kept although not all of their words are known, in order.
        dated: whether a date was found; dates stay.
        zeroed: whether digits of texts or secrets were replaced by zeros.
        hidden: words to replace everywhere, even if they are common or parts of names of columns.
    """

    names: StandIns = field(default_factory=StandIns)
    columns: dict[str, None] = field(default_factory=dict)
    dated: bool = False
    zeroed: bool = False
    hidden: frozenset[str] = frozenset()
    _known: frozenset[str] = field(default_factory=known)
    _in_error: bool = False
    _cached: dict[str, str] = field(default_factory=dict)
    _cached_in_errors: dict[str, str] = field(default_factory=dict)
    _cached_columns: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Remove the words to hide from the common ones."""
        self.hidden = frozenset(piece for piece in pieces(self.hidden) if len(piece) > 1)
        self._known -= self.hidden

    def text(self, text: str) -> str:
        """Return a text of any kind without its names."""
        done = 0
        parts: list[str] = []
        for secret in SECRET_VALUE.finditer(text):
            parts += (self._chunks(text[done : secret.start("value")]), self.secret(secret["value"]))
            done = secret.end()
        return "".join((*parts, self._chunks(text[done:])))

    def _chunks(self, text: str) -> str:
        return _CHUNK.sub(lambda found: self._chunk(found[0]), text)

    def line(self, line: str) -> str:
        """Return a line of a text log: the keys of numbers stay, and in a message about an error its words."""
        # The reader removes escape codes first.
        head = ANSI.sub("", line[: 4 * MAX_FORM]) if "\x1b" in line else line
        if error_words().search(head[:MAX_FORM]):
            usual = self._known, self._cached
            self._known, self._cached, self._in_error = of_errors() - self.hidden, self._cached_in_errors, True
            found = self._by_keys(line)
            self._known, self._cached, self._in_error = *usual, False
            return found
        found = self._by_keys(line)
        # A word of errors beyond the part of a line that the reader looks at must not move into it.
        if len(line) > MAX_FORM and error_words().search(found[:MAX_FORM]):
            return error_words().sub(lambda word: self.names.word(word[0], "names"), found)
        return found

    def _by_keys(self, line: str) -> str:
        done = 0
        parts: list[str] = []
        for key in _KEYED.finditer(line):
            if SECRET_KEY.fullmatch(key[0]):
                continue
            parts += (self.text(line[done : key.start()]), self.column(key[0]))
            done = key.end()
        return "".join((*parts, self.text(line[done:])))

    def value(self, text: str, *, personal: bool = False) -> str:
        """Return a cell or a value without its names; of a sentence no word and no digit stays.

        Args:
            text: the value.
            personal: whether its key says that it identifies a person or a machine, so that no word of it stays.
        """
        if personal:
            return self._whole(text, "names")
        words = [part for part in text.split() if _LETTER.search(part)]
        if len(words) >= MIN_PROSE and sum(self._chunk(word) != word for word in words) >= MIN_UNKNOWN:
            return _TOKEN.sub(lambda found: self._replace(found[0], "words of texts"), text)
        return self.text(text)

    def secret(self, text: str) -> str:
        """Return a secret with all its words and digits replaced."""
        return _TOKEN.sub(lambda found: self._replace(found[0], "secrets"), text)

    def column(self, name: str) -> str:
        """Return the name of a column without a run's name in front of ` - `, addresses, paths and ids."""
        found = self._cached_columns.get(name)
        if found is None:
            run, dash, metric = name.rpartition(" - ")
            shown = _CHUNK.sub(lambda part: self._part(part[0]), self._without_hidden(metric))
            found = f"{self.text(run)}{dash}{shown}"
            if len(self._cached_columns) < MAX_CACHED and len(name) <= MAX_CHUNK:
                self._cached_columns[name] = found
            kept = {*_TOKEN.findall(name)} & {*_TOKEN.findall(found)}
            if len(self.columns) < MAX_CACHED and any(map(self._is_unknown, kept)):
                self.columns[found] = None
        return found

    def _without_hidden(self, name: str) -> str:
        """Return a column's name without the words to hide, even inside longer ones."""
        for word in sorted(self.hidden, key=lambda word: (-len(word), word)):
            name = re.sub(re.escape(word), lambda found: self.names.word(found[0], "names"), name, flags=re.IGNORECASE)
        return name

    def _part(self, chunk: str) -> str:
        """Return a part of a column's name without paths, addresses and ids."""
        if NOT_A_NAME.search(chunk):
            return self._chunk(chunk)
        return _TOKEN.sub(lambda found: self._id_in_column(found[0]), chunk)

    def _id_in_column(self, token: str) -> str:
        if len(token) >= MIN_ID_IN_COLUMN and _DIGIT.search(token):
            return self._token(token, "ids")
        return token

    def _chunk(self, chunk: str) -> str:
        if chunk[0] == "\x1b":
            return chunk
        if not _LETTER.search(chunk):
            self.dated = self.dated or _DATE.search(chunk) is not None
            if chunk.count(".") > 2:
                return ADDRESS.sub(lambda found: self.names.address(found[0]), chunk)
            return chunk
        found = self._cached.get(chunk)
        if found is None:
            found = self._scrubbed(chunk)
            if len(self._cached) < MAX_CACHED and len(chunk) <= MAX_CHUNK:
                self._cached[chunk] = found
        return found

    def _scrubbed(self, chunk: str) -> str:
        if len(chunk) > MAX_LENGTH:
            return self._whole(chunk, "names")
        kind = kind_of(chunk)
        self.dated = self.dated or _DATE.search(chunk) is not None
        if kind == "e-mail addresses":
            return self._whole(chunk, kind)
        done = 0
        parts: list[str] = []
        for found in SPECIAL.finditer(chunk):
            parts += (self._words(chunk[done : found.start()], kind), self._special(found, kind))
            done = found.end()
        return "".join((*parts, self._words(chunk[done:], kind)))

    def _special(self, found: re.Match[str], kind: str) -> str:
        if found["ip"]:
            return self.names.address(found[0])
        if found["named"]:
            return self.names.address(found[0].replace("-", ".")).replace(".", "-")
        if found["ids"]:
            return self.names.word(found[0], "ids")
        if found["ip6"]:
            return self.names.word(found[0], "IP addresses")
        return self._whole(found[0], kind)

    def _words(self, text: str, kind: str) -> str:
        return _TOKEN.sub(lambda found: self._token(found[0], kind), text)

    def _token(self, token: str, kind: str) -> str:
        """Return a run of letters and digits with stand-ins for its unknown words."""
        if not self._is_unknown(token):
            return token
        if self._is_id(token):
            digits = re.match(r"\d?", token)[0]  # type: ignore[index]
            return digits + self.names.word(token, "ids").lower()
        return in_pieces(token).sub(lambda found: self._piece(found[0], kind), token)

    def _piece(self, piece: str, kind: str) -> str:
        if not self._is_name(piece):
            return piece
        found = error_words().search(piece) if self._in_error else None
        if found:
            return f"{self._affix(piece[: found.start()], kind)}{found[0]}{self._affix(piece[found.end() :], kind)}"
        return self.names.word(piece, kind, self._known)

    def _affix(self, part: str, kind: str) -> str:
        """Return the text before or after a word of errors: an ending stays, a name is replaced."""
        if len(part) <= MAX_AFFIX or part.lower() in self._known:
            return part
        return self.names.word(part, kind, self._known)

    def _is_name(self, piece: str) -> bool:
        """Return whether a run of letters is replaced; a single letter reveals nothing."""
        return piece.lower() not in self._known and not (len(piece) == 1 and piece.isascii())

    def _is_unknown(self, token: str) -> bool:
        if token.isdigit() or token.lower() in self._known or _DURATION.fullmatch(token):
            return False
        if self._is_id(token):
            return True
        return any(map(self._is_name, in_pieces(token).findall(token)))

    def _is_id(self, token: str) -> bool:
        """Return whether letters and digits are mixed as in an id."""
        return not _DURATION.fullmatch(token) and not all(word in self._known for word in is_mixed(token))

    def _replace(self, token: str, kind: str) -> str:
        if token.isdigit():
            self.zeroed = True
            return "0" * len(token)
        return self.names.word(token, kind)

    def _whole(self, text: str, kind: str) -> str:
        """Return a text with all its words replaced, however common."""
        return _WHOLE.sub(lambda found: self._replace_word(found[0], kind), text)

    def _replace_word(self, token: str, kind: str) -> str:
        if _LETTER.search(token):
            return self.names.word(token, kind)
        if "." in token:
            return self.names.address(token)
        return token
