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
# A text in JSON, which stays as it is; or a comment, or a comma that nothing follows.
_LOOSE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|(//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]]))', re.DOTALL)
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
    is_json = suffix == ".json" or (suffix not in SUFFIXES and opened)
    lines, parts, size = source.lines(), list[str](), 0
    for block in lines.blocks():
        size += len(block)
        if size > (most := MAX_JSON if is_json else MAX_BYTES):
            raise StabtreeError(f"is larger than any configuration ({most >> 20} MiB)", where=source.path, hint=HINT)
        parts.append(block)
    text = "".join(parts)
    if is_json:
        file = _json(text, source, path)
    elif suffix == ".toml":
        try:
            file = ConfigFile(path, toml.parse(text))
        except ValueError as error:
            problem = f"is not valid TOML: {clean(error, 120)}"
            raise StabtreeError(problem, where=source.path, hint=HINT) from None
    else:
        try:
            document = yaml12.parse(text, source.path)
        except StabtreeError as error:
            raise StabtreeError(error.problem, where=error.where, hint=HINT) from None
        notes = [f"{source.name}:{line}: {clean(text, 120)}: the last one counts." for line, text in document.mistakes]
        file = ConfigFile(path, document.value, document.lines, tuple(notes))
    values = file.values
    if not isinstance(values, Mapping) or not values:
        raise StabtreeError("holds no settings", where=source.path, hint=HINT)
    # In W&B's `config.yaml` each value stands as `{value: ...}`.
    wrapped = {key: inner["value"] for key, inner in values.items() if isinstance(inner, Mapping) and "value" in inner}
    if wrapped and len(wrapped) >= len(values) - 1:
        values = wrapped
    return replace(file, values=values, notes=(*lines.notes, *file.notes))


def _json(text: str, source: Source, path: Path) -> ConfigFile:
    """Read JSON; comments and commas at the end, which some write in it, are left out."""
    notes: dict[str, None] = {}

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
        where = f"{source.path}:{error.lineno}"
        raise StabtreeError(f"is not valid JSON: {error.msg}", where=where, hint="correct that line") from None
    except (RecursionError, ValueError):
        raise StabtreeError("nests too deeply, or holds a number too long, to be read", where=source.path) from None
    return ConfigFile(path, values, {}, tuple(notes))
