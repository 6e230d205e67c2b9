"""`manifest.json` and `manifest.jsonl`: what the run was, with its metrics inside or beside it.

A manifest is one JSON object. All of its keys are optional:

    {
      "run_name": "gpt-small-3",
      "dtype": "bf16",                                  fp32, fp16, bf16, fp8, or another usual spelling
      "optimizer": {"name": "adamw", "lr": 3e-4, "weight_decay": 0.1},
      "lr_schedule": {"name": "cosine", "warmup": 2000},
      "batch_size": 64, "max_steps": 100000, "grad_clip": 1.0, "accumulation_steps": 1, "seed": 1,
      "log_interval": 10, "eval_every": 500,
      "checkpoint_every": 1000,                         or "checkpoints": [1000, 2000]
      "n_classes": 10, "vocab_size": 50257,
      "metrics_file": "metrics.csv"
    }

The settings may also stand inside `config`, `args` or `hparams`, and under the names that common trainers
give them (`stabtree.loaders.config.KEYS`). The metrics are one of

- files in the manifest's folder or below: `metrics_file`, `metrics_files`, `metrics`, `log_file` or `files`,
  a name or a list of names, several for several ranks. Absolute paths, `..` and links that lead out of the
  folder are refused: a manifest may come from someone else;
- columns: `"series": {"step": [0, 10], "loss": [4.2, 3.9]}`;
- records: `"metrics": [{"step": 0, "loss": 4.2}]`, or under `history`, `log`, `log_history` or `rows`.

`manifest.jsonl` holds the same one object a line: lines without metrics are the manifest, merged in their
order, all others are records.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, stays_inside
from stabtree.loaders.config import read_config
from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.json import nested
from stabtree.loaders.json.columns import columns_table
from stabtree.loaders.json.rows import JsonRows
from stabtree.loaders.source import HEAD_BYTES, Sure
from stabtree.metrics.final_values import check_object
from stabtree.metrics.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.run import ConfigScalar

FILE_KEYS = ("metrics_file", "metrics_files", "metrics", "log_file", "log_files", "files")
RECORD_KEYS = ("metrics", "history", "log_history", "log", "rows", "records")
# One for each rank of a large run.
MAX_FILES = 1024
NAMES = ("manifest.json", "manifest.jsonl")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that was read.

    Attributes:
        config: its settings, canonical.
        files: the metrics files that it names, checked to lie in its folder.
        content: the whole object.
        notes: settings of the wrong kind, and files named twice.
    """

    config: Mapping[str, ConfigScalar]
    files: tuple[Path, ...]
    content: Mapping[str, Any]
    notes: tuple[str, ...]


def sniff(source: Source, names: Names) -> Sure:
    """How surely this is a manifest: one JSON object that spans the file."""
    head = source.head.lstrip()
    if source.binary or not head.startswith("{"):
        return Sure.NO
    if source.name.lower() == "manifest.json":
        return Sure.SURELY
    lines = [line for line in jsonl.first_lines(source, 50) if line.strip()]
    if _whole(lines[0]) is not None:
        # The first line is an object by itself: JSON lines, unless it is alone and holds its metrics.
        keys = _whole(lines[0]) or {}
        if len(lines) > 1:
            return Sure.NO
        own = any(isinstance(keys.get(key), list | dict | str) for key in ("series", *FILE_KEYS, *RECORD_KEYS))
        return Sure.LIKELY if own or nested.holds(keys, names) else Sure.NO
    # An object over several lines, or one too long for the head.
    whole = len(source.data) >= HEAD_BYTES or _whole(head) is not None
    return Sure.MAYBE if whole and re.match(r'\{\s*"', head) else Sure.NO


def _whole(line: str) -> dict[str, Any] | None:
    try:
        value = jsonl.parse(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def parse(source: Source) -> Manifest:
    """Read the manifest, not the metrics that it names.

    Raises:
        StabtreeError: where it is broken, or names files outside of its folder.
    """
    text = "\n".join(source.lines())
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise StabtreeError(
            f"is not valid JSON: {error.msg} at line {error.lineno} column {error.colno}",
            where=source.path,
            hint="correct it, or name the metrics file itself",
        ) from None
    except (ValueError, RecursionError):
        raise StabtreeError(
            "is JSON that can't be read", where=source.path, hint="name the metrics file itself"
        ) from None
    if not isinstance(content, dict):
        raise StabtreeError("holds no JSON object", where=source.path, hint="name the metrics file itself")
    config, notes = read_config(content)
    files, again = _files(source, content)
    if files and (inline := _inline(content)):
        raise StabtreeError(
            f"holds metrics of its own under {inline!r}, and names files that hold metrics",
            where=source.path,
            hint="take one of them out of it, or name the metrics file itself",
        )
    return Manifest(config, files, content, (*notes, *again, *_beside(content), *jsonl.repeated(text, 1)))


def _beside(content: Mapping[str, Any]) -> Iterator[str]:
    """A word on what may hold metrics, too, beside what is read: of several keys the first one counts."""
    named = [key for key in FILE_KEYS if _names(content.get(key))]
    held = [key for key in dict.fromkeys(("series", *RECORD_KEYS)) if _held(content.get(key))]
    left = [*named[1:], *(held if named else held[1:])]
    if left:
        read_ = (named or held)[0]
        yield f"The manifest's metrics are read from its {read_!r}; left unread: {', '.join(map(repr, left))}."


def _names(value: Any) -> list[str]:
    """The files that a value of a manifest names; none where it is something else."""
    names = [value] if isinstance(value, str) else value
    return names if isinstance(names, list) and names and all(isinstance(name, str) for name in names) else []


def _held(value: Any) -> bool:
    """Whether a value of a manifest is columns, or records."""
    cells = value.values() if isinstance(value, dict) else ()
    return any(isinstance(cell, list) for cell in cells) or (
        isinstance(value, list) and any(isinstance(row, dict) for row in value)
    )


def _inline(content: Mapping[str, Any]) -> str:
    """The key under which a manifest holds metrics itself; nothing where it does not."""
    for key in ("series", *RECORD_KEYS):
        value = content.get(key)
        held = [name for name, cells in value.items() if isinstance(cells, list)] if isinstance(value, dict) else []
        if isinstance(value, list):
            held = [name for row in value if isinstance(row, dict) for name in row]
        if any(Names().metric(str(name)) for name in held):
            return key
    return ""


def _files(source: Source, content: Mapping[str, Any]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The metrics files that a manifest names, each once, and a note where it names one again.

    Raises:
        StabtreeError: where it names one outside of its folder, or more than a run may have.
    """
    for key in FILE_KEYS:
        if names := _names(content.get(key)):
            once = dict.fromkeys(names)
            if len(once) > MAX_FILES:
                raise StabtreeError(
                    f"names {len(once):,} files, more than the {MAX_FILES:,} that a run may have",
                    where=source.path,
                    hint=f"name the files of a few ranks, such as {clean(names[0], 60)}",
                )
            files: dict[Path, Path] = {}
            for name in once:
                file = inside(source, name)
                files.setdefault(file.resolve(), file)
            again = len(names) - len(files)
            return tuple(files.values()), (
                f"Files that the manifest names again: {again:,}, read once.",
            ) if again else ()
    return (), ()


def inside(source: Source, name: str) -> Path:
    """The file that a manifest names, which must lie in the manifest's folder.

    Raises:
        StabtreeError: where it does not, or is not there.
    """
    folder = (source.file or Path("manifest.json")).parent
    shown = clean(name, 80)
    hint = "give a name relative to the manifest's folder, or name the metrics file itself"
    if not stays_inside(name):
        raise StabtreeError(f"names the file {shown!r} outside of its folder", where=source.path, hint=hint)
    try:
        file = folder / name
        if not file.resolve().is_relative_to(folder.resolve()):
            raise StabtreeError(f"names {shown!r}, a link that leads out of its folder", where=source.path, hint=hint)
        if not file.is_file():
            raise StabtreeError(f"names {shown!r}, which is not there", where=source.path, hint=hint)
    except (OSError, ValueError):
        raise StabtreeError(f"names {shown!r}, which is not a file name", where=source.path, hint=hint) from None
    return file


def read(source: Source, names: Names) -> Table | tuple[Table, ...]:
    """The metrics that the manifest itself holds.

    Raises:
        StabtreeError: where it holds none.
    """
    manifest = parse(source)
    series = manifest.content.get("series") or manifest.content.get("metrics")
    if isinstance(series, dict):
        lists = {str(name): cells for name, cells in series.items() if isinstance(cells, list)}
        table = columns_table(source, "manifest with series", lists, names, manifest.notes)
        return replace(table, config=manifest.config)
    for key in RECORD_KEYS:
        records = manifest.content.get(key)
        if isinstance(records, list) and any(isinstance(row, dict) for row in records):
            return _records(source, key, records, manifest, names)
    if nested.holds(manifest.content, names):
        found = nested.read(manifest.content, source, names)
        return tuple(
            replace(table, config={**table.config, **manifest.config}, notes=(*manifest.notes, *table.notes))
            for table in found
        )
    check_object(manifest.content, source.path, names)
    raise StabtreeError(
        "holds no metrics and names no file that does",
        where=source.path,
        hint='add "metrics_file": "metrics.csv", or name the metrics file itself',
    )


def _records(source: Source, key: str, records: list[Any], manifest: Manifest, names: Names) -> Table:
    rows = JsonRows(names, source.path)
    dropped = rows.add_all(records)
    note = (f"Entries of {key} that are not objects: {dropped}, skipped.",) if dropped else ()
    table = rows.table(source, "manifest with records", (*manifest.notes, *rows.notes, *note))
    return replace(table, config={**table.config, **manifest.config})
