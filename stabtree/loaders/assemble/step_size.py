"""What the log's steps count: optimizer steps, or samples or tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.stats import interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.run import Series, Setting

# A run goes on for some steps more than were planned, for several times as many perhaps, but not for so many times.
BEYOND = 10


def step_size(series: Mapping[str, Series], config: Mapping[str, Setting]) -> tuple[int, tuple[str, ...]]:
    """Return the logged steps per optimizer step, and a note where that is not 1.

    Steps far beyond the planned ones count something else. How much of it makes an optimizer step follows from the
    interval at which the log was to be written, if that is configured, else from the planned steps themselves.
    """
    loss, planned, every = series.get("loss"), _count("max_steps", config), _count("log_interval", config)
    if loss is None or not planned or not len(loss) or int(loss.steps[-1]) < BEYOND * planned:
        return 1, ()
    last, between = int(loss.steps[-1]), interval(loss.steps)
    size = round(between / every) if every else round((last + between) / planned)
    if size < BEYOND:
        return 1, ()
    text = f"The steps go to {last:,} where {planned:,} are planned: they count samples or tokens, about {size:,}"
    return size, (f"{text} to an optimizer step.",)


def _count(key: str, config: Mapping[str, Setting]) -> int:
    value = config[key].value if key in config else 0
    if isinstance(value, int):
        return value
    return 0
