"""`trainer_state.json` of the Hugging Face trainer, and the folder that it writes its checkpoints to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import is_file
from stabtree.loaders.json.document import objects, records, records_table, text_of
from stabtree.loaders.json.lines import parse_fast
from stabtree.loaders.source import Sure, open_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

NAME = "trainer_state.json"
MAX_READ = 4  # states that are read to find the newest that can be; nearly always it is the first
_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_CHECKPOINT = re.compile(r"checkpoint-(\d{1,15})")


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a trainer's state."""
    if source.binary or not source.head.lstrip().startswith("{"):
        return Sure.NO
    return Sure.SURELY if _HISTORY.search(source.head) and '"global_step"' in source.head else Sure.NO


def read(source: Source, names: Names) -> Table:
    """Read the rows of `log_history` that hold points of the run.

    Raises:
        StabtreeError: if there are none.
    """
    notes: list[str] = []
    state = _state(source, notes)
    entries = records(state.get("log_history"))
    points = [entry for entry in entries if not is_summary(entry)]
    if not points:
        hint = "name a later checkpoint's trainer_state.json, or the log of the trainer"
        raise StabtreeError("holds no rows in its log_history", where=source.path, hint=hint)
    table = records_table(source, "trainer_state", points, names)
    if len(points) < len(entries):
        notes.append("The trainer's summary of the run was left out: its train_loss is a mean over all steps.")
    config, wrong = read_config({key: value for key, value in state.items() if key != "log_history"})
    return replace(table, config={**table.config, **config}, notes=(*notes, *table.notes, *wrong))


def _state(source: Source, notes: list[str]) -> dict[str, Any]:
    """Return the state; of one that was cut while it was written, the rows before the cut."""
    text = text_of(source, notes)
    try:
        state = parse_fast(text)
    except ValueError as error:
        start = _HISTORY.search(text)
        entries = objects(text, start.end()) if start else []
        if not entries:
            raise StabtreeError(clean(error, 120), where=source.path, hint="name an earlier checkpoint") from None
        notes.append(f"The file {clean(error, 120)}: the {len(entries):,} complete rows before that were read.")
        return {"log_history": entries}
    return state if isinstance(state, dict) else {}


def is_summary(entry: Mapping[str, Any]) -> bool:
    """Return whether this is the row that the trainer writes when it is done."""
    return "loss" not in entry and ("train_runtime" in entry or ("train_loss" in entry and "total_flos" in entry))


def newest_in(path: Path, names: Names) -> tuple[Table, tuple[Path, ...]] | None:
    """Return the newest state in an output folder or its checkpoints, with the files that it holds all rows of.

    Each state holds the history of all before, unless the folder was used for another run in between. None where no
    state can be read.
    """
    states = [file for file in (path / NAME, *(file for _, file in checkpoints(path))) if is_file(file)]
    tables: list[tuple[float, Path, Table]] = []
    broken: list[Path] = []
    notes: list[str] = []
    for file in states[:MAX_READ]:
        try:
            table = read(open_source(file), names)
        except StabtreeError as error:
            broken.append(file)
            notes.append(f"{clean(file.relative_to(path))} was not read: {clean(error.problem, 120)}.")
            continue
        steps = table.columns.get("step")
        tables.append((float(steps.values.max()) if steps and len(steps.values) else table.rows, file, table))
    if not tables:
        return None
    _, newest, table = max(tables, key=lambda item: item[0])
    whole = _history(newest) if len(states) > 1 else []
    covered = [newest, *broken]
    for file in states:
        if file not in covered and (part := _history(file)) and part == whole[: len(part)]:
            covered.append(file)
    if len(covered) > 1:
        notes.append(f"Read {clean(table.path)}, the newest of {len(covered)} states in the folder.")
    return replace(table, notes=(*notes, *table.notes)), tuple(covered)


def _history(file: Path) -> list[str]:
    """Return the points of a state as texts, in which NaN is like NaN; none where it can't be read."""
    try:
        entries = records(_state(open_source(file), []).get("log_history"))
    except StabtreeError:
        return []
    return [str(entry) for entry in entries if not is_summary(entry)]


def checkpoints(path: Path) -> list[tuple[int, Path]]:
    """Return the steps of the checkpoints in an output folder with their states, the highest step first."""
    try:
        matches = [(_CHECKPOINT.fullmatch(entry.name), entry) for entry in path.iterdir()]
    except OSError:
        return []
    return sorted(((int(match[1]), entry / NAME) for match, entry in matches if match), reverse=True)
