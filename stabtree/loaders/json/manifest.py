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

The settings may also be inside `config`, `args` or `hparams`, and under the names that common trainers
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
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, stays_inside
from stabtree.loaders.config import read_config
from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.json.document import columns_table, holds_nested, read_nested, records, records_table
from stabtree.loaders.json.rows import flatten
from stabtree.loaders.source import HEAD_BYTES, Sure
from stabtree.loaders.table import Table
from stabtree.metrics.names import NO_COURSE, Names, check_object, nonfinite_losses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.loaders.source import Source
    from stabtree.run import ConfigScalar

FILE_KEYS = ("metrics_file", "metrics_files", "metrics", "log_file", "log_files", "files")
RECORD_KEYS = ("metrics", "history", "log_history", "log", "rows", "records")
# One for each rank of a large run.
MAX_FILES = 1024
NAMES = ("manifest.json", "manifest.jsonl")


class Manifest(Struct, frozen=True):
    """A manifest that was read: canonical settings, metrics files checked to be in its folder, the whole object."""

    config: Mapping[str, ConfigScalar]
    files: tuple[Path, ...]
    content: Mapping[str, Any]
    notes: tuple[str, ...]


def sniff(source: Source, names: Names) -> Sure:
    """Return how surely this is a manifest: one JSON object that spans the file."""
    head = source.head.lstrip()
    if source.binary or not head.startswith("{"):
        return Sure.NO
    if source.name.lower() == NAMES[0]:
        return Sure.SURELY
    lines = [line for line in jsonl.first_lines(source, 50) if line.strip()]
    content = jsonl.parse_object(lines[0])
    if content is not None:
        # The first line is an object by itself: JSON lines, unless it is alone and holds its metrics.
        own = any(isinstance(content.get(key), list | dict | str) for key in ("series", *FILE_KEYS, *RECORD_KEYS))
        return Sure.LIKELY.when(len(lines) == 1 and (own or holds_nested(content, names)))
    # An object over several lines, or one too long for the head.
    if re.match(r'\{\s*"', head) and (len(source.data) >= HEAD_BYTES or jsonl.parse_object(head) is not None):
        return Sure.MAYBE
    return Sure.NO


def holds_metrics(manifest: Manifest) -> bool:
    """Return whether a manifest holds rows of metrics itself."""
    return bool(_inline(manifest.content)) or holds_nested(manifest.content, Names())


def parse(source: Source) -> Manifest:
    """Read the manifest, not the metrics that it names.

    Raises:
        StabtreeError: if it is broken, or names files outside of its folder.
    """
    problem, hint = "is JSON that can't be read", "name the metrics file itself"
    content = None
    try:
        content = json.loads("\n".join(source.lines()))
        problem = "holds no JSON object"
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {error.msg} at line {error.lineno} column {error.colno}"
        hint = f"correct it, or {hint}"
    except (ValueError, RecursionError):
        pass
    if not isinstance(content, dict):
        raise StabtreeError(problem, where=source.path, hint=hint)
    config, notes = read_config(content)
    keys = [key for key in FILE_KEYS if _file_names(content.get(key))]
    names = _file_names(content[keys[0]]) if keys else []
    if len(set(names)) > MAX_FILES:
        problem = f"names {len(set(names)):,} files, more than the {MAX_FILES:,} that a run may have"
        hint = f"name the files of a few ranks, such as {clean(names[0], 60)}"
        raise StabtreeError(problem, where=source.path, hint=hint)
    files: dict[Path, Path] = {}
    for name in dict.fromkeys(names):
        file = _inside(source, name)
        files.setdefault(file.resolve(), file)
    if files and (inline := _inline(content)):
        problem = f"holds metrics of its own under {inline!r}, and names files that hold metrics"
        hint = "take one of them out of it, or name the metrics file itself"
        raise StabtreeError(problem, where=source.path, hint=hint)
    keys += [key for key in ("series", *RECORD_KEYS) if any(_column_names(content.get(key)))]
    if len(keys) > 1:  # of several that may hold metrics the first one counts
        unread = ", ".join(map(repr, keys[1:]))
        notes.append(f"The manifest's metrics are read from its {keys[0]!r}; left unread: {unread}.")
    return Manifest(config, tuple(files.values()), content, tuple(notes))


def _file_names(value: Any) -> list[str]:
    """Return the files that a value of a manifest names; none if it is something else."""
    names = [value] if isinstance(value, str) else value
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def _inline(content: Mapping[str, Any]) -> str:
    """Return the key under which a manifest holds metrics itself; nothing if it holds none."""
    known = Names()
    keys = ("series", *RECORD_KEYS)
    return next((key for key in keys if any(known.metric(str(n)) for n in _column_names(content.get(key)))), "")


def _column_names(value: Any) -> Iterable[Any]:
    """Return the names in columns, or in records; none if a value is something else."""
    if isinstance(value, dict):
        return [name for name, cells in value.items() if isinstance(cells, list)]
    return chain.from_iterable(records(value))


def _inside(source: Source, name: str) -> Path:
    """Return the file that a manifest names, which must exist in the manifest's folder."""
    folder = (source.file or Path(NAMES[0])).parent
    shown = clean(name, 80)
    problem = ""
    file = folder / name
    try:
        if not stays_inside(name):
            problem = f"names the file {shown!r} outside of its folder"
        elif not file.resolve().is_relative_to(folder.resolve()):
            problem = f"names {shown!r}, a link that leads out of its folder"
        elif not file.is_file():
            problem = f"names {shown!r}, which is not there"
    except (OSError, ValueError):
        problem = f"names {shown!r}, which is not a file name"
    if problem:
        hint = "give a name relative to the manifest's folder, or name the metrics file itself"
        raise StabtreeError(problem, where=source.path, hint=hint)
    return file


def read(source: Source, names: Names) -> tuple[Table, ...]:
    """Read the metrics that the manifest itself holds.

    Raises:
        StabtreeError: if it holds none.
    """
    manifest = parse(source)
    content = manifest.content
    series = content.get("series") or content.get("metrics")
    key = next((key for key in RECORD_KEYS if records(content.get(key))), "")
    if isinstance(series, dict):
        lists = {str(name): cells for name, cells in series.items() if isinstance(cells, list)}
        tables: tuple[Table, ...] = (columns_table(source, "manifest with series", lists, names, ()),)
    elif key:
        tables = (records_table(source, "manifest with records", content[key], names, f"Entries of {key}"),)
    elif holds_nested(content, names):
        tables = read_nested(content, source, names)
    elif finals := nonfinite_losses(dict(flatten(content))):
        return (Table(source.path, source.describe("final values"), 0, {}, notes=(NO_COURSE,), lines=finals),)
    else:
        check_object(content, source.path, names)
        hint = 'add "metrics_file": "metrics.csv", or name the metrics file itself'
        raise StabtreeError("holds no metrics and names no file that does", where=source.path, hint=hint)
    return tuple(
        replace(table, config={**table.config, **manifest.config}, notes=(*manifest.notes, *table.notes))
        for table in tables
    )
