"""A configuration file as plain values: JSON, YAML or TOML."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial, reduce
from itertools import islice
from operator import getitem
from pathlib import Path  # noqa: TC003
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common import toml, yaml12
from stabtree.common.errors import StabtreeError
from stabtree.common.files import Place
from stabtree.common.text import clean, masked
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
# A key and its value on the same line, in JSON, YAML or TOML: a text in quotes, a number, or anything up to a mark.
_PAIR = (
    r"""(?<![\w-])(?P<key>["']?{key}["']?)\s*[:=][ \t]*(?P<value>"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|"""
    r"""[-+.\d][\w.+-]*(?=[ \t]*(?:[\n#,\]}}]|//|/\*|\Z))|"""
    r"""[^\s#,\[\]{{}}"'](?:[^\n#,\[\]{{}}]*[^\s#,\[\]{{}}])?)"""
)
MARK = "what stands here?"
MAX_TRIED = 20  # places of a key; no configuration has as many
MAX_SEARCHED = 1 << 16  # characters: each place that is tried takes a parse of all of them
KeyPath = tuple[str | int, ...]


class ConfigFile(Struct, frozen=True):
    """A configuration file.

    Attributes:
        path: where it lies.
        values: its top-level object.
        lines: the line of each value by its path of keys, if the parser of its format tells them.
        notes: what was wrong but readable.
        text: its text.
        parse: returns the top-level object of such a text.
    """

    path: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    text: str = ""
    parse: Callable[[str], Any] = json.loads

    @property
    def name(self) -> str:
        """The file's own name, safe to print."""
        return masked(clean(self.path.name))

    def setting(self, value: ConfigScalar, path: KeyPath, word: str = "value") -> Setting:
        """Return what stands at a path of keys as a setting; without a path it is the file as a whole."""
        if not path:
            return Setting(value, self.name)
        return Setting(value, self.where(path), dotted(path), self.place(path, word))

    def where(self, path: KeyPath) -> str:
        """Return where a value stands in words: `config.yaml:12, optimizer.lr`."""
        place = self.place(path)
        line = f":{place.line}" if place else ""
        return f"{self.name}{line}, {dotted(path)}"

    def place(self, path: KeyPath, word: str = "value") -> Place | None:
        """Return where the `value` or the `key` of a path stands; None where that is not known.

        Each value that stands behind such a key is replaced in turn, until the one at the path is another. So no format
        needs a parser of its own that counts columns.
        """
        whole = (*path[:1], "value", *path[1:])  # in W&B's `config.yaml`
        key = next(part for part in reversed(path) if isinstance(part, str))
        pair = re.compile(_PAIR.format(key=re.escape(key)))
        for found in islice(pair.finditer(self.text), MAX_TRIED if len(self.text) <= MAX_SEARCHED else 0):
            start, end = found.span("value")
            line = self.text.count("\n", 0, start) + 1
            if self.lines.get(path, line) == line:
                with suppress(ValueError, StabtreeError):
                    changed = self.parse(f'{self.text[:start]}"{MARK}"{self.text[end:]}')
                    if MARK in (value_at(changed, path), value_at(changed, whole)):
                        begin = self.text.rfind("\n", 0, start) + 1
                        text = self.text[begin:].partition("\n")[0]
                        return Place(line, text, found.start(word) - begin, found.end(word) - begin, str(self.path))
        if path not in self.lines:
            return None
        text = self.text.split("\n")[self.lines[path] - 1]
        return Place(self.lines[path], text, len(text) - len(text.lstrip()), len(text), str(self.path))


def value_at(values: Any, path: KeyPath) -> Any:
    """Return the value at a path of keys; None where there is none."""
    with suppress(KeyError, IndexError, TypeError):
        return reduce(getitem, path, values)
    return None


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
    most = MAX_JSON if is_json else MAX_BYTES
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
            file = ConfigFile(path, toml.parse(text), parse=toml.parse)
        except ValueError as error:
            raise _invalid("TOML", clean(error, 120), source, text) from None
    else:
        try:
            document = yaml12.parse(text, source.path)
        except StabtreeError as error:
            raise StabtreeError(error.problem, where=error.where, hint=HINT, places=error.places) from None
        notes = [f"{source.name}:{line}: {clean(told, 120)}: the last one counts." for line, told in document.mistakes]
        file = ConfigFile(
            path, document.value, document.lines, tuple(notes), parse=lambda text: yaml12.parse(text, "").value
        )
    values = file.values
    if not isinstance(values, Mapping) or not values:
        raise StabtreeError("holds no settings", where=source.path, hint=HINT)
    # In W&B's `config.yaml` each value stands as `{value: ...}`.
    wrapped = {key: inner["value"] for key, inner in values.items() if isinstance(inner, Mapping) and "value" in inner}
    if wrapped and len(wrapped) >= len(values) - 1:
        values = wrapped
    return replace(file, values=values, text=text, notes=(*lines.notes, *file.notes))


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


def _json(text: str, source: Source, path: Path) -> ConfigFile:
    """Read JSON; comments and commas at the end, which some write in it, are left out."""
    notes: list[str] = []
    try:
        try:
            values = json.loads(text, object_pairs_hook=partial(_once, notes, source.name))
        except json.JSONDecodeError:
            values = _loose(text)
            notes = [f"{source.name} has comments or trailing commas, which not every trainer accepts in JSON."]
    except json.JSONDecodeError as error:
        raise _invalid("JSON", str(error), source, text) from None
    except (RecursionError, ValueError):
        raise StabtreeError("nests too deeply, or holds a number too long, to be read", where=source.path) from None
    return ConfigFile(path, values, notes=tuple(dict.fromkeys(notes)), parse=_loose)


def _once(notes: list[str], name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of an object of JSON, with a note for each key that is given twice."""
    counts = Counter(key for key, _ in pairs)
    twice = (masked(clean(key, 40)) for key, count in counts.items() if count > 1)
    notes += (f"{name}: the key {key!r} is given twice: the last one counts." for key in twice)
    return dict(pairs)


def _loose(text: str) -> Any:
    """Return what JSON with comments and commas at the end holds; all words stay where they are."""
    for _ in range(2):  # a comma may be the last one but for a comment
        text = _LOOSE.sub(lambda found: found[0] if found[1] is None else re.sub(r"[^\n]", " ", found[0]), text)
    return json.loads(text)
