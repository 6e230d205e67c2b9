"""How to read a run, as the user said."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.loaders.config import dtype as canonical_dtype
from stabtree.loaders.formats import by_name
from stabtree.loaders.paths.checkpoints import named_checkpoints
from stabtree.metrics.names import named
from stabtree.run import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.metrics.names import Names


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options of `load_run` by the same names; `check` and the methods below refuse those that are wrong."""

    dtype: str | None = None
    checkpoint_every: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    step_column: str | None = None
    format: str | None = None
    run: str | None = None
    checkpoints: str | Path | None = None

    def check(self) -> None:
        """Refuse options that are wrong whatever the log.

        Raises:
            StabtreeError: for the first of them.
        """
        self.names()
        self.overrides()
        if self.format is not None:
            by_name(self.format)

    def names(self) -> Names:
        """Return what the columns mean.

        Raises:
            StabtreeError: where `columns` names an unknown metric.
        """
        return named(self.columns, self.step_column)

    def overrides(self) -> dict[str, Setting]:
        """Return the settings that override those of a log or a manifest.

        Raises:
            StabtreeError: where one is wrong.
        """
        found = {}
        if self.dtype is not None:
            found["dtype"] = Setting(canonical_dtype(self.dtype), "--dtype")
        every = self.checkpoint_every
        if every is not None:
            if isinstance(every, bool) or every < 1:
                raise StabtreeError(
                    f"{every} is not a number of steps", where="--checkpoint-every", hint="give a number from 1 on"
                )
            found["checkpoint_every"] = Setting(int(every), "--checkpoint-every")
        if self.checkpoints is not None:
            found["checkpoints"] = Setting(tuple(named_checkpoints(Path(self.checkpoints))), "--checkpoints")
        return found
