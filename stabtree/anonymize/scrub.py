"""Text without names: what is known to be a word of logs stays, and every number; any other word gets a stand-in.

A stand-in is made of letters where a word was, so that what parts words, and so how a line is read, stays as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stabtree.anonymize.shapes import (
    ADDRESS,
    IPV4,
    SECRET_KEY,
    SECRET_VALUE,
    SPECIAL,
    TELLS_OF_A_PLACE,
    is_mixed,
    kind_of,
)
from stabtree.anonymize.standins import StandIns
from stabtree.anonymize.words import in_pieces, known, of_errors, pieces
from stabtree.loaders.text.grammar import ANSI
from stabtree.loaders.text.messages import MAX_FORM, TELLING

# What stands between blanks, quotes and brackets; escape codes of terminals end in a letter that is no word.
_CHUNK = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[@-Z\\^_])?|[^\s\x1b\"'`<>|,;()\[\]{}=&?]++")
_TOKEN = re.compile(r"[^\W_]++")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_DURATION = re.compile(r"(?:\d{1,9}(?:ms|us|ns|[dhms]))++|\d++[eE]\d*+")
_WHOLE = re.compile(rf"{IPV4}|[^\W_]++")
_DATE = re.compile(r"(?:19|20)\d\d[-/.]?[01]\d[-/.]?[0-3]\d(?!\d)")
# What a number is written under, right before it; `host:8080` and `train.py:96` are no such thing, nor is a path.
_NUMBER = (
    r"(?:\s*+[:=]\s*+[\"']?(?:tensor\()?[\[(]?[+-]?(?:\d*\.\d|nan\b|inf\b)"
    r"|\s*+(?:=|[\"']?\s*+:\s)\s*+[\"'\[(]*+[+-]?\d)"
)
_KEYED = re.compile(rf"(?<![\w/\\@.:~-])([^\W\d_][\w./%-]{{0,120}}+)(?=[\"']?{_NUMBER})", re.IGNORECASE)
LONG = 16  # characters from which on a mix of letters and digits is no name of a column
PROSE = 4  # words that make a text of a value, where
STRANGE = 2  # of them are not known
AFFIX = 3  # letters of an ending, such as that of `errors`
LONGEST = 4096  # characters without a blank that are looked at for what they are
MAX_CACHED = 100_000
MAX_CHUNK = 200


@dataclass(slots=True)
class Scrub:
    """Takes names out of texts, the same way in all texts that it is given.

    Attributes:
        names: the stand-ins.
        columns: names of columns that were kept although not all of their words are known, in order.
        dated: whether a date was met, which stays.
        zeroed: whether digits of texts or secrets were made zeros.
        hidden: words that are to go wherever they stand, common ones and parts of names of columns too.
    """

    names: StandIns = field(default_factory=StandIns)
    columns: dict[str, None] = field(default_factory=dict)
    dated: bool = False
    zeroed: bool = False
    hidden: frozenset[str] = frozenset()
    _known: frozenset[str] = field(default_factory=known)
    _telling: bool = False
    _cached: dict[str, str] = field(default_factory=dict)
    _cached_telling: dict[str, str] = field(default_factory=dict)
    _cached_columns: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Words to hide are no common ones."""
        self.hidden = frozenset(piece for word in self.hidden for piece in pieces([word]) if len(piece) > 1)
        self._known -= self.hidden

    def text(self, text: str) -> str:
        """A text of any kind without its names."""
        done = 0
        parts: list[str] = []
        for secret in SECRET_VALUE.finditer(text):
            parts += (self._chunks(text[done : secret.start("value")]), self.secret(secret["value"]))
            done = secret.end()
        return "".join((*parts, self._chunks(text[done:])))

    def _chunks(self, text: str) -> str:
        return _CHUNK.sub(lambda found: self._chunk(found[0]), text)

    def line(self, line: str) -> str:
        """A line of a text log: what a number is written under stays, and in a message about an error its words."""
        # The reader takes escape codes out before it looks.
        head = ANSI.sub("", line[: 4 * MAX_FORM]) if "\x1b" in line else line
        if TELLING.search(head[:MAX_FORM]):
            usual = self._known, self._cached
            self._known, self._cached, self._telling = of_errors() - self.hidden, self._cached_telling, True
            found = self._by_keys(line)
            self._known, self._cached, self._telling = *usual, False
            return found
        found = self._by_keys(line)
        # What tells of an error beyond the part of a line that is looked at must not come into it.
        if len(line) > MAX_FORM and TELLING.search(found[:MAX_FORM]):
            return TELLING.sub(lambda word: self.names.word(word[0], "names"), found)
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
        """A cell or a value: as `text`, and where it is a sentence or more, without all of its words and digits.

        Args:
            text: the value.
            personal: whether it is named as one that tells of a person or a machine, so that no word of it stays.
        """
        if personal:
            return self._whole(text, "names")
        words = [part for part in text.split() if _LETTER.search(part)]
        if len(words) >= PROSE and sum(self._chunk(word) != word for word in words) >= STRANGE:
            return _TOKEN.sub(lambda found: self._nothing_left(found[0], "words of texts"), text)
        return self.text(text)

    def secret(self, text: str) -> str:
        """What nobody may see: no word of it is left, and no digit."""
        return _TOKEN.sub(lambda found: self._nothing_left(found[0], "secrets"), text)

    def column(self, name: str) -> str:
        """The name of a column: it stays, but for the run's name in front of ` - `, addresses, paths and ids."""
        found = self._cached_columns.get(name)
        if found is None:
            run, dash, metric = name.rpartition(" - ")
            shown = _CHUNK.sub(lambda part: self._part(part[0]), self._without_hidden(metric))
            found = (self.text(run) if dash else "") + dash + shown
            if len(self._cached_columns) < MAX_CACHED and len(name) <= MAX_CHUNK:
                self._cached_columns[name] = found
            kept = {*_TOKEN.findall(name)} & {*_TOKEN.findall(found)}
            if len(self.columns) < MAX_CACHED and any(map(self._is_unknown, kept)):
                self.columns[found] = None
        return found

    def _without_hidden(self, name: str) -> str:
        """A column's name without the words to hide, be they parts of longer ones."""
        for word in sorted(self.hidden, key=lambda word: (-len(word), word)):
            name = re.sub(re.escape(word), lambda found: self.names.word(found[0], "names"), name, flags=re.IGNORECASE)
        return name

    def _part(self, chunk: str) -> str:
        """A part of a column's name."""
        if TELLS_OF_A_PLACE.search(chunk):
            return self._chunk(chunk)
        return _TOKEN.sub(lambda found: self._id_in_column(found[0]), chunk)

    def _id_in_column(self, token: str) -> str:
        return self._token(token, "ids") if len(token) >= LONG and _DIGIT.search(token) else token

    def _chunk(self, chunk: str) -> str:
        if chunk[0] == "\x1b":
            return chunk
        if not _LETTER.search(chunk):
            self.dated = self.dated or _DATE.search(chunk) is not None
            return ADDRESS.sub(lambda found: self.names.address(found[0]), chunk) if chunk.count(".") > 2 else chunk
        found = self._cached.get(chunk)
        if found is None:
            found = self._scrubbed(chunk)
            if len(self._cached) < MAX_CACHED and len(chunk) <= MAX_CHUNK:
                self._cached[chunk] = found
        return found

    def _scrubbed(self, chunk: str) -> str:
        if len(chunk) > LONGEST:
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
        if found["ids"] or found["ip6"]:
            return self.names.word(found[0], "ids" if found["ids"] else "IP addresses")
        return self._whole(found[0], kind)

    def _words(self, text: str, kind: str) -> str:
        return _TOKEN.sub(lambda found: self._token(found[0], kind), text)

    def _token(self, token: str, kind: str) -> str:
        """A run of letters and digits with stand-ins for those of its words that are not known."""
        if not self._is_unknown(token):
            return token
        if self._is_id(token):
            digits = re.match(r"\d?", token)[0]  # type: ignore[index]
            return digits + self.names.word(token, "ids").lower()
        return in_pieces(token).sub(lambda found: self._piece(found[0], kind), token)

    def _piece(self, piece: str, kind: str) -> str:
        if not self._is_name(piece):
            return piece
        if self._telling and (found := TELLING.search(piece)):
            return f"{self._affix(piece[: found.start()], kind)}{found[0]}{self._affix(piece[found.end() :], kind)}"
        return self.names.word(piece, kind, self._known)

    def _affix(self, part: str, kind: str) -> str:
        """What stands before or behind a word of errors: an ending stays, a name goes."""
        return part if len(part) <= AFFIX or part.lower() in self._known else self.names.word(part, kind, self._known)

    def _is_name(self, piece: str) -> bool:
        """Whether a run of letters is to go; a single one tells nothing."""
        return piece.lower() not in self._known and not (len(piece) == 1 and piece.isascii())

    def _is_unknown(self, token: str) -> bool:
        if token.isdigit() or token.lower() in self._known or _DURATION.fullmatch(token):
            return False
        if self._is_id(token):
            return True
        return any(map(self._is_name, in_pieces(token).findall(token)))

    def _is_id(self, token: str) -> bool:
        """Whether letters and digits follow each other as in no word."""
        return not _DURATION.fullmatch(token) and not all(word in self._known for word in is_mixed(token))

    def _nothing_left(self, token: str, kind: str) -> str:
        if token.isdigit():
            self.zeroed = True
            return "0" * len(token)
        return self.names.word(token, kind)

    def _whole(self, text: str, kind: str) -> str:
        """A text of which no word stays, however common."""
        return _WHOLE.sub(lambda found: self._none_left(found[0], kind), text)

    def _none_left(self, token: str, kind: str) -> str:
        if _LETTER.search(token):
            return self.names.word(token, kind)
        return self.names.address(token) if "." in token else token
