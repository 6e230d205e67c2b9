"""Many runs as one page in one file: counts, causes, and a table that sorts and filters; nothing of the network."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.text import clean
from stabtree.judging.outcome import ORDER
from stabtree.report.html import CLOSING, asset, badge, opening
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.tags import NOTHING, Markup, folded, joined, tag
from stabtree.report.text import counted
from stabtree.report.verdicts import BADGES
from stabtree.tools.fleet.outputs.groups import HEALTHY, LONGEST_NAME, count_runs, next_command, ordered, word
from stabtree.tools.fleet.outputs.reports import report_name
from stabtree.tools.fleet.outputs.spark import BOX, paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.tools.fleet.outputs.groups import RunGroup, Tally
    from stabtree.tools.fleet.record import Record

MAX_ROWS = 20_000  # a browser sorts and filters as many at once; the rest is for the CSV
STANDING = 200  # rows that stand without scripts
MAX_GROUPS, OPEN_GROUPS = 60, 8  # causes that are tally, and those of them that are not folded
HEADS = ("verdict", "run", "loss", "from step", "what was found", "restart", "last step")
CHUNK = 500


def page(
    records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS, *, by: str = "leaf", reports: str = ""
) -> Iterator[str]:
    """Yield the page in pieces, each a line or more.

    Args:
        records: the runs, worst first.
        by: what they are grouped by: leaf, folder or verdict.
        reports: the folder with a report of each run that has one, relative to the page; empty where there is none.

    Raises:
        StabtreeError: for a `by` that does not exist.
    """
    tally = count_runs(records, MAX_ROWS, by)
    rows = ordered(tally.kept)
    for piece in _pieces(tally, rows, reports):
        yield f"{piece}\n"


def _pieces(tally: Tally, rows: Sequence[Record], reports: str) -> Iterator[Markup]:
    yield opening(f"{tally.summary} · stabtree", _style(), _script())
    yield tag("a", "Skip to the runs", href="#runs", class_="skip")
    yield Markup('<main id="report">')
    yield joined([_header(tally), _causes(tally, reports)])
    yield from _runs(tally, rows, reports)
    yield joined([_closing(tally, rows), Markup("</main>")])
    yield from _data(tally, rows, reports)
    yield joined([tag("script", _script()), CLOSING])


def _header(tally: Tally) -> Markup:
    facts = f"judged by stabtree {__version__}"
    if tally.folder:
        facts = f"in {tally.folder} · {facts}"
    chips = []
    for verdict in ORDER:
        if tally.badges[verdict]:
            number = tag("b", f"{tally.badges[verdict]:,}")
            chips.append(tag("li", tag("a", badge(verdict), " ", number, href="#runs", data_badge=verdict)))
    return tag(
        "header",
        badge(tally.worst),
        tag("h1", _title(tally.calling, tally.total)),
        tag("p", facts, class_="facts"),
        _bar([(tally.badges[verdict], str(verdict)) for verdict in ORDER], tally.total, tally.summary),
        tag("ul", *chips, class_="counts", aria_label="Runs by verdict"),
        *(tag("p", note, class_="quiet") for note in tally.notes or ()),
    )


def _title(calling: int, total: int) -> str:
    if calling == 1:
        return f"1 of {counted(total, 'run')} is not healthy"
    if calling:
        return f"{calling:,} of {counted(total, 'run')} are not healthy"
    if total > 1:
        return f"All {total:,} runs are healthy"
    if total == 1:
        return "The run is healthy"
    return "No runs"


def _bar(parts: Sequence[tuple[int, str]], total: int, label: str) -> Markup:
    """Shares of a whole side by side; a share that is not nothing is seen."""
    shown = [(max(count / max(total, 1) * 1000, 4.0), name) for count, name in parts if count]
    drawn, at = [], 0.0
    for width, name in shown:
        drawn.append(tag("rect", x=f"{at:.1f}", y="0", width=f"{width:.1f}", height="10", class_=name))
        at += width
    width = max(at, 1)
    if len(parts) == 1:  # a share of a longer bar
        width = 1000
    box = f"0 0 {width:.0f} 10"
    return tag("svg", *drawn, class_="bar", viewBox=box, preserveAspectRatio="none", role="img", aria_label=label)


def _more(count: int, words: str = "", **attributes: str) -> Markup:
    """Return a quiet line on what is not shown; nothing where all is."""
    if count > 0:
        return tag("p", f"and {count:,} more{words}", class_="quiet", **attributes)
    return NOTHING


def _causes(tally: Tally, reports: str) -> Markup:
    groups = tally.groups
    max_count = max((group.count for group in groups if group.badge != HEALTHY), default=1)
    rows = [_group(tally, group, max_count, reports) for group in groups[:MAX_GROUPS] if group.badge != HEALTHY]
    if not rows:
        return NOTHING
    shown, hidden = rows[:OPEN_GROUPS], rows[OPEN_GROUPS:]
    title = tag("h2", {"leaf": "Causes", "folder": "Folders", "verdict": "Verdicts"}[tally.by], id="causes")
    parts = [title, tag("ol", *shown, class_="groups")]
    if hidden:
        left_out = _more(len(groups) - MAX_GROUPS)
        parts.append(folded(f"{len(hidden):,} more", tag("ol", *hidden, class_="groups"), left_out))
    return tag("section", *parts, aria_labelledby="causes")


def _group(tally: Tally, group: RunGroup, max_count: int, reports: str) -> Markup:
    title, id_ = group.heading, group.key
    if tally.by == "folder":
        title, id_ = f"{group.key}/".removeprefix(tally.folder) or tally.folder or "./", group.causes
    elif tally.by == "verdict":
        title, id_ = word(group.badge).capitalize(), group.causes
    chosen = {"data_badge": group.badge, "data_leaf": group.key, "data_by": tally.by}
    head = joined([tag("a", title, href="#runs", **chosen), " ", tag("span", id_, class_="id")])
    worst = joined([_linked(tally.name(record), record, reports) for record in group.examples], ", ")
    rest = group.count - len(group.examples)
    if rest > 0:
        worst = joined([worst, f" and {rest:,} more"])
    found = [tag("h3", head), tag("p", worst, class_="names")]
    if group.first and tally.by == "leaf":
        found.append(tag("p", tag("b", "First: "), group.first, class_="first-step"))
    runs = counted(group.count, "run")
    number, _, noun = runs.partition(" ")
    share = [tag("p", tag("b", number), f" {noun}"), _bar([(group.count, group.badge)], max(max_count, 1), runs)]
    if group.steps:
        share.append(tag("span", f"from step {group.steps}", class_="step"))
    return tag("li", badge(group.badge), tag("div", *found), tag("div", *share, class_="share"))


def _linked(name: str, record: Record, reports: str) -> Markup:
    if reports and (file := report_name(record)):
        return tag("a", name, href=f"{reports}/{file}")
    return tag("span", name)


def _runs(tally: Tally, rows: Sequence[Record], reports: str) -> Iterator[Markup]:
    """Yield the worst rows as they stand without scripts; the script draws all of them in their place."""
    heads = [tag("th", head, scope="col", class_=f"c{index}") for index, head in enumerate(HEADS)]
    yield Markup('<section aria-labelledby="runs">')
    yield tag("h2", "Runs", id="runs")
    if tally.total > len(rows):
        left = f"The page holds the worst {len(rows):,} of {tally.total:,} runs; all of them: --output csv=runs.csv"
        yield tag("p", left, class_="careful")
    yield Markup('<div class="list"><table id="table"><thead>' + tag("tr", *heads) + "</thead><tbody>")
    for record in rows[:STANDING]:
        yield _row(tally, record, reports)
    yield Markup("</tbody></table></div>")
    yield _more(len(rows) - STANDING, ", which need scripts to be on", id="rest")
    yield Markup("</section>")


def _row(tally: Tally, record: Record, reports: str) -> Markup:
    title = joined([record.title])
    if record.more:
        title = joined([title, tag("span", f" +{record.more}", class_="id")])
    cells = (
        badge(record.badge),
        _linked(tally.name(record), record, reports),
        _svg(record),
        _whole(record.onset_step),
        title,
        _whole(record.restart_step),
        _whole(record.last_step),
    )
    return tag("tr", *(tag("td", cell, class_=f"c{index}") for index, cell in enumerate(cells)))


def _whole(value: int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}"


def _svg(record: Record) -> Markup:
    """Return the small line as the script draws it."""
    drawn = zip(("curve", "mark"), paths(record.spark, record.mark), strict=True)
    shown = [tag("path", d=path, class_=kind) for kind, path in drawn if path]
    if not shown:
        return NOTHING
    return tag("svg", *shown, class_="spark", viewBox=BOX, preserveAspectRatio="none", aria_hidden="true")


def _closing(tally: Tally, rows: Sequence[Record]) -> Markup:
    if not rows:
        return NOTHING
    return tag("p", tag("strong", tally.summary), tag("code", next_command(rows[0])), class_=f"closing {tally.worst}")


def _data(tally: Tally, rows: Sequence[Record], reports: str) -> Iterator[Markup]:
    """Yield all rows for the script, in pieces."""
    head = {
        "badges": [[str(verdict), BADGES[verdict].word] for verdict in ORDER],
        "folder": clean(tally.folder, LONGEST_NAME),
        "reports": reports,
        "box": BOX,
    }
    yield Markup('<script type="application/json" id="runs-data">{"head":' + as_script(head) + ',"rows":[')
    for start in range(0, len(rows), CHUNK):
        written = ",\n".join(as_script(_packed(tally, record, reports)) for record in rows[start : start + CHUNK])
        yield Markup(f",\n{written}" if start else written)
    yield Markup("]}</script>")


def _packed(tally: Tally, record: Record, reports: str) -> list[Any]:
    """Return a run for the script, which knows the places; what it can make of the name is left out."""
    command: str | int = next_command(record)
    if command == f"stabtree diagnose {clean(tally.folder, LONGEST_NAME)}{tally.name(record)}":
        command = 0
    return [
        ORDER.index(record.badge),
        tally.name(record),
        *paths(record.spark, record.mark),
        record.onset_step,
        clean(record.title, LONGEST_NAME),
        record.restart_step,
        record.last_step,
        record.more,
        clean(record.leaf),
        clean(record.first, LONGEST_NAME),
        record.rows,
        report_name(record) if reports else 0,
        command,
    ]


@cache
def _style() -> Markup:
    return Markup(asset("style.css") + asset("page.css", __package__))


@cache
def _script() -> Markup:
    return Markup(asset("page.js", __package__))


def as_script(value: object) -> Markup:
    """Return data as JSON that no parser of markup takes for anything else."""
    written = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(
        written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("##", "#\\u0023")
    )
