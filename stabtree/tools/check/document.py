"""A configuration file as plain values: JSON, YAML or TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common import toml, yaml12
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked
from stabtree.loaders.source import NAME_METRICS, open_source

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.source import Source

SUFFIXES = (".json", ".yaml", ".yml", ".toml")
# The whole configuration of a large model fits many times; the state of a trainer, which is JSON, holds its log.
MAX_BYTES = 1 << 20
MAX_JSON = 32 << 20
HINT = "name the configuration of a run: JSON, YAML, TOML, or its folder"
# A text in JSON, which stays as it is, or a comment; and one or a comma that nothing follows.
_TEXT = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
_COMMENT = re.compile(_TEXT + r"|(//[^\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL)
_LAST_COMMA = re.compile(_TEXT + r"|(,)(?=\s*[}\]])", re.DOTALL)
_PROGRAM = re.compile(r".*\.(?:py|(?:ba|z)?sh|slurm|sbatch|job|pbs)$", re.IGNORECASE)
KeyPath = tuple[str | int, ...]


class ConfigFile(Struct, frozen=True):
    """A configuration file.

    Attributes:
        path: where it lies.
        values: its top-level object.
        lines: the line of each value by its path of keys, if the format has lines.
        notes: what was wrong but readable.
    """

    path: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's own name, safe to print."""
        return masked(clean(self.path.name))

    def place(self, path: KeyPath) -> str:
        """Return where a value stands: `config.yaml:12, optimizer.lr`."""
        line = self.lines.get(path)
        return f"{self.name}{f':{line}' if line else ''}, {dotted(path)}"


def dotted(path: KeyPath) -> str:
    """Return a path of keys as one would type it, safe to print."""
    return masked(clean(".".join(map(str, path)), 80))


def read_document(path: Path) -> ConfigFile:
    """Read one configuration file, whatever its name.

    Raises:
        StabtreeError: if it can't be read, or holds no settings.
    """
    try:
        source = open_source(path)
    except StabtreeError as error:
        hint = HINT if error.hint == NAME_METRICS or "stabtree inspect" in error.hint else error.hint
        raise StabtreeError(error.problem, where=error.where, hint=hint) from None
    if source.binary or _PROGRAM.fullmatch(path.name):
        problem = f"is {source.binary or 'a program'}, not a configuration"
        raise StabtreeError(problem, where=source.path, hint=HINT)
    suffix, opened = path.suffix.lower(), source.head.lstrip()[:1] == "{"
    if suffix == ".json" or (suffix not in SUFFIXES and opened):
        read, most = _json, MAX_JSON
    else:
        read, most = (_toml if suffix == ".toml" else _yaml), MAX_BYTES
    text, notes = _text(source, most)
    file = read(text, source, path)
    values = file.values
    if not isinstance(values, Mapping) or not values:
        raise StabtreeError("holds no settings", where=source.path, hint=HINT)
    # In W&B's `config.yaml` each value stands as `{value: ...}`.
    wrapped = {key: inner["value"] for key, inner in values.items() if isinstance(inner, Mapping) and "value" in inner}
    if wrapped and len(wrapped) >= len(values) - 1:
        values = wrapped
    return replace(file, values=values, notes=(*notes, *file.notes))


def _text(source: Source, most: int) -> tuple[str, list[str]]:
    """Return the text of a source, and what had to be replaced in it."""
    lines = source.lines()
    parts: list[str] = []
    size = 0
    for block in lines.blocks():
        size += len(block)
        if size > most:
            raise StabtreeError(f"is larger than any configuration ({most >> 20} MiB)", where=source.path, hint=HINT)
        parts.append(block)
    return "".join(parts), lines.notes


def _json(text: str, source: Source, path: Path) -> ConfigFile:
    """Read JSON; comments and commas at the end, which some write in it, are left out."""
    twice: dict[str, None] = {}
    notes = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: set[str] = set()
        twice.update((key, None) for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return dict(pairs)

    try:
        try:
            values = json.loads(text, object_pairs_hook=once)
        except json.JSONDecodeError:
            twice.clear()
            # All lines stay where they are.
            bare = _COMMENT.sub(lambda found: "\n" * found[0].count("\n") if found[1] else found[0], text)
            bare = _LAST_COMMA.sub(lambda found: "" if found[1] else found[0], bare)
            values = json.loads(bare, object_pairs_hook=once)
            notes = [f"{source.name} has comments or trailing commas, which not every trainer accepts in JSON."]
    except json.JSONDecodeError as error:
        where = f"{source.path}:{error.lineno}"
        raise StabtreeError(f"is not valid JSON: {error.msg}", where=where, hint="correct that line") from None
    except (RecursionError, ValueError):
        raise StabtreeError("nests too deeply, or holds a number too long, to be read", where=source.path) from None
    repeated = [
        f"{source.name}: the key {masked(clean(key, 40))!r} is given twice: the last one counts." for key in twice
    ]
    return ConfigFile(path, values, {}, (*repeated, *notes))


def _yaml(text: str, source: Source, path: Path) -> ConfigFile:
    try:
        document = yaml12.parse(text, source.path)
    except StabtreeError as error:
        raise StabtreeError(error.problem, where=error.where, hint=HINT) from None
    notes = tuple(f"{source.name}:{line}: {clean(text, 120)}: the last one counts." for line, text in document.mistakes)
    return ConfigFile(path, document.value, document.lines, notes)


def _toml(text: str, source: Source, path: Path) -> ConfigFile:
    try:
        return ConfigFile(path, toml.parse(text))
    except ValueError as error:
        raise StabtreeError(f"is not valid TOML: {clean(error, 120)}", where=source.path, hint=HINT) from None
