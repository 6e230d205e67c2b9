"""Text without names: common words of logs stay, and every number; any other word gets a stand-in.

A stand-in is made of letters, like the word it replaces, so that a line is read the same way as before. The same word
always gets the same one, which reveals nothing of it.
"""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from stabtree.common import endings
from stabtree.frameworks.load import frameworks
from stabtree.loaders import config
from stabtree.loaders.text.grammar import ANSI
from stabtree.loaders.text.messages import MAX_FORM, error_words
from stabtree.metrics.names import known_names
from stabtree.tools.check.tables import SETTINGS
from stabtree.tree.shipped import shipped

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
_PATTERN = re.compile(r"pattern: '((?:[^']|'')*)'")  # as a tree states it


@lru_cache(maxsize=1)
def known() -> frozenset[str]:
    """Return the words that stay wherever they stand: of metrics and settings, and of trainers' own lines."""
    constants = [word for module in _MODULES for word in _constants(f"stabtree.{module}")]
    for package in _PACKAGES:
        for module in pkgutil.walk_packages(import_module(f"stabtree.{package}").__path__, f"stabtree.{package}."):
            constants += _constants(module.name)
    for one in frameworks().values():
        rules = tuple((rule.at, rule.key, rule.value, rule.words) for rule in one.config.rules)
        of_config = (one.config.marks, one.config.keys, one.config.ignored, rules)
        log = one.log
        of_log = (log.marks, log.path, log.prefix, log.beside, log.last_line, log.errors, tuple(log.prints))
        constants += _words_of((one.id, of_config, of_log))
    # Single letters would leave ids as they are; of Chinese they are words.
    named = [*known_names(), *(word for word in pieces(constants) if len(word) > 1 or not word.isascii())]
    for key, (_, spelled) in config.KEYS.items():
        named += [key, *spelled.split()]
    for key, (_, others) in SETTINGS.items():
        named += [key, *others]
    listed = files(__package__).joinpath("words.txt").read_text(encoding="utf-8")
    return frozenset({*pieces(named), *listed.split()})


@lru_cache(maxsize=1)
def of_errors() -> frozenset[str]:
    """Return the words that stay in a line that may tell of an error: those that trees and predicates seek, too."""
    patterns = [*_constants("stabtree.predicates.lines")]
    patterns += _words_of((endings.table().words, *endings.table().patterns.values()))
    for file in shipped().values():
        patterns += map(_plainly, _PATTERN.findall(file.read_text(encoding="utf-8")))
    return known() | frozenset(pieces(patterns))


def pieces(words: Iterable[str]) -> Iterator[str]:
    """Yield the runs of letters in some words, in lower case."""
    for word in words:
        yield from (piece.lower() for piece in _ENGLISH.findall(word))
        yield from _LETTERS.findall(word.lower())


def _constants(module: str) -> list[str]:
    """Return the words in the patterns and lists of a module."""
    values = vars(import_module(module)).items()
    return _words_of(value for name, value in values if not name.startswith("__"))


def _words_of(values: Iterable[Any]) -> list[str]:
    words: list[str] = []
    for value in values:
        if isinstance(value, re.Pattern):
            words.append(_plainly(str(value.pattern)))
        elif isinstance(value, str):
            words.append(_plainly(value))
        elif isinstance(value, frozenset | set | tuple):
            words += _words_of(value)
        elif isinstance(value, dict):
            words += _words_of(value.items())
    return words


def _plainly(pattern: str) -> str:
    """Return the letters of a pattern that stand for themselves, with and without those that may be absent."""
    plain = _ESCAPED.sub(" ", pattern)
    return f"{plain} {_ABSENT.sub('', plain)}"


def _in_pieces(token: str) -> re.Pattern[str]:
    """Return what finds the words in a run of letters and digits: if no blank parts them, those that are known."""
    if token.isascii():
        return _ENGLISH
    return _unparted() if _CJK.search(token) else _LETTERS


@lru_cache(maxsize=1)
def _unparted() -> re.Pattern[str]:
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
# Replaced as a whole, whatever the words: a host and a login, a home, an id, an address.
_SPECIAL = re.compile(
    rf"(?P<host>(?<=://)[^/\\]++)|(?P<home>(?i:(?<=/home/)|(?<=/users/)|(?<=\\users\\)|(?<=/user/))[^/\\]++)"
    rf"|(?P<ids>{_UUID}|{_SERVICE})|(?P<ip>{_IPV4})|(?P<named>(?<=ip-)\d{{1,3}}(?:-\d{{1,3}}){{3}})|(?P<ip6>{_IPV6})"
)
# A part of a column's name that is a path, an address or an id after all.
_NOT_A_NAME = re.compile(
    rf"[^\s@]@[^\s@]|://|^[/~\\]|^[A-Za-z]:\\|[/\\](?i:home|users)[/\\]|{_UUID}|{_SERVICE}|{_IPV4}"
)
_ADDRESS = re.compile(_IPV4)
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
PERSONAL_KEY = re.compile(
    r"(?:.*[_/-])?(?:user|username|user_?name|author|owner|e?mail|host|hostname|host_?name|node_?name|entity|account"
    r"|login)",
    re.IGNORECASE,
)
_GROUPS = re.compile(r"\d+|[^\W\d_]+")
_HASH = re.compile(r"[0-9a-f]{7,}|[0-9A-F]{7,}")
_MIN_GROUPS = 4  # alternating runs of letters and digits in an id; in hexadecimal one fewer
_MIN_ID = 20  # characters of letters with a digit that are an id anyway


def _words_in_id(token: str) -> list[str]:
    """Return the words among letters and digits that look like an id; none if they do not."""
    if not _DIGIT.search(token):
        return []
    groups = _GROUPS.findall(token)
    words = [group.lower() for group in groups if group.isalpha()]
    hashed = len(groups) >= _MIN_GROUPS - 1 and _HASH.fullmatch(token) and any(len(word) > 1 for word in words)
    if len(groups) >= _MIN_GROUPS or hashed:
        return words
    return [word for word in words if len(word) > 1] if len(token) >= _MIN_ID else []


# ---- taking them out

# Text between blanks, quotes and brackets; escape codes of terminals end in a letter that is not a word.
_CHUNK = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[@-Z\\^_])?|[^\s\x1b\"'`<>|,;()\[\]{}=&?]++")
_TOKEN = re.compile(r"[^\W_]++")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_DURATION = re.compile(r"(?:\d{1,9}(?:ms|us|ns|[dhms]))++|\d++[eE]\d*+")
_WHOLE = re.compile(rf"{_IPV4}|[^\W_]++")
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
# No vowel and no letter of units, number formats and names of metrics: no reader takes `xbc` for a word.
_STAND_IN = "bcdghjkqvwz"
_FIRST = "x"


class Scrub(Struct):
    """Takes names out of texts, the same way in all texts that it is given.

    Attributes:
        hidden: words to replace everywhere, even if they are common or parts of names of columns.
        columns: names of columns that were kept although not all of their words are known, in order.
        given: how many stand-ins of each kind were given.
        dated: whether a date was found; dates stay.
        zeroed: whether digits of texts or secrets were replaced by zeros.
    """

    hidden: frozenset[str] = frozenset()
    columns: dict[str, None] = field(default_factory=dict)
    given: Counter[str] = field(default_factory=Counter)
    dated: bool = False
    zeroed: bool = False
    _known: frozenset[str] = field(default_factory=known)
    _stand_ins: dict[str, str] = field(default_factory=dict)
    _addresses: dict[str, str] = field(default_factory=dict)
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
        return _rewritten(_SECRET_VALUE, text, self._chunks, lambda found: self.secret(found["value"]), "value")

    def _chunks(self, text: str) -> str:
        return _CHUNK.sub(lambda found: self._chunk(found[0]), text)

    def line(self, line: str) -> str:
        """Return a line of a text log: the keys of numbers stay, and in a message about an error its words."""
        # The reader removes escape codes first.
        head = ANSI.sub("", line[: 4 * MAX_FORM]) if "\x1b" in line else line
        if error_words().search(head[:MAX_FORM]):
            usual = self._known, self._cached
            self._known, self._cached, self._in_error = of_errors() - self.hidden, self._cached_in_errors, True
            done = self._by_keys(line)
            self._known, self._cached, self._in_error = *usual, False
            return done
        done = self._by_keys(line)
        # A word of errors beyond the part of a line that the reader looks at must not move into it.
        if len(line) > MAX_FORM and error_words().search(done[:MAX_FORM]):
            return error_words().sub(lambda word: self._word(word[0], "names"), done)
        return done

    def _by_keys(self, line: str) -> str:
        def key(found: re.Match[str]) -> str | None:
            return None if SECRET_KEY.fullmatch(found[0]) else self.column(found[0])

        return _rewritten(_KEYED, line, self.text, key)

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
        done = self._cached_columns.get(name)
        if done is None:
            run, dash, metric = name.rpartition(" - ")
            for word in sorted(self.hidden, key=lambda word: (-len(word), word)):  # even inside longer ones
                hide = re.compile(re.escape(word), re.IGNORECASE)
                metric = hide.sub(lambda found: self._word(found[0], "names"), metric)
            done = f"{self.text(run)}{dash}{_CHUNK.sub(lambda part: self._part(part[0]), metric)}"
            if len(self._cached_columns) < MAX_CACHED and len(name) <= MAX_CHUNK:
                self._cached_columns[name] = done
            kept = {*_TOKEN.findall(name)} & {*_TOKEN.findall(done)}
            if len(self.columns) < MAX_CACHED and any(map(self._is_unknown, kept)):
                self.columns[done] = None
        return done

    def _part(self, chunk: str) -> str:
        """Return a part of a column's name without paths, addresses and ids."""
        if _NOT_A_NAME.search(chunk):
            return self._chunk(chunk)

        def token(found: re.Match[str]) -> str:
            mixed = len(found[0]) >= MIN_ID_IN_COLUMN and _DIGIT.search(found[0])
            return self._token(found[0], "ids") if mixed else found[0]

        return _TOKEN.sub(token, chunk)

    def _chunk(self, chunk: str) -> str:
        if chunk[0] == "\x1b":
            return chunk
        if not _LETTER.search(chunk):
            self.dated = self.dated or _DATE.search(chunk) is not None
            return _ADDRESS.sub(lambda found: self._address(found[0]), chunk) if chunk.count(".") > 2 else chunk
        done = self._cached.get(chunk)
        if done is None:
            done = self._scrubbed(chunk)
            if len(self._cached) < MAX_CACHED and len(chunk) <= MAX_CHUNK:
                self._cached[chunk] = done
        return done

    def _scrubbed(self, chunk: str) -> str:
        if len(chunk) > MAX_LENGTH:
            return self._whole(chunk, "names")
        self.dated = self.dated or _DATE.search(chunk) is not None
        if "://" in chunk:
            kind = "URLs"
        elif _MAIL.search(chunk):
            return self._whole(chunk, "e-mail addresses")
        else:
            kind = "paths" if "/" in chunk or "\\" in chunk else "names"

        def special(found: re.Match[str]) -> str:
            if found["ip"]:
                return self._address(found[0])
            if found["named"]:
                return self._address(found[0].replace("-", ".")).replace(".", "-")
            if found["ids"] or found["ip6"]:
                return self._word(found[0], "ids" if found["ids"] else "IP addresses")
            return self._whole(found[0], kind)

        words = lambda text: _TOKEN.sub(lambda found: self._token(found[0], kind), text)  # noqa: E731
        return _rewritten(_SPECIAL, chunk, words, special)

    def _token(self, token: str, kind: str) -> str:
        """Return a run of letters and digits with stand-ins for its unknown words."""
        if not self._is_unknown(token):
            return token
        if self._is_id(token):
            return (token[0] if token[0].isdigit() else "") + self._word(token, "ids").lower()
        return _in_pieces(token).sub(lambda found: self._piece(found[0], kind), token)

    def _piece(self, piece: str, kind: str) -> str:
        if not self._is_name(piece):
            return piece
        found = error_words().search(piece) if self._in_error else None
        if not found:
            return self._word(piece, kind, avoid_known=True)
        # An ending of a word of errors stays, a name before or after it is replaced.
        ends = (piece[: found.start()], piece[found.end() :])
        before, after = (
            part if len(part) <= MAX_AFFIX or part.lower() in self._known else self._word(part, kind, avoid_known=True)
            for part in ends
        )
        return f"{before}{found[0]}{after}"

    def _is_name(self, piece: str) -> bool:
        """Return whether a run of letters is replaced; a single letter reveals nothing."""
        return piece.lower() not in self._known and not (len(piece) == 1 and piece.isascii())

    def _is_unknown(self, token: str) -> bool:
        if token.isdigit() or token.lower() in self._known or _DURATION.fullmatch(token):
            return False
        return self._is_id(token) or any(map(self._is_name, _in_pieces(token).findall(token)))

    def _is_id(self, token: str) -> bool:
        """Return whether letters and digits are mixed as in an id."""
        return not _DURATION.fullmatch(token) and not all(word in self._known for word in _words_in_id(token))

    def _replace(self, token: str, kind: str) -> str:
        if token.isdigit():
            self.zeroed = True
            return "0" * len(token)
        return self._word(token, kind)

    def _whole(self, text: str, kind: str) -> str:
        """Return a text with all its words replaced, however common."""

        def word(found: re.Match[str]) -> str:
            if _LETTER.search(found[0]):
                return self._word(found[0], kind)
            return self._address(found[0]) if "." in found[0] else found[0]

        return _WHOLE.sub(word, text)

    def _word(self, name: str, kind: str, *, avoid_known: bool = False) -> str:
        """Return the stand-in of a name: only letters, in the case of the name.

        Args:
            name: as it was written; names that differ only in case share a stand-in.
            kind: what to count it as, if it is new.
            avoid_known: whether it must not be a word that stays.
        """
        key = name.lower()
        done = self._stand_ins.get(key)
        if done is None:
            done = _spelled(len(self._stand_ins))
            if avoid_known and done in self._known:  # made different by a letter that no other ends with
                done += _FIRST
            self._stand_ins[key] = done
            self.given[kind] += 1
        if len(name) > 1 and name.isupper():
            return done.upper()
        return done.capitalize() if name[:1].isupper() else done

    def _address(self, name: str) -> str:
        """Return the stand-in of an IPv4 address: one of a private network."""
        done = self._addresses.get(name)
        if done is None:
            number = len(self._addresses) % (1 << 24)
            done = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
            self._addresses[name] = done
            self.given["IP addresses"] += 1
        return done


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


def _spelled(number: int) -> str:
    """Return the stand-in of a number: at least two letters after the first, unique to the number."""
    letters, size = "", len(_STAND_IN)
    number += size  # from two letters on
    while True:
        letters = _STAND_IN[number % size] + letters
        number = number // size - 1
        if number < 0:
            return _FIRST + letters
