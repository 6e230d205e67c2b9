"""A comparison on one screen, in a line, as JSON, in Markdown and as a page: the same parts in the same words."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from functools import reduce
from itertools import product, takewhile
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.lazy import np
from stabtree.common.text import clean, to_ascii
from stabtree.report import card as cards
from stabtree.report import html
from stabtree.report import markdown as md
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import BADGES, asset, new_page
from stabtree.report.plot import COLUMNS, Figure, Frame, Mark, columns_for, drawn_strip, short, strips, widest
from stabtree.report.svg import style
from stabtree.report.words import badge
from stabtree.report.words import headline as diagnosis_headline
from stabtree.tools.compare.compare import ENVELOPE, SEED, Verdict
from stabtree.tools.compare.noise import SIDES
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.report.page import Page
    from stabtree.report.plot import Strip
    from stabtree.run import ConfigScalar
    from stabtree.tools.compare.compare import Comparison
    from stabtree.tools.compare.noise import Difference

WORDS = {  # of a verdict, and of runs that differ and end no worse
    Verdict.WORSE: ("DIVERGES", Severity.CRITICAL),
    Verdict.NO_WORSE: ("NO DIFFERENCE", Severity.OK),
    Verdict.UNKNOWN: ("CAN'T TELL", UNKNOWN),
}
DIFFERS = ("DIFFERS", Severity.NOTE)
LONGEST_NAME = 60
MAX_DIGITS = 12
TIMES, MANY_TIMES = 1.3, 1_000  # a smaller factor is shown by both values, a larger one is only said to be so
BEFORE = {"": "", "level": ", no different before", "same": ", less so before"}
HOW = {"differs": "differs first", "not finite": "first NaN, inf or missing"}
NO_DIFFERENCE = {SEED: "to the last digit"}
MARKS = {True: "worse", False: "differs"}  # by whether a difference lasts
UNSTATED = "–"  # of a setting
MAX_RUNS = 3  # good runs that are listed one by one
MAX_WIDTH = 32  # of a column on the screen
MAX_ROWS = 20  # of a part in Markdown, and above the fold on the page
MAX_LINE = 400
INDENT = 2


class ComparisonPart(NamedTuple):
    """A part of every output: a headed table.

    Attributes:
        head: its heading.
        name: what style sheets call it.
        columns: the heading of each column, each with its style on the screen.
        rows: the cells.
        most: how many rows the screen shows.
    """

    head: str
    name: str
    columns: dict[str, str]
    rows: Sequence[tuple[str, ...]]
    most: int


def _parts(comparison: Comparison) -> tuple[ComparisonPart, ...]:
    """Return the parts that have rows, in the order in which they are read."""
    both = {"good": "behind", "bad": "mark"}
    differences = [_row(comparison, item) for item in comparison.differences]
    settings = [
        (clean(item.key, LONGEST_NAME), ", ".join(map(_value, item.good)) or UNSTATED, _value(item.bad))
        for item in comparison.settings
    ]
    left_out = [(clean(metric), why) for metric, why in comparison.left_out]
    verdicts = {"verdict": "", "run": "", "what was found": "dim"}
    parts = (
        ComparisonPart("What differs", "differences", {"series": "", **both, "": "dim"}, differences, 6),
        ComparisonPart("Settings that differ", "settings", {"setting": "", **both}, settings, 8),
        ComparisonPart("Verdict of each run", "verdicts", verdicts, _verdicts(comparison), 9),
        ComparisonPart("Not compared", "left-out", {"series": "dim", "why": "dim"}, left_out, 3),
    )
    return tuple(part for part in parts if part.rows)


def word(comparison: Comparison) -> tuple[str, str]:
    """Return the verdict in a word or two, and its style."""
    if comparison.verdict is Verdict.NO_WORSE and comparison.differences:
        return DIFFERS
    return WORDS[comparison.verdict]


def title(comparison: Comparison) -> str:
    """Return from where on the bad run is worse and by how much, or what differs, or why that is unknown."""
    first = comparison.first
    if comparison.verdict is Verdict.UNKNOWN:
        return comparison.reason
    if first is None:
        return NO_DIFFERENCE.get(comparison.method, "beyond noise")
    told = f"{clean(first.metric, LONGEST_NAME)} {_course(first, _unit(comparison))}"
    if comparison.verdict is Verdict.WORSE:
        return told
    if first.how == "worse" and first.until == comparison.last_step:
        return f"{told}; other seeds may end off by as much"
    return f"{told}; at the end nothing is worse"


def _course(item: Difference, unit: str) -> str:
    """Return from where to where a series differs, by how much, and how it was before."""
    if item.how not in SIDES:
        noises = "" if item.noises is None else f", {short(item.noises, 2)}× its noise"
        return f"{HOW[item.how]} at {unit} {item.step:,}{noises}"
    if item.until == item.step:
        return f"{item.how} at {unit} {item.step:,}, {_amount(item)}"
    if item.until is not None:
        return f"{item.how} from {unit} {item.step:,} to {item.until:,}, {_amount(item)}"
    text = f"{item.how} from {unit} {item.step:,} on{BEFORE.get(item.before, f', {item.before} before')}"
    if item.lost_step is None:
        return f"{text}; {_amount(item)} at the end"
    if item.lost_step > item.step:
        return f"{text}; {_amount(item)}, then NaN or inf from {unit} {item.lost_step:,} on"
    return f"{text}: NaN, inf or no longer logged"


def _amount(item: Difference) -> str:
    """Return how far off a series is, as a factor where it is one that can be said so."""
    good, bad = _apart(item)
    times = item.times or 0.0
    if times > MANY_TIMES:
        return f"over {MANY_TIMES:,} times as high"
    return f"{short(times, 2)} times as high" if times >= TIMES else f"{bad} instead of {good}"


def _unit(comparison: Comparison) -> str:
    """Return what the rows are counted in."""
    return "token" if comparison.by == "tokens" else comparison.bad.unit


def basis(comparison: Comparison) -> str:
    """Return what counted as noise, and over which rows."""
    if not comparison.method:
        return ""
    span = f"{_unit(comparison)}s {comparison.first_step:,} to {comparison.last_step:,}"
    over = f"{comparison.rows:,} common rows, {span}"
    if comparison.method is SEED:
        return f"Both have the same seed: every printed digit counts, in {over}."
    if comparison.method is ENVELOPE:
        return f"Noise is what the {len(comparison.good)} good runs differ by, in {over}."
    return f"{comparison.digits_differ}: noise is how far the two were apart before, in {over}."


def _row(comparison: Comparison, item: Difference) -> tuple[str, ...]:
    """Return a difference in words: the series, the values of the good run and of the bad one, and how it differs."""
    unit = _unit(comparison)
    if item.metric == "batch_id":
        return item.metric, "", "", f"another batch at {unit} {item.step:,}"
    return clean(item.metric, LONGEST_NAME), *_apart(item), _course(item, unit)


def _apart(item: Difference) -> tuple[str, str]:
    """Return both values in as many digits as tell them apart."""
    if item.good is None or item.bad is None:
        return "" if item.good is None else short(item.good), "NaN or inf" if item.how == "not finite" else ""
    for digits in range(3, MAX_DIGITS):
        good, bad = short(item.good, digits), short(item.bad, digits)
        if good != bad:
            return good, bad
    return repr(item.good), repr(item.bad)


def _value(value: ConfigScalar | None) -> str:
    if value is None:
        return UNSTATED
    return f"{value:.6g}" if isinstance(value, float) else clean(value, LONGEST_NAME)


def _verdicts(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the diagnosis of each run; of many good runs only how many have each verdict."""
    if not comparison.diagnoses:
        return []
    each = zip(_short_names(comparison.names), comparison.diagnoses, strict=True)
    *good, bad = [(BADGES[badge(item)].word, name, diagnosis_headline(item)) for name, item in each]
    if len(good) > MAX_RUNS:
        good = [(verdict, f"{count} good runs", "") for verdict, count in Counter(row[0] for row in good).items()]
    return [*good, bad]


def _short_names(names: Sequence[str]) -> list[str]:
    """Return the names without the folder that all of them are in."""
    parents = zip(*(name.split("/")[:-1] for name in names), strict=False)
    shared = sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, parents))
    return [clean("/".join(name.split("/")[shared:]), LONGEST_NAME) for name in names]


def next_command(comparison: Comparison) -> str:
    """Return what to type next."""
    name = comparison.names[-1]
    command = "inspect" if comparison.verdict is Verdict.UNKNOWN else "diagnose"
    return f"stabtree {command} {name if shlex.quote(name) == name else 'BAD'}"


def screen(comparison: Comparison, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a comparison for a terminal."""
    page = new_page(look)
    verdict, verdict_style = word(comparison)
    page.line((f" {verdict} ", verdict_style), ("  ", ""), (title(comparison), "heading"))
    for text in filter(None, (basis(comparison), *comparison.notes)):
        page.line((text, "dim"))
    if look.plots:
        _draw(page, comparison, look)
    for part in _parts(comparison):
        _draw_part(page, part, full=look.full)
    page.blank()
    page.lines([[(f"next: {next_command(comparison)}", "dim")]])
    return page.text()


def _draw_part(page: Page, part: ComparisonPart, *, full: bool) -> None:
    """Add a part to the screen, with its first rows."""
    page.heading(part.head)
    rows = part.rows if full else part.rows[: part.most]
    *columns, _ = zip(part.columns, *rows, strict=True)
    widths = [min(max(map(len, map(page.plain, column))), MAX_WIDTH) + 2 for column in columns]
    cells = [list(zip(row, part.columns.values(), strict=True)) for row in rows]
    page.rows([[(name, "dim") for name in part.columns], *cells], indent=INDENT, widths=tuple(widths))
    if hidden := len(part.rows) - len(rows):
        page.line((f"and {hidden} more: --full", "dim"), indent=INDENT)


def _draw(page: Page, comparison: Comparison, look: RenderOptions) -> None:
    """Add the curves of the runs to the screen, if there is anything to draw."""
    figure = overlay(comparison, columns_for(look.width))
    if figure is None:
        return
    page.blank()
    page.lines(strips(figure, look.width - INDENT, ascii=look.ascii), indent=INDENT)
    good = f"dotted: {_good(comparison)}"
    page.line(("solid: the bad run", "curve"), (" · ", "dim"), (good, "behind"), indent=INDENT)


def _good(comparison: Comparison) -> str:
    """Return how to speak of the good runs."""
    return "the good run" if len(comparison.good) == 1 else f"the {len(comparison.good)} good runs"


def headline(comparison: Comparison, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the comparison in one line, with the name of the bad run."""
    text = clean(f"{word(comparison)[0]}  {comparison.names[-1]}: {title(comparison)}", MAX_LINE)
    return to_ascii(text) if look.ascii else text


def to_json(comparison: Comparison, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the comparison as JSON."""
    return json.dumps(comparison.to_dict(), indent=2, allow_nan=False) + "\n"


def markdown(comparison: Comparison, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the comparison in Markdown."""
    texts = [f"### {word(comparison)[0]}: {md.escape(title(comparison))}", md.escape(basis(comparison))]
    texts.append(md.listed(map(md.escape, comparison.notes)))
    for part in _parts(comparison):
        rows = [list(map(md.escape, row)) for row in part.rows]
        texts.append(f"#### {part.head}\n\n{md.table(tuple(part.columns), rows[:MAX_ROWS])}")
        if more := len(rows[MAX_ROWS:]):
            texts.append(f"And {more} more.")
    return md.paged(*texts, md.code(next_command(comparison)))


def page(comparison: Comparison, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the comparison as one page in one file."""
    verdict, kind = word(comparison)
    heading = f"No difference {title(comparison)}" if kind is Severity.OK else title(comparison)
    top = html.tag("span", verdict, class_=f"badge {kind}"), html.tag("h1", heading)
    facts = [html.tag("p", text, class_="facts") for text in (basis(comparison), *comparison.notes) if text]
    sections = [html.tag("header", *top, *facts)]
    if look.plots:
        sections.append(_charts(comparison))
    for part in _parts(comparison):
        tables = [html.table(part.columns, part.rows[:MAX_ROWS], label=f"Table: {part.head}", class_=part.name)]
        if rest := part.rows[MAX_ROWS:]:
            tables.append(
                html.folded(
                    f"and {len(rest):,} more", html.table(part.columns, rest, f"More: {part.head}", class_=part.name)
                )
            )
        sections.append(html.headed(part.head, *tables, name=part.name))
    sections.append(html.tag("p", html.tag("code", next_command(comparison)), class_=f"closing {kind}"))
    skip = html.tag("a", "Skip to the comparison", href="#report", class_="skip")
    sheet = html.Markup(asset("style.css") + asset("page.css", "stabtree.tools.compare"))
    opens = html.opening(headline(comparison), sheet, others=(style(),))
    return f"{opens}{html.joined([skip, html.tag('main', *sections, id='report')])}{html.CLOSING}"


def _charts(comparison: Comparison) -> html.Markup:
    """Return the curves of the runs over one another."""
    *good, bad = _short_names(comparison.names)
    behind = f"{_good(comparison)}, from the lowest to the highest" if len(good) > 1 else f"good: {good[0]}"
    keys = (html.key("line", f"bad: {bad}"), html.key("line behind", behind))
    return html.charts(overlay(comparison, COLUMNS, 5), "wide", "One over the other", keys)


def card(comparison: Comparison) -> str:
    """Return a comparison as a notebook shows it."""
    (told, verdict), drawn = word(comparison), overlay(comparison, cards.COLUMNS, 1)
    more = "The whole page: `stabtree compare GOOD BAD -o compare.html`"
    return cards.card(verdict, (told, title(comparison), basis(comparison)), drawn, (), more)


def overlay(comparison: Comparison, columns: int, max_strips: int = 3) -> Figure | None:
    """Return the figure of the loss and the series that differ first; None if there is nothing to draw.

    Args:
        comparison: the comparison.
        columns: how many points wide.
        max_strips: how many series.
    """
    names = _drawable(comparison)[:max_strips]
    runs = (comparison.bad, *comparison.good)
    series = [run.series[name] for name, run in product(names, runs)]
    first = min((int(item.steps[0]) for item in series), default=0)
    last = max((int(item.steps[-1]) for item in series), default=0)
    if first == last:
        return None
    frame, drawn = Frame(first, last, columns), []
    earliest = {item.metric for item in comparison.differences[:1]}
    for name in names:
        all_runs = [drawn_strip(run.series[name], frame) for run in runs]
        bad, *good = [widest(strip, all_runs) for strip in all_runs]
        drawn.append(replace(bad, behind=_band(good), first=name in earliest))
    marks: tuple[Mark, ...] = ()
    if at := comparison.first:
        marks = (Mark(at.step, MARKS[at.lasts_worse], f"{at.step:,}"),)
    return Figure(first, last, columns, tuple(drawn), marks, comparison.bad.unit)


def _drawable(comparison: Comparison) -> list[str]:
    """Return the series to draw: the one to look at, the loss, and what else differs."""
    differing = [item.metric for item in comparison.differences]
    lead = [comparison.first.metric] if comparison.first else []
    known = {*comparison.compared, *differing} - {"batch_id"}
    return [name for name in dict.fromkeys((*lead, "loss", *differing, "grad_norm")) if name in known]


def _band(good: Sequence[Strip]) -> Strip:
    """Return all good runs as one strip, from the lowest to the highest in each column."""
    return replace(
        good[0],
        lows=reduce(np.fmin, [strip.lows for strip in good]),
        highs=reduce(np.fmax, [strip.highs for strip in good]),
        joined=reduce(np.logical_and, [strip.joined for strip in good]),
    )
