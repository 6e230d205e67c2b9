"""Many runs as one page in one file: counts, causes, and a table that sorts and filters; nothing of the network."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.text import clean
from stabtree.judging.outcome import ORDER
from stabtree.render.fleet.groups import HEALTHY, LONGEST_NAME, next_command, ordered, tally, word
from stabtree.render.fleet.reports import report_name
from stabtree.render.fleet.spark import BOX, paths
from stabtree.render.html.charts import as_script
from stabtree.render.html.document import CLOSING, asset, opening
from stabtree.render.html.first import badge
from stabtree.render.html.tags import NOTHING, Markup, folded, joined, tag
from stabtree.render.look import LOOK, Look
from stabtree.render.report.words import counted
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.judging.record import Record
    from stabtree.render.fleet.groups import RunGroup, Tally

MOST_ROWS = 20_000  # a browser sorts and filters as many at once; the rest is for the CSV
STANDING = 200  # rows that stand without scripts
MOST_GROUPS, OPEN_GROUPS = 60, 8  # causes that are told, and those of them that are not folded
HEADS = ("verdict", "run", "loss", "from step", "what was found", "restart", "last step")
CHUNK = 500


def page(records: Iterable[Record], _look: Look = LOOK, *, by: str = "leaf", reports: str = "") -> Iterator[str]:
    """The page in pieces, each a line or more.

    Args:
        records: the runs, worst first.
        by: what they are grouped by: leaf, folder or verdict.
        reports: the folder with a report of each run that has one, relative to the page; empty where there is none.

    Raises:
        StabtreeError: for a `by` that does not exist.
    """
    told = tally(records, MOST_ROWS, by)
    rows = ordered(told.kept)
    for piece in _pieces(told, rows, reports):
        yield f"{piece}\n"


def _pieces(told: Tally, rows: Sequence[Record], reports: str) -> Iterator[Markup]:
    yield opening(f"{told.told} · stabtree", _style(), _script())
    yield tag("a", "Skip to the runs", href="#runs", class_="skip")
    yield Markup('<main id="report">')
    yield joined([_header(told), _causes(told, reports)])
    yield from _runs(told, rows, reports)
    yield joined([_closing(told, rows), Markup("</main>")])
    yield from _data(told, rows, reports)
    yield joined([tag("script", _script()), CLOSING])


def _header(told: Tally) -> Markup:
    calling, total = told.calling, told.total
    title = f"{calling:,} of {counted(total, 'run')} {'is' if calling == 1 else 'are'} not healthy"
    if not calling:
        title = "No runs" if not total else f"All {total:,} runs are healthy" if total > 1 else "The run is healthy"
    chips = [
        tag(
            "li", tag("a", badge(verdict), " ", tag("b", f"{told.badges[verdict]:,}"), href="#runs", data_badge=verdict)
        )
        for verdict in ORDER
        if told.badges[verdict]
    ]
    facts = [f"in {told.folder}" if told.folder else "", f"judged by stabtree {__version__}"]
    notes = [tag("p", note, class_="quiet") for note in told.notes or ()]
    return tag(
        "header",
        badge(told.worst),
        tag("h1", title),
        tag("p", " · ".join(filter(None, facts)), class_="facts"),
        _bar([(told.badges[verdict], str(verdict)) for verdict in ORDER], total, told.told),
        tag("ul", *chips, class_="counts", aria_label="Runs by verdict"),
        *notes,
    )


def _bar(parts: Sequence[tuple[int, str]], total: int, label: str) -> Markup:
    """Shares of a whole side by side; a share that is not nothing is seen."""
    shown = [(max(count / max(total, 1) * 1000, 4.0), name) for count, name in parts if count]
    drawn, at = [], 0.0
    for width, name in shown:
        drawn.append(tag("rect", x=f"{at:.1f}", y="0", width=f"{width:.1f}", height="10", class_=name))
        at += width
    box = f"0 0 {1000 if len(parts) == 1 else max(at, 1):.0f} 10"
    return tag("svg", *drawn, class_="bar", viewBox=box, preserveAspectRatio="none", role="img", aria_label=label)


def _causes(told: Tally, reports: str) -> Markup:
    groups = told.groups
    most = max((group.count for group in groups if group.badge != HEALTHY), default=1)
    rows = [_group(told, group, most, reports) for group in groups[:MOST_GROUPS] if group.badge != HEALTHY]
    if not rows:
        return NOTHING
    rest = len(groups) - MOST_GROUPS
    untold = tag("p", f"and {rest:,} more", class_="quiet") if rest > 0 else NOTHING
    shown, hidden = rows[:OPEN_GROUPS], rows[OPEN_GROUPS:]
    more = folded(f"{len(hidden):,} more", tag("ol", *hidden, class_="groups"), untold) if hidden else NOTHING
    title = tag("h2", {"leaf": "Causes", "folder": "Folders", "verdict": "Verdicts"}[told.by], id="causes")
    return tag("section", title, tag("ol", *shown, class_="groups"), more, aria_labelledby="causes")


def _group(told: Tally, group: RunGroup, most: int, reports: str) -> Markup:
    title, id_ = group.told, group.key
    if told.by == "folder":
        title, id_ = f"{group.key}/".removeprefix(told.folder) or told.folder or "./", group.causes
    elif told.by == "verdict":
        title, id_ = word(group.badge).capitalize(), group.causes
    chosen = {"data_badge": group.badge, "data_leaf": group.key, "data_by": told.by}
    names = [_linked(told.name(record), record, reports) for record in group.examples]
    rest = group.count - len(names)
    steps = tag("span", f"from step {group.steps}", class_="step") if group.steps else NOTHING
    first = tag("p", tag("b", "First: "), group.first, class_="first-step") if group.first else NOTHING
    head = joined([tag("a", title, href="#runs", **chosen), " ", tag("span", id_, class_="id")])
    worst = joined([joined(names, ", "), f" and {rest:,} more" if rest > 0 else ""])
    return tag(
        "li",
        badge(group.badge),
        tag("div", tag("h3", head), tag("p", worst, class_="names"), first if told.by == "leaf" else NOTHING),
        tag(
            "div",
            tag("p", tag("b", f"{group.count:,}"), f" run{'' if group.count == 1 else 's'}"),
            _bar([(group.count, group.badge)], max(most, 1), counted(group.count, "run")),
            steps,
            class_="share",
        ),
    )


def _linked(name: str, record: Record, reports: str) -> Markup:
    file = report_name(record) if reports else ""
    return tag("a", name, href=f"{reports}/{file}") if file else tag("span", name)


def _runs(told: Tally, rows: Sequence[Record], reports: str) -> Iterator[Markup]:
    """The worst rows as they stand without scripts; the script draws all of them in their place."""
    heads = [tag("th", head, scope="col", class_=f"c{place}") for place, head in enumerate(HEADS)]
    yield Markup('<section aria-labelledby="runs">')
    yield tag("h2", "Runs", id="runs")
    left = f"The page holds the worst {len(rows):,} of {told.total:,} runs; all of them: --output csv=runs.csv"
    yield tag("p", left, class_="careful") if told.total > len(rows) else NOTHING
    yield Markup('<div class="list"><table id="table"><thead>' + tag("tr", *heads) + "</thead><tbody>")
    for record in rows[:STANDING]:
        yield _row(told, record, reports)
    yield Markup("</tbody></table></div>")
    rest = len(rows) - STANDING
    yield (
        tag("p", f"and {rest:,} more, which need scripts to be on", class_="quiet", id="rest") if rest > 0 else NOTHING
    )
    yield Markup("</section>")


def _row(told: Tally, record: Record, reports: str) -> Markup:
    more = tag("span", f" +{record.more}", class_="id") if record.more else NOTHING
    cells = (
        badge(record.badge),
        _linked(told.name(record), record, reports),
        _svg(record),
        _whole(record.onset_step),
        joined([record.title, more]),
        _whole(record.restart_step),
        _whole(record.last_step),
    )
    return tag("tr", *(tag("td", cell, class_=f"c{place}") for place, cell in enumerate(cells)))


def _whole(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _svg(record: Record) -> Markup:
    """The small line as the script draws it."""
    drawn = zip(("curve", "mark"), paths(record.spark, record.mark), strict=True)
    shown = [tag("path", d=path, class_=kind) for kind, path in drawn if path]
    if not shown:
        return NOTHING
    return tag("svg", *shown, class_="spark", viewBox=BOX, preserveAspectRatio="none", aria_hidden="true")


def _closing(told: Tally, rows: Sequence[Record]) -> Markup:
    if not rows:
        return NOTHING
    return tag("p", tag("strong", told.told), tag("code", next_command(rows[0])), class_=f"closing {told.worst}")


def _data(told: Tally, rows: Sequence[Record], reports: str) -> Iterator[Markup]:
    """All rows for the script, in pieces."""
    head = {
        "badges": [[str(verdict), LOOKS[verdict].word] for verdict in ORDER],
        "folder": clean(told.folder, LONGEST_NAME),
        "reports": reports,
        "box": BOX,
    }
    yield Markup('<script type="application/json" id="runs-data">{"head":' + as_script(head) + ',"rows":[')
    for start in range(0, len(rows), CHUNK):
        written = [as_script(_packed(told, record, reports)) for record in rows[start : start + CHUNK]]
        yield Markup((",\n" if start else "") + ",\n".join(written))
    yield Markup("]}</script>")


def _packed(told: Tally, record: Record, reports: str) -> list[Any]:
    """A run for the script, which knows the places; what it can make of the name is left out."""
    command = next_command(record)
    plain = f"stabtree diagnose {clean(told.folder, LONGEST_NAME)}{told.name(record)}"
    return [
        ORDER.index(record.badge),
        told.name(record),
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
        0 if command == plain else command,
    ]


@cache
def _style() -> Markup:
    return Markup(asset("style.css") + asset("page.css", "fleet"))


@cache
def _script() -> Markup:
    return Markup(asset("page.js", "fleet"))
