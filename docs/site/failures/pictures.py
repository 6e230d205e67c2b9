"""What a failure looks like: its curves, small and large, or the line of the log or of the configuration that tells."""

from __future__ import annotations

import re
from functools import partial
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from docs.site.failures.examples import Kind
from stabtree.report.plot import Figure, Frame, Mark, column_of, drawn_strip, ends, figure, levels, short
from stabtree.report.svg import svg
from stabtree.report.tags import Markup, joined, tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from docs.site.failures.examples import Example
    from stabtree.diagnosis.result import Diagnosis, Incident, Visit
    from stabtree.report.plot import Strip
    from stabtree.run import Gap, Run

COLUMNS = 200  # of the large picture: finer than its line is thick
INSET = 4
PERSON = "person"
BESIDE = ("grad_norm", "lr")
_NUMBERS = ("batch_id",)  # numbers that are names have no course
WORDS = {"onset": "onset", "restart": "restart"}
_STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)
_PLACE = re.compile(r"run\.yaml:(\d+), (\w+)")
MAX_LETTERS = 230
MAX_HEAD = 38  # letters that stand side by side above a strip of a card


class Size(Struct, frozen=True):
    """How large a small picture is, in units of which a card is some 240 wide.

    Attributes:
        width: of the whole.
        strip: the height of a strip.
        head: the height of its name above.
        columns: into how many points the steps are cut.
        most: how many strips it has.
        labelled: whether the ends of the axes are told.
    """

    width: int
    strip: int
    head: int
    columns: int
    most: int
    labelled: bool


THUMB = Size(width=240, strip=42, head=14, columns=96, most=2, labelled=False)
POCKET = Size(width=360, strip=72, head=20, columns=150, most=4, labelled=True)


def large(example: Example) -> str:
    """The picture of a run, once for a wide and once for a narrow screen; what tells in words where no curve does."""
    curves = example.kind in (Kind.FIXTURE, Kind.MADE)
    wide, narrow = (
        _figure(example.found, _drawn_of(example), columns, telling(example.visits[-1])) if curves else None
        for columns in (COLUMNS, POCKET.columns)
    )
    if wide is None or narrow is None:
        return f'<div class="look">{quoted(example)}</div>'
    whole = _STYLE.sub("", svg(wide)).strip()
    return (
        f'<div class="look"><div class="at-desk">{whole}</div><div class="on-phone">{small(narrow, POCKET)}</div></div>'
    )


def thumbnail(example: Example) -> str:
    """The picture of a card."""
    if example.kind in (Kind.LOG, Kind.CONFIG):
        return quoted(example)
    last = example.visits[-1]
    if last.given_by == PERSON and example.finding:
        return tag("div", tag("span", "no curve tells; a person is asked"), tag("b", last.question.ask), class_="asks")
    return of(example.found, _drawn_of(example), telling(example.visits[-1])) or quoted(example)


def of(found: Diagnosis, finding: Incident | None, first: Sequence[str] = ()) -> str:
    """The loss and what tells of a finding, these series first; empty where there is no curve."""
    drawn = _figure(found, finding, THUMB.columns, first)
    if drawn is None:
        return ""
    loss = [strip for strip in drawn.strips if strip.metric == "loss"]
    names = [*(_member(found.run, name) for name in first), *([finding.metric] if finding else [])]
    rest = [strip for name in names for strip in drawn.strips if strip.metric == name]
    order = {strip.metric: strip for strip in (*loss, *rest, *drawn.strips)}
    chosen = tuple(order.values())[: THUMB.most]
    size = replace(THUMB, strip=2 * THUMB.strip + THUMB.head) if len(chosen) == 1 else THUMB
    return small(replace(drawn, strips=chosen), size)


def _figure(found: Diagnosis, finding: Incident | None, columns: int, series: Sequence[str] = ()) -> Figure | None:
    """The figure of a report, with what answered last where nothing is wrong.

    One series alone has another one beside it, which shows how long the run went on.
    """
    drawn = figure(found, finding, columns)
    if drawn is None:
        return None
    shown = [strip for strip in drawn.strips if strip.metric not in _NUMBERS] or list(drawn.strips)
    names = [strip.metric for strip in shown]
    more = [name for name in map(partial(_member, found.run), series) if name not in (*names, *_NUMBERS)]
    more = [name for name in dict.fromkeys(more) if finding is None or "/" in name]
    more = [*more, *_longest(found.run, names[0])] if len(shown) + len(more) == 1 else more
    added = [found.run.series[name] for name in more if len(found.run.series.get(name, ())) > 1]
    if not added:
        return replace(drawn, strips=tuple(shown))
    first = min(drawn.first_step, *(int(series.steps[0]) for series in added))
    last = max(drawn.last_step, *(int(series.steps[-1]) for series in added))
    onset = finding.onset_step if finding and finding.onset_step is not None else first - 1
    frame = Frame(first, last, columns, onset)
    old = [drawn_strip(found.run.series[name], frame, gaps=_gaps(found.run, name)) for name in names]
    marked = any(mark.kind == "onset" for mark in drawn.marks) or not first <= onset <= last
    late = () if marked else (Mark(onset, "onset", f"{onset:,}"),)
    strips = (*old, *(drawn_strip(series, frame) for series in added))
    return Figure(first, last, columns, strips, (*drawn.marks, *late), drawn.unit)


def _member(run: Run, name: str) -> str:
    """A series, or of a group of them, as of all layers, the one that goes highest."""
    group = [series for series in run.series.values() if series.metric.startswith(f"{name}/") and len(series)]
    if name in run.series or not group:
        return name
    return max(group, key=lambda series: float(np.nan_to_num(series.values, posinf=0).max())).metric


def _longest(run: Run, but: str) -> list[str]:
    """Of the series that nearly every run has, the one that was logged longest."""
    held = [run.series[name] for name in BESIDE if name in run.series and name != but]
    return [max(held, key=lambda series: int(series.steps[-1])).metric] if held else []


def _gaps(run: Run, name: str) -> list[Gap]:
    return [gap for gap in run.gaps if gap.metric == name]


def telling(visit: Visit) -> list[str]:
    """The series that answered a question, but for the loss, which every picture has."""
    return [item.metric for item in visit.answer.evidence if item.metric not in ("", "loss")]


def _drawn_of(example: Example) -> Incident | None:
    """The finding whose marks are drawn: the failure's own, with the restart of the report that tells it."""
    own, main = example.finding, example.main
    return replace(own, restart=main.restart) if own and main else own


def small(drawn: Figure, size: Size) -> str:
    """A figure in few points: a strip a series, with its name and its ends, and where the trouble began."""
    onset = next((mark.step for mark in drawn.marks if mark.kind == "onset"), None)
    if onset is not None:
        column = int(column_of(np.array([onset]), drawn.first_step, drawn.last_step, drawn.columns)[0])
        drawn = replace(drawn, strips=tuple(_reaching(strip, column) for strip in drawn.strips))
    pitch = size.head + size.strip
    height = pitch * len(drawn.strips) + (size.head if size.labelled else 4)
    parts: list[str] = []
    for place, strip in enumerate(drawn.strips):
        parts += _strip(strip, drawn, size, pitch * place + size.head)
    parts += [_mark(mark, drawn, size, pitch * len(drawn.strips)) for mark in drawn.marks if mark.kind in WORDS]
    name = escape(", ".join(strip.metric for strip in drawn.strips))
    return (
        f'<svg class="stabtree small" role="img" viewBox="0 0 {size.width} {height}" aria-label="{name}">'
        f"{''.join(parts)}</svg>"
    )


def _reaching(strip: Strip, column: int) -> Strip:
    """A strip whose axis holds what was logged where the trouble began: of a spike it is all that there is to see."""
    there = slice(max(column - 1, 0), column + 2)
    high = np.fmax.reduce(strip.highs[there], initial=strip.high)
    low = np.fmin.reduce(strip.lows[there], initial=strip.low)
    return replace(
        strip,
        low=float(low),
        high=float(high),
        clipped=strip.clipped if strip.clipped is not None and strip.clipped > high else None,
        clipped_low=strip.clipped_low if strip.clipped_low is not None and strip.clipped_low < low else None,
    )


def _strip(strip: Strip, drawn: Figure, size: Size, top: int) -> Iterator[str]:
    wide = size.width / drawn.columns
    yield f'<rect class="frame" y="{top}" width="{size.width}" height="{size.strip}" rx="3"/>'
    beside = _ends(strip) if size.labelled else ""
    yield f'<text class="name" x="1" y="{top - 4}">{escape(strip.metric)}{beside}</text>'
    if not size.labelled and len(strip.metric) + len(_range(strip)) <= MAX_HEAD:
        at_end = f'x="{size.width - 1}" y="{top - 4}" text-anchor="end"'
        yield f'<text class="axis" {at_end}>{escape(_range(strip))}</text>'
    for start, end in _stretches(strip.bad):
        across = f'x="{start * wide:.1f}" width="{(end - start) * wide:.1f}"'
        yield f'<rect class="lost" {across} y="{top}" height="{size.strip}"/>'
        x = (start + end) / 2 * wide
        yield f'<path class="cross" d="M{x - 3:.1f} {top + 5}l6 6m0-6l-6 6"/>'
    if curve := "".join(_curve(strip, size, top, wide)):
        yield f'<path class="curve" d="{curve}"/>'


def _ends(strip: Strip) -> str:
    if not (told := _range(strip)):
        return ""
    told += ", log scale" if strip.log else ""
    told += ", moved first" if strip.first else ""
    return f'<tspan class="axis" dx="6">{escape(told)}</tspan>'


def _range(strip: Strip) -> str:
    """From where to where a series goes, which tells a flat one from one that falls by little."""
    if np.isnan(strip.highs).all():
        return ""
    lowest, highest = float(np.nanmin(strip.lows)), float(np.nanmax(strip.highs))
    return f"{short(lowest)} throughout" if lowest == highest else " to ".join(ends(lowest, highest))


def _curve(strip: Strip, size: Size, top: int, wide: float) -> Iterator[str]:
    """The band between the lowest and the highest values, a closed path for each stretch that is joined."""
    filled = np.flatnonzero(~np.isnan(strip.highs))
    xs = ((filled + 0.5) * wide).tolist()
    room = size.strip - 2 * INSET
    upper, lower = (
        (top + size.strip - INSET - levels(values[filled], strip.low, strip.high, log=strip.log) * room).tolist()
        for values in (strip.highs, strip.lows)
    )
    starts = [0, *(np.flatnonzero(~strip.joined[filled][1:]) + 1).tolist(), len(filled)]
    for start, end in pairwise(starts):
        there = [f"{x:.1f} {y:.1f}" for x, y in zip(xs[start:end], upper[start:end], strict=True)]
        back = [f"{x:.1f} {y:.1f}" for x, y in zip(xs[start:end], lower[start:end], strict=True)]
        if there:
            yield f"M{'L'.join(there if there == back else [*there, *reversed(back)])}{'' if there == back else 'Z'}"


def _stretches(bad: Sequence[bool] | np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], bad, [False])).astype(np.int8)))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def _mark(mark: Mark, drawn: Figure, size: Size, bottom: int) -> str:
    column = int(column_of(np.array([mark.step]), drawn.first_step, drawn.last_step, drawn.columns)[0])
    x = (column + 0.5) * size.width / drawn.columns
    line = f'<path class="{mark.kind}-line" d="M{x:.1f} {size.head}V{bottom}"/>'
    if not size.labelled:
        return line if mark.kind == "onset" else ""
    side = "end" if x > size.width / 2 else "start"
    lower = 0 if mark.kind == "onset" else -1
    at = x + (-2 if side == "end" else 2)
    words = f"{WORDS[mark.kind]} {mark.label}"
    where = bottom + size.head - 6 if not lower else bottom - 4
    return f'{line}<text class="{mark.kind}" x="{at:.1f}" y="{where}" text-anchor="{side}">{escape(words)}</text>'


def quoted(example: Example) -> str:
    """What tells in words: the lines of a configuration, or the message of a log."""
    if example.kind is Kind.CONFIG:
        return _settings(example)
    seen = example.finding.evidence[0] if example.finding and example.finding.evidence else None
    told = seen.text if seen else "nothing to draw"
    where, _, message = told.partition(": ") if re.match(r"line \d+: ", told) else ("", "", told)
    cut = message if len(message) <= MAX_LETTERS else f"{message[: MAX_LETTERS - 1]}…"
    return tag("div", tag("span", where, class_="where") if where else "", tag("code", cut), class_="quoted")


def _settings(example: Example) -> Markup:
    """The lines of a configuration that the finding names."""
    settings = example.settings or {}
    seen = example.finding.evidence if example.finding else ()
    named = {int(line): key for item in seen for line, key in _PLACE.findall(item.text)}
    rows = [
        tag("code", tag("span", f"{line:>2} ", class_="where"), f"{key}: {_value(settings.get(key))}")
        for line, key in sorted(named.items())
    ]
    return tag("div", joined(rows), class_="quoted config")


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
