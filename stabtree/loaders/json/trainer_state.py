"""`trainer_state.json` of the Hugging Face trainer, and the folder that it writes its checkpoints to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import is_file
from stabtree.loaders.json.document import parse_document, records, records_table
from stabtree.loaders.source import Sure, open_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

NAME = "trainer_state.json"
_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_CHECKPOINT = re.compile(r"checkpoint-(\d{1,15})")


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a trainer's state."""
    if source.binary or not source.head.lstrip().startswith("{"):
        return Sure.NO
    return Sure.SURELY.when('"global_step"' in source.head and _HISTORY.search(source.head))


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
    state = parse_document(source, notes)
    return state if isinstance(state, dict) else {"log_history": state}


def is_summary(entry: Mapping[str, Any]) -> bool:
    """Return whether this is the row that the trainer writes when it is done."""
    return "loss" not in entry and ("train_runtime" in entry or ("train_loss" in entry and "total_flos" in entry))


def newest_in(path: Path, names: Names) -> tuple[Table, tuple[Path, ...]] | None:
    """Return the newest state in an output folder or its checkpoints, with the files that it holds all rows of.

    Each state holds the history of all before, unless the folder was used for another run in between. None where no
    state can be read.
    """
    states = [file for file in (path / NAME, *(file for _, file in checkpoints(path))) if is_file(file)]
    histories: dict[Path, list[dict[str, Any]]] = {}
    notes: list[str] = []
    for file in states:
        try:
            entries = records(_state(open_source(file), []).get("log_history"))
        except StabtreeError as error:
            notes.append(f"{clean(file.relative_to(path))} was not read: {clean(error.problem, 120)}.")
            continue
        histories[file] = [entry for entry in entries if not is_summary(entry)]
    newest = max(histories, key=lambda file: _last_step(histories[file]), default=None)
    if newest is None or not histories[newest]:
        return None
    table = read(open_source(newest), names)
    whole = list(map(str, histories[newest]))  # as texts, in which NaN is like NaN
    covered = [file for file in states if [*map(str, histories.get(file, []))] == whole[: len(histories.get(file, []))]]
    if len(covered) > 1:
        notes.append(f"Read {clean(table.path)}, the newest of {len(covered)} states in the folder.")
    return replace(table, notes=(*notes, *table.notes)), tuple(covered)


def _last_step(points: list[dict[str, Any]]) -> float:
    steps = [point["step"] for point in points if isinstance(point.get("step"), int | float)]
    return max(steps, default=len(points))


def checkpoints(path: Path) -> list[tuple[int, Path]]:
    """Return the steps of the checkpoints in an output folder with their states, the highest step first."""
    try:
        matches = [(_CHECKPOINT.fullmatch(entry.name), entry) for entry in path.iterdir()]
    except OSError:
        return []
    return sorted(((int(match[1]), entry / NAME) for match, entry in matches if match), reverse=True)
