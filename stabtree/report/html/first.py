"""What the screen says, in its order, on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.html.node import ending, turns
from stabtree.report.html.tags import NOTHING, Markup, folded, items, joined, prose, table, tag
from stabtree.report.model.words import accepted_notes, because, step_prefix
from stabtree.report.text import counted
from stabtree.report.verdicts import BADGES, CAUSE_SIGNS, TICK_SIGNS, Tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.judged import Fix
    from stabtree.diagnosis.result import Incident
    from stabtree.report.model.report import Action, CauseRow, Open, Report

MAX_OPEN = 3
TICK_WORDS = {
    Tick.PASSED: "nothing wrong",
    Tick.FOUND: "something found",
    Tick.OPEN: "not checked",
    Tick.SKIPPED: "not asked of this run",
}


def headed(title: str, *children: str, name: str) -> Markup:
    """Return a section with its heading; nothing where there is nothing in it."""
    if not any(children):
        return NOTHING
    return tag("section", tag("h2", title, id=name), *children, aria_labelledby=name)


def badge(verdict: str) -> Markup:
    """Return a verdict as a word on its colour."""
    return tag("span", BADGES[verdict].word, class_=f"badge {verdict}")


def verdict(report: Report) -> Markup:
    """Return the verdict, the run, and what was misread or accepted."""
    misread = report.careful + report.misread if report.misread else ""
    return tag(
        "header",
        badge(report.badge),
        tag("h1", report.title),
        tag("p", report.facts, class_="facts"),
        _paragraph(report.earlier, "facts"),
        _paragraph(misread, "careful"),
        *(_paragraph(text, "facts") for text in accepted_notes(report.diagnosis)),
    )


def rows(report: Report) -> Markup:
    """Return the rows of the log that show it."""
    if report.quoted is None:
        return NOTHING
    found = report.quoted
    shown = [
        [tag("strong", cell) if line.here else cell for cell in (f"{line.step:,}", *line.cells, line.note)]
        for line in found.lines
    ]
    return headed("The rows", table([found.unit, *found.metrics, ""], shown, class_="numbers quoted"), name="rows")


def meaning(report: Report) -> Markup:
    """Return what it means, and what became of each section."""
    chips = [_chip(report, id_, tick) for id_, tick in report.ticks]
    sections = tag("ul", *chips, class_="ticks", aria_label="Sections") if chips else NOTHING
    texts = (_paragraph(report.meaning, "why"), _paragraph(report.also_seen, "quiet"), sections)
    return headed("What it means", *texts, name="meaning")


def _chip(report: Report, id_: str, tick: Tick) -> Markup:
    title = report.diagnosis.tree.section(id_).title
    return tag("li", tag("b", f"§{id_} {TICK_SIGNS[tick]}"), " ", title, class_=tick, title=TICK_WORDS[tick])


def _paragraph(text: str, kind: str) -> Markup:
    if text:
        return tag("p", prose(text), class_=kind)
    return NOTHING


def do_now(report: Report) -> Markup:
    """Return what to do, at most a few things."""
    shown = [_strong(item) for item in report.do_now]
    return headed("Do now", _steps(shown, because(report.do_now)), name="do-now")


def _strong(action: Action) -> Markup:
    if action.branches:
        branches = [joined([tag("b", f"{answer} →"), " ", prose(do)]) for answer, do in action.branches]
        return joined([tag("strong", prose(action.text)), items("ul", branches, class_="branches")])
    text, strong = prose(action.text), prose(action.strong)
    if strong:
        return Markup(text.replace(strong, tag("strong", strong), 1))
    return text


def fixes(advice: Sequence[Fix]) -> Markup:
    """Return fixes in order, each with its reason; nothing where there are none."""
    return _steps([prose(fix.text) for fix in advice], because(advice))


def _steps(shown: list[Markup], reasons: list[str]) -> Markup:
    rows = [joined([action, _paragraph(reason, "quiet")]) for action, reason in zip(shown, reasons, strict=True)]
    return items("ol", rows, class_="do")


def _list(name: str, kind: str, rows: list[Markup], most: int) -> list[Markup]:
    """Return the first rows as a list, and the others folded."""
    if not rows:
        return []
    parts = [tag(name, *rows[:most], class_=kind)]
    if rows[most:]:
        parts.append(folded(f"and {len(rows) - most:,} more", tag(name, *rows[most:], class_=kind)))
    return parts


def causes(report: Report) -> Markup:
    """Return the strongest causes, each with what speaks for it and what fixes it; the others are folded."""
    shown = report.shown_causes
    rest = [row for row in report.causes if row not in shown]
    parts = []
    if shown:
        parts.append(_causes(shown))
    if rest:
        parts.append(folded(f"{len(rest):,} more", _causes(rest)))
    return headed("Causes", *parts, name="causes")


def log_next(report: Report) -> Markup:
    """Return what to log to decide between the causes."""
    return headed("Log next", _paragraph(report.log_next, ""), name="log-next")


def _causes(rows: Sequence[CauseRow]) -> Markup:
    return tag("ul", *map(_cause, rows), class_="causes")


def _cause(row: CauseRow) -> Markup:
    state = str(row.state)
    mark = tag("span", f"{CAUSE_SIGNS[row.state]} {row.word}", class_=f"state {state.replace(' ', '-')}")
    seen = [item.text for item in row.judged.evidence[1:]]
    more = NOTHING
    if seen:
        more = folded("all that was seen", items("ul", seen))
    fixes = items("ul", row.fixes, class_="fixes") or tag("p", "no fix of its own", class_="fixes quiet")
    cause = tag("div", tag("p", prose(row.judged.cause.text)), _paragraph(row.why, "quiet"), more)
    return tag("li", mark, cause, fixes)


def path(report: Report) -> Markup:
    """Return the path, a line a question, each to be opened; and the walk that the verdict rests on."""
    parts: list[str] = []
    for walk in report.walks:
        if parts:
            parts.append(tag("p", "and further, past the first diagnosis:", class_="quiet"))
        parts += [turns(report.diagnosis, walk.turns), ending(report.diagnosis, walk)]
    return headed("Path", *parts, name="path")


def also(report: Report) -> Markup:
    """Return what else was found, each to be opened."""
    notes = ""
    if report.notes:
        notes = f"{counted(report.notes, 'note')} besides"
    return headed("Also found", *map(_also, report.also), _paragraph(notes, "quiet"), name="also")


def _also(finding: Incident) -> Markup:
    leaf = finding.leaf
    ids = tag("span", f"{leaf.of} · {leaf.id}", class_="id")
    head = joined([badge(leaf.severity), " ", f"{step_prefix(finding)}{leaf.title}", " ", ids])
    seen = items("ul", [item.text for item in finding.evidence])
    what_helps = []
    if finding.advice:
        what_helps = [tag("h3", "What fixes it"), fixes(finding.advice)]
    return folded(head, tag("p", prose(leaf.why)), seen, *what_helps, class_="node")


def not_checked(report: Report) -> Markup:
    """Return what was not checked, and what to log next time."""
    rows = _list("ul", "open", [_open(item) for item in report.open], MAX_OPEN)
    title = "Not checked, and what to log next time"
    return headed(title, _paragraph(report.unchecked, "quiet"), *rows, name="not-checked")


def _open(item: Open) -> Markup:
    unlocks = tag("span", ", ".join(item.unlocks), class_="id")
    decides = ""
    if item.decides:
        decides = f"decides {'; '.join(item.decides)}"
    notes = [_paragraph(text, "quiet") for text in (item.how, decides)]
    return tag("li", tag("p", prose(item.text), " ", unlocks), *notes)


def closing(report: Report) -> Markup:
    """Return the last line: verdict, step, restart, exit code."""
    parts = [tag("strong", report.closing)]
    if report.finding:
        parts.append(tag("code", f"stabtree explain {report.node}"))
    if report.finding and report.finding.leaf.page:
        parts.append(tag("a", "about this failure", href=report.finding.leaf.page, rel="noopener"))
    return tag("p", *parts, class_=f"closing {report.verdict}")
