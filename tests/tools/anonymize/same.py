"""What stabtree reads of a file and says of it, but for names: what must be the same of a log without names."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from stabtree import diagnose
from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_runs
from stabtree.tools.anonymize.anonymize import anonymized

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import FileUse, Run

# Names in an error: what stands in quotes, or behind a colon.
_NAMED = re.compile(r"'[^']*'|\"[^\"]*\"|: .*")


def without_names(file: Path, folder: Path) -> Path:
    """The file without names, under its name in another folder."""
    folder.mkdir(parents=True)
    other = folder / file.name
    other.write_bytes(b"".join(anonymized(file).pieces))
    return other


def read(file: Path) -> list[Any]:
    """All that is read of a file but for names and labels."""
    return [_of(item.run) for item in _runs(file)]


def said(file: Path) -> list[Any]:
    """The diagnosis of each run in a file: verdict, path, findings with steps and causes, and what was not checked."""
    return [_of(run) if isinstance(run, StabtreeError) else _diagnosis(run) for run in (i.run for i in _runs(file))]


def _runs(file: Path) -> Any:
    try:
        return load_runs(str(file))
    except StabtreeError as error:
        return [type("Item", (), {"run": error})()]


def _of(run: Run | StabtreeError) -> Any:
    if isinstance(run, StabtreeError):
        return type(run).__name__, _NAMED.sub("", run.problem)
    series = {
        name: (one.steps.tolist(), None if one.labels else ["nan" if math.isnan(v) else v for v in one.values.tolist()])
        for name, one in run.series.items()
    }
    config = {key: "text" if isinstance(one.value, str) else one.value for key, one in run.config.items()}
    known = {key: one.value for key, one in run.config.items() if key in ("dtype", "optimizer", "lr_schedule", "lr")}
    sources = [(use.format, use.rows, use.skipped_count, _columns(use)) for use in run.sources]
    lines = [(line.line, line.at_end, line.source) for line in run.lines]
    more = run.saved, run.epoch_ends, run.gaps, run.resumes, len(run.notes)
    return series, config, known, sources, lines, more


def _columns(use: FileUse) -> list[str]:
    """The names of its columns, of a text log those that stand for something: words beside them may be names."""
    return [column.name for column in use.columns if column.metric or not use.format.startswith("text")]


def _diagnosis(run: Run) -> Any:
    found = diagnose(run)
    path = [(visit.question.id, visit.answer.verdict) for visit in found.path]
    findings = [
        (
            *(finding.leaf.id, finding.leaf.severity, finding.onset_step, finding.last_good_step, finding.restart),
            [(cause.cause.id, cause.state) for cause in finding.causes],
        )
        for finding in found.findings
    ]
    return found.verdict, path, findings, [(item.id, item.metrics) for item in found.missing]
