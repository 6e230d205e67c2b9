"""What a frame that `Run.to_frame` made tells of its run in `attrs`: what a table can't hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.lazy import np
from stabtree.run import FRAME_KEY, Resume, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.run import ConfigScalar, Run

Spans = tuple[tuple[int, int], ...]


class Kept(NamedTuple):
    """What a frame says of the run that it was made of.

    Attributes:
        config: the settings, with their sources.
        not_logged: by metric, from which step to which it was not logged: a NaN elsewhere is one.
        steps_from: what the steps were read from.
        resumes: where the log went back.
        epoch_ends: the epochs by their last step.
        saved: the lines that tell of a checkpoint, by its step.
    """

    config: Mapping[str, Setting] = {}
    not_logged: Mapping[str, Spans] = {}
    steps_from: str = ""
    resumes: tuple[Resume, ...] = ()
    epoch_ends: Mapping[int, int] = {}
    saved: Mapping[int, int] = {}

    def added_to(self, run: Run) -> Run:
        """The run that was read of the frame, with what its rows can't tell; of a part of them what lies within it."""
        last = -1 if run.last_step is None else run.last_step
        return replace(
            run,
            sources=tuple(replace(one, steps_from=self.steps_from or one.steps_from) for one in run.sources),
            resumes=run.resumes or tuple(item for item in self.resumes if item.to_step <= last),
            epoch_ends=run.epoch_ends or {step: epoch for step, epoch in self.epoch_ends.items() if step <= last},
            saved={step: line for step, line in self.saved.items() if step <= last},
        )


def kept_in(frame: Any) -> Kept:
    """What a frame says of its run; nothing where it was not made of one, or what it says was changed."""
    attrs = getattr(frame, "attrs", None)
    told = attrs.get(FRAME_KEY) if isinstance(attrs, dict) else None
    if not isinstance(told, dict):
        return Kept()
    try:
        return Kept(
            config={str(key): Setting(_value(value), str(source)) for key, (value, source) in told["config"].items()},
            not_logged={str(name): _spans(text) for name, text in told["not_logged"].items()},
            steps_from=str(told["steps_from"]),
            resumes=tuple(Resume(int(start), int(to), int(rows)) for start, to, rows in told["resumes"]),
            epoch_ends={int(step): int(epoch) for step, epoch in told["epoch_ends"]},
            saved={int(step): int(line) for step, line in told["saved"]},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return Kept()


def _value(value: Any) -> ConfigScalar:
    if isinstance(value, list | tuple):
        return tuple(int(item) for item in value)
    if not isinstance(value, str | int | float | bool):
        raise TypeError(type(value).__name__)
    return value


def _spans(text: str) -> Spans:
    pairs = (span.partition("-") for span in text.split())
    return tuple((int(begin), int(end)) for begin, _, end in pairs)


def within(steps: Sequence[Any], spans: Spans) -> list[bool]:
    """Which steps lie in one of the spans."""
    at = np.asarray(steps, dtype=np.float64)
    begins, ends = (np.array([span[side] for span in spans], dtype=np.float64) for side in (0, 1))
    place = np.searchsorted(begins, at, side="right") - 1
    found: list[bool] = ((place >= 0) & (at <= ends[place])).tolist()
    return found
