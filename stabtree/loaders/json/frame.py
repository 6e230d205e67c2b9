"""What a frame made by `Run.to_frame` keeps of its run in `attrs`: what a table can't hold."""

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
    """What a frame keeps of the run that it was made of.

    Attributes:
        config: the settings, with their sources.
        not_logged: by metric, from which step to which it was not logged: a NaN elsewhere is one.
        steps_from: what the steps were read from.
        resumes: where the log went back.
        epoch_ends: the epochs by their last step.
        saved: the lines that report a checkpoint, by its step.
    """

    config: Mapping[str, Setting] = {}
    not_logged: Mapping[str, Spans] = {}
    steps_from: str = ""
    resumes: tuple[Resume, ...] = ()
    epoch_ends: Mapping[int, int] = {}
    saved: Mapping[int, int] = {}

    def added_to(self, run: Run) -> Run:
        """Return the run that was read from the frame, with what is kept of it up to its last step."""
        last = -1 if run.last_step is None else run.last_step
        return replace(
            run,
            sources=tuple(replace(file, steps_from=self.steps_from or file.steps_from) for file in run.sources),
            resumes=run.resumes or tuple(resume for resume in self.resumes if resume.to_step <= last),
            epoch_ends=run.epoch_ends or _up_to(last, self.epoch_ends),
            saved=_up_to(last, self.saved),
        )


def _up_to(last: int, steps: Mapping[int, int]) -> dict[int, int]:
    return {step: value for step, value in steps.items() if step <= last}


def kept_in(frame: Any) -> Kept:
    """Return what a frame keeps of its run; nothing if it was not made of one, or its `attrs` were changed."""
    try:
        kept = frame.attrs[FRAME_KEY]
        return Kept(
            config={str(key): Setting(_value(value), str(source)) for key, (value, source) in kept["config"].items()},
            not_logged={str(name): _spans(text) for name, text in kept["not_logged"].items()},
            steps_from=str(kept["steps_from"]),
            resumes=tuple(Resume(*map(int, item)) for item in kept["resumes"]),
            epoch_ends={int(step): int(epoch) for step, epoch in kept["epoch_ends"]},
            saved={int(step): int(line) for step, line in kept["saved"]},
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
    """Return for each step whether it is in one of the spans."""
    at = np.asarray(steps, dtype=np.float64)
    begins, ends = (np.array([span[side] for span in spans], dtype=np.float64) for side in (0, 1))
    index = np.searchsorted(begins, at, side="right") - 1
    found: list[bool] = ((index >= 0) & (at <= ends[index])).tolist()
    return found
