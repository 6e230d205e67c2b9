"""One run of many in plain values: what a table, a page or another machine needs to know of it."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean, in_words
from stabtree.judging.verdict import ORDER, UNREAD
from stabtree.report import json as machine
from stabtree.report import plot
from stabtree.report.advice import do_now
from stabtree.report.words import badge, headline, main_finding, title
from stabtree.run import NAMING
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.judging.verdict import Outcome
    from stabtree.run import Run

STRETCHES = 16  # of a small line, each with its lowest and its highest value
MAX_PROBLEM, MAX_PATH = 90, 4096
FAR = 1e300  # beyond all settings
TRACKERS = ("wandb", "mlflow")  # formats in whose folders a run has an id, and its name in a file
DIVERGED = ("nan", "divergence", "slow-divergence", "spike-persistent", "fp16-collapse")
BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-'"
CELLS = 8
WIDE = 50.0  # times from the lowest to the highest: more than that is drawn by orders of magnitude


class Record(Struct, frozen=True):
    """What became of a run."""

    path: str  # what to type to diagnose it alone; with `run` where the path holds several
    run: str = ""  # its name within the path; empty where the path holds one
    label: str = ""  # its name as people gave it to a tracker, whose folders are named by ids
    verdict: str = UNREAD  # a severity, `unknown`, or `unread` for a log that can't be read
    badge: str = UNREAD  # the verdict that is shown, `ok` where what was found are notes that call for nothing
    partial: bool = False  # whether what could be judged of a run that was not judged as a whole is in order
    unended: bool = False  # whether the log stops before its planned end, and nothing says why
    leaf: str = ""  # the main finding; empty where there is none
    section: str = ""  # the section that it was found in
    diverged: bool = False  # whether it went off for good: a finding for which to go back to a checkpoint
    # The configuration, without what names the run; the rate may be the highest that was logged.
    settings: Mapping[str, float | str] = {}
    title: str = ""  # what was found, or why it can't be read
    onset_step: int | None = None  # the first step of the main finding
    unit: str = "step"  # what its steps count
    more: int = 0  # how many further findings there are
    rows: int = 0  # rows of its log
    last_step: int | None = None  # the last logged step
    restart_step: int | None = None  # the checkpoint to go back to
    first: str = ""  # what to do about it first, besides going back; of a run that can't be judged what to log
    notes: tuple[str, ...] = ()  # what loading it changed or ignored
    # The loss as a few values, the lowest and the highest of each stretch; None for a stretch without a finite value.
    spark: tuple[float | None, ...] = ()
    mark: int | None = None  # the index in `spark` at which the main finding begins
    files: tuple[str, ...] = ()  # the files that it was read from
    packed: bytes = b""  # its JSON, compressed; empty where it was not asked for
    fault: bool = False  # whether stabtree itself failed
    seconds: float = 0.0  # how long reading and judging took
    outdated: tuple[str, ...] = ()  # what became of findings that were accepted
    told: Any = None  # what services are told of it, as `tools.ci.services` has it; None where they are told nothing

    @property
    def name(self) -> str:
        """The path, and the run's name where the path holds several."""
        return f"{self.path} {self.run}".rstrip()

    @property
    def onset(self) -> str:
        """The first step of the main finding as it is shown; empty where there is none."""
        return "" if self.onset_step is None else f"{self.onset_step:,}"

    @property
    def found(self) -> str:
        """What was found, and how many further findings there are."""
        return self.title + f" +{self.more}" * (self.more > 0)

    @property
    def data(self) -> str:
        """The object of `diagnose --json` in one line; of a log that can't be read its error."""
        return zlib.decompress(self.packed).decode() if self.packed else ""


def record_of(outcome: Outcome, path: str, *, documents: bool = True) -> Record:
    """Return what became of one run of many.

    Args:
        outcome: the outcome, whose name is the path, with the run's name behind it where the path holds several.
        path: what was read.
        documents: whether its JSON is wanted, which takes longer than the rest.
    """
    found, name = outcome.found, clean(outcome.name.removeprefix(path).strip(), MAX_PATH)
    shown = clean(path, MAX_PATH)
    if isinstance(found, StabtreeError):
        packed = _packed({"source": outcome.name, "path": outcome.name, **machine.error(found)})
        problem = clean(found.problem, MAX_PROBLEM)
        return Record(shown, name, title=problem, files=(path,), packed=packed)
    main, told = main_finding(found), badge(found)
    packed = _packed({"source": outcome.name, **machine.to_dict(found)}) if documents else b""
    run = found.run
    line, mark = loss_line(run, main.onset_step if main else None)
    tracked = any(source.format.partition(",")[0] in TRACKERS for source in run.sources)
    leaves = [finding.leaf for finding in found.findings]
    record = Record(
        path=shown,
        run=name,
        label=clean(run.name, MAX_PATH) * (tracked and run.name not in outcome.name),
        verdict=str(found.verdict),
        badge=told,
        partial=found.partial,
        unended=found.unended is not None,
        title=headline(found) if told == Severity.OK else title(found),
        diverged=any(leaf.severity.is_alarm and leaf.restart and leaf.kind in DIVERGED for leaf in leaves),
        settings=_settings(run),
        unit=run.unit,
        rows=sum(source.rows for source in run.sources),
        last_step=run.last_step,
        notes=run.notes,
        spark=line,
        mark=mark,
        files=tuple(source.path for source in run.sources),
        packed=packed,
        outdated=found.acceptance_notes,
    )
    if main is None:
        names = found.log_next[0].names if found.log_next and not found.findings else ()
        return replace(record, first=f"Log {in_words(names)}") if names else record
    return replace(
        record,
        leaf=main.leaf.id,
        section=main.section,
        onset_step=main.onset_step,
        unit=main.unit,
        more=max(len(found.findings) - 1, 0),
        restart_step=main.restart and main.restart.checkpoint_step,
        # Going back has a step of its own.
        first=next((action.text for action in do_now(main) if not action.strong), ""),
    )


def _settings(run: Run) -> dict[str, float | str]:
    """Return the configuration as numbers that lie on an axis, and text; where it has no rate the highest logged."""
    rates = run.series["lr"].values if "lr" in run.series else np.zeros(0)
    rates = rates[np.isfinite(rates)]
    found: dict[str, float | str] = {}
    if len(rates):
        found["lr"] = float(rates.max())
    for key in run.config.keys() - NAMING:
        value = run.config[key].value
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < FAR
        found[key] = value if number else clean(value)  # type: ignore[assignment]
    return found


def worst_first(records: Iterable[Record]) -> list[Record]:
    """Return records with the worst verdict first; of one verdict the commonest finding first."""
    rows = list(records)
    count = Counter((row.badge, row.title) for row in rows)  # in the order in which they first come
    kinds = sorted(count, key=lambda key: (ORDER.index(key[0]), -count[key]))
    rank = {key: index for index, key in enumerate(kinds)}
    return sorted(rows, key=lambda row: rank[row.badge, row.title])


def _packed(document: dict[str, Any]) -> bytes:
    """Return compressed JSON in one line, in ASCII, since no terminal or pipe can garble that."""
    return zlib.compress(json.dumps(document, separators=(",", ":"), allow_nan=False).encode(), 1)


def loss_line(run: Run, onset: int | None = None) -> tuple[tuple[float | None, ...], int | None]:
    """Return the lowest and the highest loss of each stretch in their order, and the index of the onset."""
    series = run.get("loss")
    if series is None or not len(series.values):
        return (), None
    points: list[float | None] = []
    lasts = []
    stretches = min(len(series.values), STRETCHES)
    for steps, values in zip(*(np.array_split(a, stretches) for a in (series.steps, series.values)), strict=True):
        lasts.append(steps[-1])
        finite = values[np.isfinite(values)]
        ends = sorted((int(finite.argmin()), int(finite.argmax()))) if len(finite) else ()
        points += [float(finite[at]) for at in ends] or [None, None]
    mark = None if onset is None else 2 * int(np.searchsorted(lasts, onset))
    return tuple(points), mark


def levels(values: Sequence[float | None], count: int) -> list[int | None]:
    """Return values as whole levels from 0 to `count` - 1; None stays None."""
    finite = np.array([value for value in values if value is not None])
    if not len(finite):
        return [None] * len(values)
    low, high, top = float(finite.min()), float(finite.max()), count - 1
    heights = plot.levels(finite, low, high, log=low > 0 and high / low > WIDE)
    drawn = iter([top // 2 if low == high else int(height * top + 0.5) for height in heights.tolist()])
    return [value if value is None else next(drawn) for value in values]


def spark(values: Sequence[float | None], *, ascii: bool = False) -> str:  # noqa: A002 - as in `RenderOptions`
    """Return the line in `CELLS` characters, a cross where not all is finite."""
    signs, not_finite = (ASCII_BLOCKS, "x") if ascii else (BLOCKS, "×")
    drawn, text = levels(values, len(signs)), ""
    for cell in range(CELLS if drawn else 0):
        start = cell * len(drawn) // CELLS
        stretch = drawn[start : max(start + 1, (cell + 1) * len(drawn) // CELLS)]
        heights = [height for height in stretch if height is not None]
        text += signs[max(heights)] if len(heights) == len(stretch) else not_finite
    return text
