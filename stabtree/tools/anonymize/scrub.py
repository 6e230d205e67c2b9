"""Text without names: common words of logs stay, and every number; any other word gets a stand-in.

A stand-in is made of letters, like the word it replaces, so that a line is read the same way as before. The same word
always gets the same one, which reveals nothing of it.
"""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from stabtree.common import endings
from stabtree.common.text import without_escapes
from stabtree.frameworks.load import frameworks
from stabtree.loaders.text.messages import MAX_FORM, error_words
from stabtree.metrics.names import known_names
from stabtree.tree.load import load_known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# ---- the words of training logs, which stay

# What is one word to a reader may be several: `AdamW` is two.
_ENGLISH = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
# The packages and modules whose patterns and lists of words decide how a log is read.
_PACKAGES = ("loaders.text", "loaders.json", "loaders.tables", "metrics")
_MODULES = ("loaders.config", "tools.check.settings", "tools.check.precision", "tools.check.tables")
# Of a pattern the letters that don't stand for themselves, and those that may be absent.
_ESCAPED = re.compile(r"\\[a-zA-Z]|\(\?[a-zA-Z]+\)|\(\?P<\w+>")
_ABSENT = re.compile(r"\w\?")


@cache
def known() -> frozenset[str]:
    """Return the words that stay wherever they stand: of metrics and settings, and of trainers' own lines."""
    modules = [f"stabtree.{module}" for module in _MODULES]
    for package in (f"stabtree.{package}" for package in _PACKAGES):
        found = pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
        modules += [module.name for module in found]
    values = (*known_names(), frameworks(), *map(_constants, modules))
    listed = files(__package__).joinpath("words.txt").read_text(encoding="utf-8")
    # Single letters would leave ids as they are; of Chinese they are words.
    return frozenset({word for word in _words(values) if len(word) > 1 or not word.isascii()} | {*listed.split()})


@cache
def of_errors() -> frozenset[str]:
    """Return the words that stay in a line that may tell of an error: those that trees and measures seek, too."""
    table = endings.table()
    trees = [question.params.get("pattern", "") for question in load_known().questions.values()]
    return known() | frozenset(_words((_constants("stabtree.measures.lines"), table.words, table.patterns, trees)))


def _constants(module: str) -> list[Any]:
    """Return the patterns and lists of words of a module."""
    return [value for name, value in vars(import_module(module)).items() if not name.startswith("__")]


def _words(value: Any) -> Iterator[str]:
    """Yield the words in a value, in lower case: of a pattern the letters that stand for themselves."""
    if isinstance(value, re.Pattern | str):
        plain = _ESCAPED.sub(" ", value if isinstance(value, str) else str(value.pattern))
        yield from pieces((plain, _ABSENT.sub("", plain)))
    elif isinstance(value, Collection | Struct) and not isinstance(value, type | bytes):
        items = structs.asdict(value) if isinstance(value, Struct) else value
        for item in items.items() if isinstance(items, Mapping) else items:
            yield from _words(item)


def pieces(words: Iterable[str]) -> Iterator[str]:
    """Yield the runs of letters in some words, in lower case."""
    for word in words:
        yield from (piece.lower() for piece in _ENGLISH.findall(word))
        yield from _LETTERS.findall(word.lower())


@cache
def _staying(hidden: frozenset[str], *, in_error: bool) -> frozenset[str]:
    """Return the words that stay in a line, but for those to hide."""
    return (of_errors() if in_error else known()) - hidden


@cache
def _unparted() -> re.Pattern[str]:
    """Return what finds words in a text without blanks between them: the known ones, and what stands between them."""
    words = "|".join(sorted(filter(_CJK.search, known()), key=len, reverse=True))
    return re.compile(rf"{words}|[a-zA-Z]+|(?:(?!{words})[^\W\d_a-zA-Z])+")


# ---- names that are recognised by their shape: addresses, ids, keys of services, values of keys like `password`

_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_IPV4 = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)"
# Written out, or with `::` for zeros; a MAC address looks the same.
_IPV6 = (
    r"(?<![\w:])(?:(?:[0-9a-fA-F]{1,4}:){5,7}[0-9a-fA-F]{1,4}"
    r"|(?=[a-fA-F:]*+\d)(?:[0-9a-fA-F]{1,4}:){1,6}:(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,5})?)(?![\w:])"
)
# Keys that services issue, by their prefixes.
_SERVICE = (
    r"(?<![^\W_])(?:(?:hf|gh[opsur]|npm|gsk|r8)_[A-Za-z0-9]{16,}|(?:github_pat|wandb_v1)_\w{16,}"
    r"|(?:sk|pk|rk|glpat|nvapi|pypi|xox[a-z])[-_](?=[A-Za-z_-]{0,200}\d)[\w-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{10,}(?:\.[\w-]+){1,2})"
)
# Replaced as a whole, whatever the words: a host and a login, a home, an id, an address. The rest goes by token.
_PART = re.compile(
    rf"(?P<whole>(?<=://)[^/\\]++|(?i:(?<=/home/)|(?<=/users/)|(?<=\\users\\)|(?<=/user/))[^/\\]++)"
    rf"|(?P<ids>{_UUID}|{_SERVICE})|(?P<ip>{_IPV4})|(?P<named>(?<=ip-)\d{{1,3}}(?:-\d{{1,3}}){{3}})|(?P<ip6>{_IPV6})"
    rf"|(?P<token>(?:(?!{_UUID})[^\W_])++)"
)
# A part of a column's name that is a path, an address or an id after all.
_NOT_A_NAME = re.compile(
    rf"[^\s@]@[^\s@]|://|^[/~\\]|^[A-Za-z]:\\|[/\\](?i:home|users)[/\\]|{_UUID}|{_SERVICE}|{_IPV4}"
)
_MAIL = re.compile(r"[^\s@]@[^\s@]")
_LOCKED = (
    r"(?:password|passwd|passphrase|secret|api[-_ ]?key|apikey|(?:access|private|secret)[-_ ]?key(?:[-_ ]?id)?"
    r"|(?:auth|access|api|hf|hub|bearer|secret|github|wandb)[-_ ]?token)"
)
# The value of a key, or of an option of a command. None and true only say whether there is one, and stay.
_SECRET_VALUE = re.compile(
    rf"(?:{_LOCKED}(?![^\W_])\\{{0,3}}[\"']?\s{{0,9}}[:=]\s{{0,9}}|-{_LOCKED}\s)\\{{0,3}}[\"']?"
    r"(?!(?:none|null|true|false)\b)(?P<value>(?<=[\"'])[^\"'\r\n]{1,500}(?=[\"'])|[^\s\"',;&|(){}\[\]<>]++)",
    re.IGNORECASE,
)
SECRET_KEY = re.compile(rf"(?:.*[^a-z])?{_LOCKED}", re.IGNORECASE)
# Values of these keys identify a person or a machine, even if they are common words.
_PERSONAL_KEY = re.compile(
    r"(?:.*[_/-])?(?:user|username|user_?name|author|owner|e?mail|host|hostname|host_?name|node_?name|entity|account"
    r"|login)",
    re.IGNORECASE,
)
_GROUPS = re.compile(r"\d+|[^\W\d_]+")
_HASH = re.compile(r"[0-9a-f]{7,}|[0-9A-F]{7,}")
_MIN_GROUPS = 4  # alternating runs of letters and digits in an id; in hexadecimal one fewer
_MIN_ID = 20  # characters of letters with a digit that are an id anyway


def _is_id(token: str, known: frozenset[str]) -> bool:
    """Return whether letters and digits are mixed as in an id, and not all of its letters are words."""
    groups = _GROUPS.findall(token)
    words = [group.lower() for group in groups if group.isalpha()]
    longer = [word for word in words if len(word) > 1]
    mixed = len(groups) >= _MIN_GROUPS - bool(longer and _HASH.fullmatch(token))
    if len(groups) == len(words) or not (mixed or len(token) >= _MIN_ID):
        return False
    return not known.issuperset(words if mixed else longer)


# ---- taking them out

# Text between blanks, quotes and brackets; escape codes of terminals end in a letter that is not a word.
_CHUNK = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[@-Z\\^_])?|[^\s\x1b\"'`<>|,;()\[\]{}=&?]++")
_KINDS = (("://", "URLs"), ("/", "paths"), ("\\", "paths"), ("", "names"))  # of a chunk that holds the mark
_TOKEN = re.compile(r"[^\W_]++")
_LETTER = re.compile(r"[^\W\d_]")
_DURATION = re.compile(r"(?:\d{1,9}(?:ms|us|ns|[dhms]))++|\d++[eE]\d*+")
_WHOLE = re.compile(rf"{_IPV4}|[^\W_]++")
# The key of a number, right before it; `host:8080`, `train.py:96` and a path are not keys.
_NUMBER = (
    r"(?:\s*+[:=]\s*+[\"']?(?:tensor\()?[\[(]?[+-]?(?:\d*\.\d|nan\b|inf\b)"
    r"|\s*+(?:=|[\"']?\s*+:\s)\s*+[\"'\[(]*+[+-]?\d)"
)
_KEYED = re.compile(rf"(?<![\w/\\@.:~-])([^\W\d_][\w./%-]{{0,120}}+)(?=[\"']?{_NUMBER})", re.IGNORECASE)
# So long a mix of letters and digits is not the name of a column.
_ID_IN_COLUMN = re.compile(r"(?<![^\W_])(?=[^\W\d_]*+\d)[^\W_]{16,}+")
MIN_PROSE = 4  # words in a value that is a text, if
MIN_UNKNOWN = 2  # of them are unknown
MAX_AFFIX = 3  # letters of an ending, such as that of `errors`
MAX_CACHED = 100_000
MAX_CHUNK = 200
# No vowel and no letter of units, number formats and names of metrics: no reader takes `xbc` for a word.
_STAND_IN = "bcdghjkqvwz"
_FIRST = "x"


class Scrub(Struct):
    """Takes names out of texts, the same way in all texts that it is given.

    Attributes:
        hidden: words to replace everywhere, even if they are common or parts of names of columns.
        columns: names of columns that were kept although not all of their words are known, in order.
        given: how many stand-ins of each kind were given.
    """

    hidden: frozenset[str] = frozenset()
    columns: dict[str, None] = field(default_factory=dict)
    given: Counter[str] = field(default_factory=Counter)
    _known: frozenset[str] = frozenset()
    _in_error: bool = False
    _stand_ins: dict[str, str] = field(default_factory=dict)
    _cached: dict[tuple[str, bool | None], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Remove the words to hide from the common ones."""
        self.hidden = frozenset(piece for piece in pieces(self.hidden) if len(piece) > 1)
        self._known = _staying(self.hidden, in_error=False)

    def text(self, text: str) -> str:
        """Return a text of any kind without its names."""

        def chunks(text: str) -> str:
            return _CHUNK.sub(lambda found: self._chunk(found[0]), text)

        def secret(found: re.Match[str]) -> str:
            return self._all(found["value"], "secrets", zeros=True)

        return _rewritten(_SECRET_VALUE, text, chunks, secret, "value")

    def line(self, line: str) -> str:
        """Return a line of a text log: the keys of numbers stay, and in a message about an error its words."""

        def key(found: re.Match[str]) -> str | None:
            return None if SECRET_KEY.fullmatch(found[0]) else self.column(found[0])

        # The reader removes escape codes first.
        head = without_escapes(line[: 4 * MAX_FORM])
        usual = self._known
        if error_words().search(head[:MAX_FORM].lower()):
            self._known, self._in_error = _staying(self.hidden, in_error=True), True
        done = _rewritten(_KEYED, line, self.text, key)
        self._known, self._in_error = usual, False
        return done

    def value(self, text: str, key: str = "") -> str:
        """Return a cell or a value without its names; of a sentence no word and no digit stays.

        Args:
            text: the value.
            key: its key, which may say that it is a secret, or identifies a person or a machine: no word of it stays.
        """
        if SECRET_KEY.fullmatch(key):
            return self._all(text, "secrets", zeros=True)
        if _PERSONAL_KEY.fullmatch(key):
            return self._all(text, "names")
        words = [part for part in text.split() if _LETTER.search(part)]
        if len(words) >= MIN_PROSE and sum(self._chunk(word) != word for word in words) >= MIN_UNKNOWN:
            return self._all(text, "words of texts", zeros=True)
        return self.text(text)

    def column(self, name: str) -> str:
        """Return the name of a column without a run's name in front of ` - `, addresses, paths and ids."""
        if (cached := self._cached.get((name, None))) is not None:
            return cached

        def part(found: re.Match[str]) -> str:
            if _NOT_A_NAME.search(found[0]):
                return self._chunk(found[0])
            return _ID_IN_COLUMN.sub(lambda token: self._token(token[0], "ids"), found[0])

        run, dash, metric = name.rpartition(" - ")
        for word in sorted(self.hidden, key=lambda word: (-len(word), word)):  # even inside longer ones
            metric = re.sub(re.escape(word), lambda found: self._word(found[0], "names"), metric, flags=re.IGNORECASE)
        done = f"{self.text(run)}{dash}{_CHUNK.sub(part, metric)}"
        if len(self._cached) < MAX_CACHED and len(name) <= MAX_CHUNK:
            self._cached[name, None] = done
        kept = {*_TOKEN.findall(name)} & {*_TOKEN.findall(done)}
        if len(self.columns) < MAX_CACHED and any(map(self._unknown, kept)):
            self.columns[done] = None
        return done

    def _chunk(self, chunk: str) -> str:
        """Return what stands between two blanks without its names."""
        if chunk[0] == "\x1b":
            return chunk
        if not _LETTER.search(chunk) and chunk.count(".") < 3:  # an address has three
            return chunk
        done = self._cached.get((chunk, self._in_error))
        if done is None:
            kind = next(kind for mark, kind in _KINDS if mark in chunk)
            if kind != "URLs" and _MAIL.search(chunk):
                done = self._all(chunk, "e-mail addresses")
            else:
                done = _PART.sub(lambda found: self._part(found, kind), chunk)
            if len(self._cached) < MAX_CACHED and len(chunk) <= MAX_CHUNK:
                self._cached[chunk, self._in_error] = done
        return done

    def _part(self, found: re.Match[str], kind: str) -> str:
        part, shape = found[0], found.lastgroup
        if shape == "token":
            return self._token(part, kind)
        if shape == "ip":
            return self._address(part)
        if shape == "named":
            return self._address(part.replace("-", ".")).replace(".", "-")
        if shape == "whole":
            return self._all(part, kind)
        return self._word(part, {"ip6": "IP addresses"}.get(str(shape), "ids"))

    def _token(self, token: str, kind: str) -> str:
        """Return a run of letters and digits with stand-ins for its unknown words."""
        unknown = self._unknown(token)
        if unknown and _is_id(token, self._known):
            return (token[0] if token[0].isdigit() else "") + self._word(token, "ids").lower()
        if not unknown:
            return token

        def piece(found: re.Match[str]) -> str:
            text = found[0]
            if text not in unknown:
                return text
            error = self._in_error and error_words().search(text.lower())
            if not error:
                return self._word(text, kind)
            # An ending of a word of errors stays, a name before or after it is replaced.
            ends = [text[: error.start()], text[error.end() :]]
            for index, part in enumerate(ends):
                if len(part) > MAX_AFFIX and part.lower() not in self._known:
                    ends[index] = self._word(part, kind)
            return error[0].join(ends)

        return _pieces_of(token).sub(piece, token)

    def _unknown(self, token: str) -> list[str]:
        """Return what of a run of letters and digits has to go: all of an id, else the words that are not known."""
        if token.isdigit() or token.lower() in self._known or _DURATION.fullmatch(token):
            return []
        if _is_id(token, self._known):
            return [token]
        words = _pieces_of(token).findall(token)
        # A single letter reveals nothing.
        return [word for word in words if word.lower() not in self._known and not (len(word) == 1 and word.isascii())]

    def _all(self, text: str, kind: str, *, zeros: bool = False) -> str:
        """Return a text with all its words replaced, however common, and perhaps its digits by zeros."""

        def word(found: re.Match[str]) -> str:
            if _LETTER.search(found[0]):
                return self._word(found[0], kind)
            if "." in found[0]:
                return self._address(found[0])
            return "0" * len(found[0]) if zeros else found[0]

        return _WHOLE.sub(word, text)

    def _word(self, name: str, kind: str) -> str:
        """Return the stand-in of a name: only letters, in the case of the name.

        Args:
            name: as it was written; names that differ only in case share a stand-in.
            kind: what to count it as, if it is new.
        """
        key = name.lower()
        if key not in self._stand_ins:
            letters, size, number = "", len(_STAND_IN), len(self._stand_ins) + len(_STAND_IN)  # from two letters on
            while number >= 0:
                letters = _STAND_IN[number % size] + letters
                number = number // size - 1
            self._stand_ins[key] = _FIRST + letters
            self.given[kind] += 1
        done = self._stand_ins[key]
        if len(name) > 1 and name.isupper():
            return done.upper()
        return done.capitalize() if name[:1].isupper() else done

    def _address(self, name: str) -> str:
        """Return the stand-in of an IPv4 address: one of a private network."""
        if name not in self._stand_ins:
            number = self.given["IP addresses"] % (1 << 24)
            self._stand_ins[name] = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
            self.given["IP addresses"] += 1
        return self._stand_ins[name]


def _pieces_of(token: str) -> re.Pattern[str]:
    """Return what finds the words in a run of letters and digits: if no blank parts them, those that are known."""
    if token.isascii():
        return _ENGLISH
    return _unparted() if _CJK.search(token) else _LETTERS


def _rewritten(
    pattern: re.Pattern[str],
    text: str,
    between: Callable[[str], str],
    change: Callable[[re.Match[str]], str | None],
    group: str | int = 0,
) -> str:
    """Return a text with what a pattern finds changed in one way, unless that gives None, and the rest in another."""
    done = 0
    parts: list[str] = []
    for found in pattern.finditer(text):
        new = change(found)
        if new is not None:
            parts += (between(text[done : found.start(group)]), new)
            done = found.end()
    return "".join((*parts, between(text[done:])))
