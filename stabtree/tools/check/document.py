"""A configuration file as plain values: JSON, YAML or TOML."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence  # noqa: TC003 - of a struct
from contextlib import suppress
from pathlib import Path  # noqa: TC003
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common import toml, yaml12
from stabtree.common.errors import StabtreeError
from stabtree.common.files import Place
from stabtree.common.text import clean, masked
from stabtree.common.yaml12 import KEY, Span
from stabtree.loaders.source import NAME_METRICS, open_source
from stabtree.run import Setting

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.run import ConfigScalar

SUFFIXES = (".json", ".yaml", ".yml", ".toml")
# The whole configuration of a large model fits many times; the state of a trainer, which is JSON, holds its log.
MAX_BYTES = 1 << 20
MAX_JSON = 32 << 20
HINT = "name the configuration of a run: JSON, YAML, TOML, or its folder"
# A text in JSON, which stays as it is; or a comment, or a comma that nothing follows.
_LOOSE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|(//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]]))', re.DOTALL)
_PROGRAM = re.compile(r".*\.(?:py|(?:ba|z)?sh|slurm|sbatch|job|pbs)$", re.IGNORECASE)
# A word of JSON or TOML: a text in any quotes, a comment, a mark, or anything else up to one of these.
_WORD = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*|//[^\n]*|/\*.*?\*/'
    r"|'''.*?'''|'[^'\n]*'|[\[\]{},:=\n]|[^\[\]{},:=\s\"'#/]+",
    re.DOTALL,
)
KeyPath = tuple[str | int, ...]


class ConfigFile(Struct, frozen=True):
    """A configuration file.

    Attributes:
        path: where it lies.
        values: its top-level object.
        spans: where each value is, and each key, by its path of keys.
        lines: the lines of its text.
        notes: what was wrong but readable.
    """

    path: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    spans: Mapping[KeyPath, Span] = field(default_factory=dict)
    lines: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's own name, safe to print."""
        return masked(clean(self.path.name))

    def setting(self, value: ConfigScalar, path: KeyPath) -> Setting:
        """Return a value that stands at a path of keys as a setting; without a path it is the file as a whole."""
        if not path:
            return Setting(value, self.name)
        return Setting(value, self.where(path), dotted(path), self.place(path))

    def where(self, path: KeyPath) -> str:
        """Return where a value stands in words: `config.yaml:12, optimizer.lr`."""
        place = self.place(path)
        line = f":{place.line}" if place else ""
        return f"{self.name}{line}, {dotted(path)}"

    def place(self, path: KeyPath) -> Place | None:
        """Return where a value stands; None in a file that is too large to look for it."""
        line, start, end = self.spans.get(path, (0, 0, 0))
        return Place(line, self.lines[line - 1], start, end, str(self.path)) if line else None


def dotted(path: KeyPath) -> str:
    """Return a path of keys as one would type it, safe to print."""
    return masked(clean(".".join(map(str, path)), 80))


def read_document(path: Path, content: bytes | None = None) -> ConfigFile:
    """Read one configuration file, whatever its name, or what it is going to hold.

    Raises:
        StabtreeError: if it can't be read, or holds no settings.
    """
    try:
        source = open_source(path, content)
    except StabtreeError as error:
        hint = HINT if error.hint == NAME_METRICS or "stabtree inspect" in error.hint else error.hint
        raise StabtreeError(error.problem, where=error.where, hint=hint) from None
    if source.binary or _PROGRAM.fullmatch(path.name):
        problem = f"is {source.binary or 'a program'}, not a configuration"
        raise StabtreeError(problem, where=source.path, hint=HINT)
    suffix, opened = path.suffix.lower(), source.head.lstrip()[:1] == "{"
    is_json = suffix == ".json" or (suffix not in SUFFIXES and opened)
    most = MAX_BYTES
    if is_json:
        most = MAX_JSON
    lines, parts, size = source.lines(), list[str](), 0
    for block in lines.blocks():
        size += len(block)
        if size > most:
            raise StabtreeError(f"is larger than any configuration ({most >> 20} MiB)", where=source.path, hint=HINT)
        parts.append(block)
    text = "".join(parts)
    if is_json:
        file = _json(text, source, path)
    elif suffix == ".toml":
        try:
            file = ConfigFile(path, toml.parse(text), _spans(text, "="), text.split("\n"))
        except ValueError as error:
            raise _invalid("TOML", clean(error, 120), source, text) from None
    else:
        try:
            document = yaml12.parse(text, source.path)
        except StabtreeError as error:
            raise StabtreeError(error.problem, where=error.where, hint=HINT, places=error.places) from None
        told = (f"{source.name}:{place.line}: {clean(mistake, 120)}" for place, mistake in document.mistakes)
        notes = tuple(f"{mistake}: the last one counts." for mistake in told)
        file = ConfigFile(path, document.value, document.spans, document.lines, notes)
    values, spans = file.values, file.spans
    if not isinstance(values, Mapping) or not values:
        raise StabtreeError("holds no settings", where=source.path, hint=HINT)
    # In W&B's `config.yaml` each value stands as `{value: ...}`.
    wrapped = {key: inner["value"] for key, inner in values.items() if isinstance(inner, Mapping) and "value" in inner}
    if wrapped and len(wrapped) >= len(values) - 1:
        values = wrapped
        spans = {(*at[:1], *at[2:]): span for at, span in spans.items() if at[1:2] in (("value",), (KEY,))}
    return replace(file, values=values, spans=spans, notes=(*lines.notes, *file.notes))


def _invalid(kind: str, problem: str, source: Source, text: str) -> StabtreeError:
    """Return the error for what is not valid JSON or TOML, with the place that its parser names."""
    found = re.search(r"line (\d+),? column (\d+)", problem)
    if not found:
        return StabtreeError(f"is not valid {kind}: {problem}", where=source.path, hint=HINT)
    line, column = int(found[1]), int(found[2])
    place = Place(line, text.split("\n")[line - 1], column - 1, column)
    problem = re.sub(r"[: (]*(?:at )?line \d+,? column .*", "", problem)
    where, hint = f"{source.path}:{line}", "correct that line"
    return StabtreeError(f"is not valid {kind}: {problem}", where=where, hint=hint, places={0: place})


def _spans(text: str, sign: str) -> dict[KeyPath, Span]:
    """Return where each value and each key of JSON or TOML is, as far as it is valid; nothing of a very large text.

    Args:
        text: the text.
        sign: what stands between a key and its value.
    """
    found: dict[KeyPath, Span] = {}
    if len(text) > MAX_BYTES:
        return found
    breaks = [-1, *(mark.start() for mark in re.finditer("\n", text)), len(text)]

    def span(start: int, end: int) -> Span:
        line = bisect_left(breaks, start)
        return line, start - breaks[line - 1] - 1, min(end, breaks[line]) - breaks[line - 1] - 1

    table: KeyPath = ()  # where the statements of TOML belong
    counts: dict[KeyPath, int] = {}  # its arrays of tables
    open_: list[tuple[KeyPath, int, bool]] = []  # what is not closed yet: where it stands, its start, whether a list
    keys: list[re.Match[str]] = []
    here, in_value, header = (), sign == ":", 0
    for word in _WORD.finditer(text):
        mark = word[0]
        if mark.startswith(("#", "//", "/*")):
            continue
        if mark == "\n" and not open_ and sign == "=":
            if header:
                table = _table(_names(keys), counts, is_list=header > 2)
            keys, here, in_value, header = [], table, False, 0
        elif mark in ("]", "}") and open_:
            path, start, _ = open_.pop()
            found[path] = span(start, word.end())
            keys, in_value = [], False
        elif mark == "," and open_:
            path, _, is_list = open_[-1]
            here, keys, in_value = path, [], is_list
            if is_list:
                counts[path] = counts.get(path, 0) + 1
                here = (*path, counts[path])
        elif in_value and mark in ("[", "{"):
            open_.append((here, word.start(), mark == "["))
            in_value = mark == "["
            if in_value:
                counts[here] = 0
                here = (*here, 0)
        elif in_value:
            found[here] = span(*word.span())
            in_value = False
        elif mark == sign and keys:
            here, in_value = (*here, *_names(keys)), True
            found[*here, KEY] = span(keys[0].start(), keys[-1].end())
            keys = []
        elif mark in ("[", "]"):
            header += 1
        elif mark not in ("\n", ":", "="):
            keys.append(word)
    return found


def _names(words: list[re.Match[str]]) -> KeyPath:
    """Return the keys that words spell: `optim."a.b"` are two."""
    names: list[str] = []
    for word in words:
        text = word[0]
        if text[0] == '"':
            with suppress(ValueError):  # TOML has more escapes than JSON
                text = f"'{json.loads(text)}'"
        names += [text[1:-1]] if text[0] in "\"'" else filter(None, text.split("."))
    return tuple(names)


def _table(names: KeyPath, counts: dict[KeyPath, int], *, is_list: bool) -> KeyPath:
    """Return the path of a table of TOML; in an array of tables that of the last one."""
    here: KeyPath = ()
    for index, name in enumerate(names, 1):
        here = (*here, name)
        if is_list and index == len(names):
            counts[here] = counts.get(here, -1) + 1
        if here in counts:
            here = (*here, counts[here])
    return here


def _json(text: str, source: Source, path: Path) -> ConfigFile:
    """Read JSON; comments and commas at the end, which some write in it, are left out."""
    original, notes = text, dict[str, None]()

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                shown = masked(clean(key, 40))
                notes[f"{source.name}: the key {shown!r} is given twice: the last one counts."] = None
            seen.add(key)
        return dict(pairs)

    try:
        try:
            values = json.loads(text, object_pairs_hook=once)
        except json.JSONDecodeError:
            notes.clear()
            for _ in range(2):  # a comma may be the last one but for a comment; all lines stay where they are
                text = _LOOSE.sub(lambda found: found[0] if found[1] is None else "\n" * found[0].count("\n"), text)
            values = json.loads(text, object_pairs_hook=once)
            notes[f"{source.name} has comments or trailing commas, which not every trainer accepts in JSON."] = None
    except json.JSONDecodeError as error:
        raise _invalid("JSON", str(error), source, original) from None
    except (RecursionError, ValueError):
        raise StabtreeError("nests too deeply, or holds a number too long, to be read", where=source.path) from None
    return ConfigFile(path, values, _spans(original, ":"), original.split("\n"), tuple(notes))
