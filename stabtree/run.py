"""A run as the measures see it: series on their own steps, the config, and what loading changed.

Everything is frozen and the arrays are read-only: nothing downstream can alter what was read.
"""

from __future__ import annotations

import math
from operator import methodcaller
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.files import ColumnUse, FileUse, LogLine, Place
from stabtree.common.passes import rows_before
from stabtree.common.stats import interval
from stabtree.metrics.role import Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from stabtree.common.files import Input
    from stabtree.common.lazy import Floats, Ints

__all__ = ["ColumnUse", "FileUse", "Gap", "LogLine", "Place", "Resume", "Run", "Series", "Setting"]

# The key of the record that a Recorder begins a run with, beside `config`; other readers ignore it.
RUN_HEADER = "recorder_run"
CONFIG = "config"
PLANNED = "planned_steps"
OTHERS = ("lines", "rerun", PLANNED, CONFIG)  # what a section may need besides metrics
PRECISIONS = ("fp32", "fp16", "bf16", "fp8")  # what a run may have been trained in
REDUCED = ("fp16", "bf16", "fp8")  # those that a trainer's flag of the same name turns on
MISSED_ROWS = 10  # no limit: a log that begins so many of its intervals after step 0 lacks its beginning
UNSCALED = ("fp32", "bf16", "fp8")  # those that need no loss scale
WIDE = ("fp32", "bf16")  # those that hold numbers up to 3e38
ROW_NUMBER = "row number"  # the value of `steps_from` if no column holds the steps
NAMING = frozenset({"name", "checkpoints", "rank"})  # settings that name a run and don't affect its training
LOGGING = frozenset(  # settings that don't change what is trained
    (
        *("log_interval", "checkpoint_every", "save_strategy", "save_total_limit", "always_save_checkpoint"),
        *("seed", "overlap_comm"),
    )
)
ConfigScalar = str | int | float | bool | tuple[int, ...]


class Series(Struct, frozen=True, eq=False, weakref=True):
    """One metric over the steps at which it was logged. Compared by identity: arrays have no single equality.

    Attributes:
        metric: canonical name, `grad_norm` or `weight_norm/<group>`.
        steps: int64 (n,), strictly increasing optimizer steps.
        values: float64 (n,); a logged NaN or inf is a value, what was not logged is not there.
        origin: the column it was read from.
        labels: the text that a value stands for, of values that do.
    """

    metric: str
    steps: Ints
    values: Floats
    origin: str = ""
    labels: Mapping[float, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        where = f", steps {self.steps[0]:,} to {self.steps[-1]:,}" if len(self.steps) else ""
        return f"Series({self.metric!r}, {len(self.steps):,} values{where})"

    def before(self, step: int) -> Series:
        """Return its rows before a step."""
        end = rows_before(self.steps, step)
        return replace(self, steps=self.steps[:end], values=self.values[:end])

    def __len__(self) -> int:
        return len(self.steps)


class Gap(Struct, frozen=True):
    """Steps in which a metric that was logged before is missing while other series go on.

    Attributes:
        metric: the metric that is missing.
        first_step: the first step of the run at which it is missing.
        last_step: the last such step.
        rows: how many rows in between carry something else.
        at_end: whether it never comes back.
    """

    metric: str
    first_step: int
    last_step: int
    rows: int
    at_end: bool


class Resume(Struct, frozen=True):
    """A point where the log went back: a resume from a checkpoint. The later rows were kept.

    Attributes:
        from_step: the last step before the log went back.
        to_step: the step that it went back to.
        replaced_rows: rows of the abandoned stretch that the later ones replace.
        broken_rows: those of them that hold a value which is not finite.
    """

    from_step: int
    to_step: int
    replaced_rows: int
    broken_rows: int = 0


class Setting(Struct, frozen=True):
    """One value of the run's configuration.

    Attributes:
        value: the value.
        source: where it came from (`manifest.json`, `--dtype`, ...).
        spelled: its key as the file of a configuration spells it; empty where that is not known.
        place: where it stands in that file.
    """

    value: ConfigScalar
    source: str
    spelled: str = ""
    place: Place | None = None


class Run(Struct, frozen=True, eq=False, weakref=True):
    """A training run.

    Attributes:
        name: the run's name, from its manifest or its file.
        series: by canonical metric name; for several ranks the mean over the ranks of each step, so that
            a value that is not finite on one rank is not finite here.
        config: canonical keys (`dtype`, `optimizer`, `lr_schedule`, `checkpoint_every`, `n_classes`, ...).
        gaps: where a series stops while others go on: often a NaN that was written as an empty cell.
        ranks: the series of each rank, empty for a run of one rank.
        resumes: where the log went back.
        sources: how each file was read.
        notes: all that loading changed, assumed or ignored, in words.
        lines: lines of a text log that may report errors, in their order; a selection if there are many.
        rerun: another run of the same training, to compare with.
        checkpoints: the checkpoints beside the log or in the folder that the user named: their paths by step.
        epoch_ends: the epochs that end in a log of steps, by the last step that was logged in each.
        saved: the steps at which a text log says that a checkpoint was saved, with the number of the line.
        written: series as they were logged, if loading took their values for others (a loss of 0 for a NaN).
        places: the lines of its log in which steps were logged, by step, of those that somebody asked for.
        goes_on: whether it is a stretch of a log that has later rows.
        inputs: the files of `sources` with their hashes; empty where nobody asked for them.
        others: the series that no metric names, by the name of their column; no question sees them.
        loss_ranking: the columns that could be the training loss, the one that was taken first.
    """

    name: str
    series: Mapping[str, Series]
    config: Mapping[str, Setting] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    ranks: Mapping[str, Mapping[str, Series]] = field(default_factory=dict)
    resumes: tuple[Resume, ...] = ()
    sources: tuple[FileUse, ...] = ()
    notes: tuple[str, ...] = ()
    lines: tuple[LogLine, ...] = ()
    rerun: Run | None = None
    checkpoints: Mapping[int, str] = field(default_factory=dict)
    epoch_ends: Mapping[int, int] = field(default_factory=dict)
    saved: Mapping[int, int] = field(default_factory=dict)
    written: Mapping[str, Series] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    places: Mapping[int, int] = field(default_factory=dict)
    others: Mapping[str, Series] = field(default_factory=dict)
    goes_on: bool = False
    loss_ranking: Ranking = field(default_factory=Ranking)

    def has(self, name: str) -> bool:
        """Return whether a metric was logged, whole or by group, or whether there are any `lines` or a `rerun`.

        `planned_steps` means that it is known when the run was to end; `config` a run that has not begun: there is
        nothing but its configuration.
        """
        if name == PLANNED:
            return math.isfinite(self.planned_step)
        if name == CONFIG:
            return bool(self.config) and not self.series
        if name in OTHERS:
            return bool(getattr(self, name))
        return name in self.series or any(map(methodcaller("startswith", f"{name}/"), self.series))

    def get(self, metric: str) -> Series | None:
        """Return the series of a metric, None if it was not logged."""
        return self.series.get(metric)

    def find(self, name: str) -> Series | None:
        """Return the series of a metric or of a column that no metric names, None if neither was logged."""
        return self.series.get(name) or self.others.get(name)

    def group(self, metric: str) -> dict[str, Series]:
        """Return the series of a grouped metric by group, in the order in which they were logged."""
        prefix = f"{metric}/"
        return {key[len(prefix) :]: s for key, s in self.series.items() if key.startswith(prefix)}

    def to_frame(self) -> pd.DataFrame:
        """Return all series as a pandas DataFrame by step, (steps, metrics); NaN also where a metric was not logged.

        It holds the mean of several ranks, and neither the configuration nor the lines of a text log.
        """
        import pandas as pd

        frame = pd.DataFrame({name: pd.Series(one.values, index=one.steps) for name, one in self.series.items()})
        frame.index.name = "step"
        return frame

    def __repr__(self) -> str:
        last = "" if self.last_step is None else f", up to step {self.last_step:,}"
        return f"Run({self.name!r}{last}: {', '.join(self.series) or 'nothing logged'})"

    def setting(self, key: str) -> ConfigScalar | None:
        """Return a value of the configuration, None if it is not known."""
        found = self.config.get(key)
        return found.value if found else None

    def unlike(self, other: Run) -> list[str]:
        """Return the settings in which another run differs, with those that only one of them has."""
        own, others = ({key: one.value for key, one in run.config.items()} for run in (self, other))
        return [key for key in {**own, **others} if own.get(key) != others.get(key) and key not in NAMING]

    def trained_otherwise(self, other: Run) -> list[str]:
        """Return the settings known of both that make another run no repetition of this one; a seed does not."""
        return [key for key in self.unlike(other) if key in self.config.keys() & other.config.keys() - LOGGING]

    @property
    def by_row(self) -> bool:
        """Whether the steps are row numbers, since no column holds any."""
        return self.unit == "row"

    @property
    def unit(self) -> str:
        """The word for what the steps count, such as `step`, `row` or `epoch`."""
        return unit_of(self.sources)

    @property
    def by_epoch(self) -> bool:
        """Whether the steps of the log are epochs."""
        return any(source.steps_from.lower().startswith("epoch") for source in self.sources)

    @property
    def excerpt_from(self) -> int | None:
        """The first step of a log whose run began long before it; None where it may hold the beginning.

        Such a log is an excerpt, or of a run that goes on from a checkpoint: it does not show how the run began.
        """
        series, first = self.get("loss") or max(self.series.values(), key=len, default=None), self.first_step
        if series is None or first is None or self.by_row:
            return None
        return first if first > MISSED_ROWS * interval(series.steps) else None

    @property
    def planned_step(self) -> float:
        """The last step that the run was to make, in what its steps count; infinity if it is not known."""
        planned = self.setting("epochs" if self.by_epoch else "max_steps")
        return planned - 1 if isinstance(planned, int | float) else math.inf

    @property
    def reached(self) -> str:
        """The last step, and of how many where that is known, in words: `step 148 of 300`."""
        where = f"{self.unit} {self.last_step or 0:,}"
        return f"{where} of {self.planned_step + 1:,.0f}" if math.isfinite(self.planned_step) else where

    @property
    def first_step(self) -> int | None:
        """The first step at which anything was logged: a loss that waits for a full buffer begins later."""
        return min((int(s.steps[0]) for s in (*self.series.values(), *self.others.values()) if len(s)), default=None)

    @property
    def last_step(self) -> int | None:
        """The last step at which anything was logged."""
        return max((int(s.steps[-1]) for s in self.series.values() if len(s)), default=None)


def unit_of(sources: Iterable[FileUse]) -> str:
    """Return the word for what the steps of some files count: `row`, `epoch` or `step`."""
    columns = [source.steps_from for source in sources]
    if ROW_NUMBER in columns:
        return "row"
    return "epoch" if any(column.lower().startswith("epoch") for column in columns) else "step"
