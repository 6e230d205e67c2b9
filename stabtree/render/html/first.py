"""What the screen tells, in its order, on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.diagnosis.result import SILENT
from stabtree.render.html.node import ending, turns
from stabtree.render.html.tags import NOTHING, Markup, folded, items, joined, prose, tag
from stabtree.render.report.model import Tick
from stabtree.render.report.words import grouped, known, step_of, unchecked
from stabtree.render.sections.causes import MARKS
from stabtree.render.sections.healthy import TICKS
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.result import Finding, Happening
    from stabtree.render.report.model import Action, CauseRow, Open, Report

MOST_EVENTS = 8
MOST_CAUSES = 5
MOST_OPEN = 3
TICK_WORDS = {
    Tick.PASSED: "nothing wrong",
    Tick.FOUND: "something found",
    Tick.OPEN: "not checked",
    Tick.SKIPPED: "not asked of this run",
}


def headed(title: str, *children: str, name: str) -> Markup:
    """A section with its heading; nothing where there is nothing in it."""
    if not any(children):
        return NOTHING
    return tag("section", tag("h2", title, id=name), *children, aria_labelledby=name)


def badge(verdict: str) -> Markup:
    """A verdict as a word on its colour."""
    return tag("span", LOOKS[verdict].word, class_=f"badge {verdict}")


def verdict(report: Report) -> Markup:
    """The verdict, the run, what it means, and what became of each section."""
    chips = [
        tag("li", tag("b", f"§{id_} {TICKS[tick]}"), " ", _section(report, id_), class_=tick, title=TICK_WORDS[tick])
        for id_, tick in report.ticks
    ]
    seen = f"Also seen as: {', '.join(report.seen_as)}." if report.seen_as else ""
    return tag(
        "header",
        badge(report.badge),
        tag("h1", report.title),
        tag("p", report.facts, class_="facts"),
        tag("p", prose(report.earlier), class_="why") if report.earlier else NOTHING,
        tag("p", prose(report.plainly), class_="why") if report.plainly else NOTHING,
        tag("p", prose(report.why), class_="why") if report.why else NOTHING,
        _quiet(seen),
        tag("p", prose(_careful(report)), class_="careful") if report.careful else NOTHING,
        *(tag("p", prose(text), class_="facts") for text in known(report.diagnosis)),
        tag("ul", *chips, class_="ticks", aria_label="Sections"),
    )


def _careful(report: Report) -> str:
    return report.careful if report.verdict == UNKNOWN else f"Careful: {report.careful}"


def _section(report: Report, id_: str) -> str:
    return report.diagnosis.tree.section(id_).title


def do_now(report: Report) -> Markup:
    """What to do, at most a few things."""
    return headed("Do now", steps((_strong(item), item.reason) for item in report.do_now), name="do-now")


def _strong(action: Action) -> Markup:
    told, strong = prose(action.text), prose(action.strong)
    return Markup(told.replace(strong, tag("strong", strong), 1)) if strong else told


def steps(told: Iterable[tuple[Markup, str]]) -> Markup:
    """What to do in order, each with its reason; a reason that holds for several in a row is told once."""
    rows, last = [], ""
    for action, reason in told:
        because = _quiet(f"because {reason}" if reason not in ("", last) else "")
        rows.append(joined([action, because]))
        last = reason
    return items("ol", rows, class_="do")


def events(report: Report) -> Markup:
    """What happened, in order; nothing where only the trouble itself did."""
    if len({event.metric.partition("/")[0] for event in report.events}) < 2:
        return NOTHING
    told = [_event(event, others) for event, others in grouped(report.events)]
    rest = told[MOST_EVENTS:]
    more = folded(f"and {len(rest):,} more", tag("ol", *rest, class_="events")) if rest else NOTHING
    shown = tag("ol", *told[:MOST_EVENTS], class_="events") if told else NOTHING
    return headed("What happened, in order", shown, more, name="events")


def _event(event: Happening, others: int) -> Markup:
    more = f" and {others:,} more after it" if others else ""
    first = tag("span", "◀ first", class_="first") if event.first else NOTHING
    step = tag("span", f"{event.unit} {event.step:,}", class_="step")
    return tag(
        "li", step, tag("span", prose(event.sentence + more), " ", first), class_="leads" if event.first else False
    )


def causes(report: Report) -> Markup:
    """Causes beside what mends them; those for which nothing speaks are folded."""
    open_ = [row for row in report.causes if row.judged.state not in SILENT][:MOST_CAUSES]
    rest = [row for row in report.causes if row not in open_]
    more = folded(f"{len(rest):,} more: {_states(rest)}", _rows(rest)) if rest else NOTHING
    return headed("Causes and what mends them", _rows(open_) if open_ else NOTHING, more, name="causes")


def _states(rows: Sequence[CauseRow]) -> str:
    states = [str(row.judged.state) for row in rows]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))


def _rows(rows: Sequence[CauseRow]) -> Markup:
    return tag("ul", *(_cause(row) for row in rows), class_="causes")


def _cause(row: CauseRow) -> Markup:
    state = str(row.judged.state)
    mark = tag("span", f"{MARKS[row.judged.state]} {state}", class_=f"state {state.replace(' ', '-')}")
    seen = [item.text for item in row.judged.evidence[1:]]
    more = folded("all that was seen", items("ul", seen)) if seen else NOTHING
    mends = items("ul", row.mends, class_="mends") or tag("p", "no mend of its own", class_="mends quiet")
    return tag("li", mark, tag("div", tag("p", prose(row.judged.cause.text)), _quiet(row.why), more), mends)


def path(report: Report) -> Markup:
    """The path, a line a question, each to be opened; and the walk that the verdict rests on where that is another."""
    told: list[str] = []
    for place, walk in enumerate(report.walks):
        if place:
            told.append(tag("p", "and further, past the first diagnosis:", class_="quiet"))
        told += [turns(report.diagnosis, walk.turns), ending(report.diagnosis, walk)]
    return headed("Path", *told, name="path")


def also(report: Report) -> Markup:
    """What else was found, each to be opened."""
    notes = f"{report.notes} note{'s' if report.notes > 1 else ''} besides" if report.notes else ""
    shown = [_also(finding) for finding in report.also]
    return headed("Also found", *shown, _quiet(notes), name="also")


def _also(finding: Finding) -> Markup:
    head = joined([badge(finding.leaf.severity), " ", f"{step_of(finding)}{finding.leaf.title}", " ", _id(finding)])
    fixes = steps((prose(fix.text), fix.reason) for fix in finding.advice)
    return folded(
        head,
        tag("p", prose(finding.leaf.why)),
        items("ul", [item.text for item in finding.evidence]),
        tag("h3", "What mends it") if fixes else NOTHING,
        fixes,
        class_="node",
    )


def _id(finding: Finding) -> Markup:
    return tag("span", f"{finding.leaf.of} · {finding.leaf.id}", class_="id")


def not_checked(report: Report) -> Markup:
    """What was not checked, and what to log next time."""
    count = unchecked(report.diagnosis) if report.diagnosis.missing else ""
    told = [_open(item) for item in report.open]
    rest = told[MOST_OPEN:]
    more = folded(f"and {len(rest):,} more", tag("ul", *rest, class_="open")) if rest else NOTHING
    shown = tag("ul", *told[:MOST_OPEN], class_="open") if told else NOTHING
    return headed("Not checked, and what to log next time", _quiet(count), shown, more, name="not-checked")


def _open(item: Open) -> Markup:
    unlocks = tag("span", ", ".join(item.unlocks), class_="id")
    decides = f"decides {'; '.join(item.decides)}" if item.decides else ""
    return tag("li", tag("p", prose(item.text), " ", unlocks), _quiet(item.how), _quiet(decides))


def _quiet(told: str) -> Markup:
    return tag("p", prose(told), class_="quiet") if told else NOTHING


def closing(report: Report) -> Markup:
    """The last line: verdict, step, restart, exit code."""
    leaf = report.finding.leaf if report.finding else None
    next_ = tag("code", f"stabtree explain {leaf.of}") if leaf else NOTHING
    page = tag("a", "about this failure", href=leaf.page, rel="noopener") if leaf and leaf.page else NOTHING
    return tag("p", tag("strong", report.closing), next_, page, class_=f"closing {report.verdict}")
