"""A diagnosis as one page in one file: what the screen says, in its order; it asks nothing of the network.

The page holds no script, and its policy allows none.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from stabtree.report.explain import reference_to, rule_of
from stabtree.report.model import Report, turn_of
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.plot import figure
from stabtree.report.svg import COLUMNS, style, svg
from stabtree.report.tags import NOTHING, Markup, fields, folded, items, joined, prose, table, tag
from stabtree.report.text import counted
from stabtree.report.verdicts import BADGES, CAUSE_SIGNS, TICK_SIGNS, Tick
from stabtree.report.words import FURTHER, accepted_notes, because, in_order, step_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis, Fix, Incident
    from stabtree.report.advice import Action
    from stabtree.report.model import CauseRow, Open, Turn, Walk
    from stabtree.report.plot import Figure

CLOSING = Markup("</body></html>\n")
FRAME = "width:100%;height:44rem;border:1px solid #8884;border-radius:6px"
MAX_OPEN = 3
TICK_WORDS = {
    Tick.PASSED: "nothing wrong",
    Tick.FOUND: "something found",
    Tick.OPEN: "not checked",
    Tick.SKIPPED: "not asked of this run",
}


def opening(title: str, sheet: Markup, script: str = "", others: Sequence[str] = ()) -> Markup:
    """Return a page up to what it shows, with a policy that allows nothing but its own styles and its own script.

    Args:
        title: of the page.
        sheet: its style sheet.
        script: the script that will stand in it; empty for none.
        others: style sheets that will stand further down.
    """
    styles = " ".join(map(_hash, (sheet, *others)))
    policy = f"default-src 'none'; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src {_hash(script)}"
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", sheet),
    )
    return Markup(f'<!doctype html>\n<html lang="en">{head}<body>')


def asset(name: str, package: str = "stabtree.report") -> str:
    """Return a file that ships with the pages of a package."""
    return files(package).joinpath(name).read_text("utf-8")


def _hash(inline: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def framed(page: str) -> str:
    """Return a page in a frame of its own, for a notebook: its style stays inside, and reaches nothing of that."""
    return f'<iframe sandbox style="{FRAME}" srcdoc="{escape(page)}"></iframe>'


def html(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the page: what the screen says, in its order, then everything else, folded."""
    report = Report(diagnosis, options.exit_code)
    main = tag(
        "main",
        _verdict(report),
        _rows(report),
        charts(figure(diagnosis, report.finding, COLUMNS)) if options.plots else NOTHING,
        _meaning(report),
        headed("Do now", _steps([_action(item) for item in report.do_now], because(report.do_now)), name="do-now"),
        _causes(report),
        headed("Log next", _paragraph(report.log_next, ""), name="log-next"),
        _path(report),
        _also(report),
        _not_checked(report),
        _closing(report),
        _everything_else(report),
        id="report",
    )
    skip = tag("a", "Skip to the report", href="#report", class_="skip")
    title = f"{BADGES[report.badge].word} · {report.title} · {diagnosis.run.name}"
    return f"{opening(title, Markup(asset('style.css')), others=(style(),))}{joined([skip, main])}{CLOSING}"


def headed(title: str, *children: str, name: str) -> Markup:
    """Return a section with its heading; nothing where there is nothing in it."""
    if not any(children):
        return NOTHING
    return tag("section", tag("h2", title, id=name), *children, aria_labelledby=name)


def badge(verdict: str) -> Markup:
    """Return a verdict as a word on its colour."""
    return tag("span", BADGES[verdict].word, class_=f"badge {verdict}")


def charts(drawn: Figure | None, title: str = "Charts", keys: Sequence[Markup] = ()) -> Markup:
    """Return a section with a figure; nothing where there is none.

    Args:
        drawn: the figure.
        title: its heading.
        keys: entries of a legend above it.
    """
    if drawn is None:
        return NOTHING
    return headed(title, tag("ul", *keys, class_="legend") if keys else NOTHING, Markup(svg(drawn)), name="charts")


def key(kind: str, words: str) -> Markup:
    """Return an entry of a legend: how something is drawn, and what it is."""
    return tag("li", tag("i", class_=f"key {kind}", aria_hidden="true"), words)


def _paragraph(text: str, kind: str) -> Markup:
    return tag("p", prose(text), class_=kind) if text else NOTHING


def _verdict(report: Report) -> Markup:
    """Return the verdict, the run, and what was misread or accepted."""
    return tag(
        "header",
        badge(report.badge),
        tag("h1", report.title),
        tag("p", report.facts, class_="facts"),
        _paragraph(report.earlier, "facts"),
        _paragraph(report.careful + report.misread if report.misread else "", "careful"),
        *(_paragraph(text, "facts") for text in accepted_notes(report.diagnosis)),
    )


def _rows(report: Report) -> Markup:
    """Return the rows of the log that show it."""
    found = report.quoted
    if found is None:
        return NOTHING
    shown = [
        [tag("strong", cell) if line.here else cell for cell in (f"{line.step:,}", *line.cells, line.note)]
        for line in found.lines
    ]
    return headed("The rows", table([found.unit, *found.metrics, ""], shown, class_="numbers quoted"), name="rows")


def _meaning(report: Report) -> Markup:
    """Return what it means, and what became of each section."""
    chips = []
    for id_, tick in report.ticks:
        sign, title = tag("b", f"§{id_} {TICK_SIGNS[tick]}"), report.diagnosis.tree.section(id_).title
        chips.append(tag("li", sign, " ", title, class_=tick, title=TICK_WORDS[tick]))
    sections = tag("ul", *chips, class_="ticks", aria_label="Sections") if chips else NOTHING
    texts = (_paragraph(report.meaning, "why"), _paragraph(report.also_seen, "quiet"), sections)
    return headed("What it means", *texts, name="meaning")


def _action(action: Action) -> Markup:
    if action.branches:
        branches = [joined([tag("b", f"{answer} →"), " ", prose(do)]) for answer, do in action.branches]
        return joined([tag("strong", prose(action.text)), items("ul", branches, class_="branches")])
    text, strong = prose(action.text), prose(action.strong)
    return Markup(text.replace(strong, tag("strong", strong), 1)) if strong else text


def _fixes(advice: Sequence[Fix]) -> Markup:
    """Return fixes in order, each with its reason; nothing where there are none."""
    return _steps([prose(fix.text) for fix in advice], because(advice))


def _steps(shown: list[Markup], reasons: list[str]) -> Markup:
    rows = [joined([action, _paragraph(reason, "quiet")]) for action, reason in zip(shown, reasons, strict=True)]
    return items("ol", rows, class_="do")


def _causes(report: Report) -> Markup:
    """Return the strongest causes, each with what speaks for it and what fixes it; the others are folded."""
    shown = report.shown_causes
    rest = [row for row in report.causes if row not in shown]
    parts = [tag("ul", *map(_cause, shown), class_="causes")] if shown else []
    if rest:
        parts.append(folded(f"{len(rest):,} more", tag("ul", *map(_cause, rest), class_="causes")))
    return headed("Causes", *parts, name="causes")


def _cause(row: CauseRow) -> Markup:
    mark = tag("span", f"{CAUSE_SIGNS[row.state]} {row.word}", class_=f"state {str(row.state).replace(' ', '-')}")
    seen = items("ul", [item.text for item in row.judged.evidence[1:]])
    more = folded("all that was seen", seen) if seen else NOTHING
    fixes = items("ul", row.fixes, class_="fixes") or tag("p", "no fix of its own", class_="fixes quiet")
    return tag(
        "li", mark, tag("div", tag("p", prose(row.judged.cause.text)), _paragraph(row.why, "quiet"), more), fixes
    )


def _path(report: Report) -> Markup:
    """Return the path, a line a question, each to be opened; and the walk that the verdict rests on."""
    parts: list[str] = []
    for walk in report.walks:
        if parts:
            parts.append(tag("p", FURTHER, class_="quiet"))
        parts += [_turns(report.diagnosis, walk.turns), _ending(report.diagnosis, walk)]
    return headed("Path", *parts, name="path")


def _turns(diagnosis: Diagnosis, asked: Iterable[Turn]) -> Markup:
    """Return the questions of a walk, in order: each in a line that opens into what it asks, why, and what was seen."""
    return tag("ol", *(tag("li", _turn(diagnosis, turn)) for turn in asked), class_="path")


def _turn(diagnosis: Diagnosis, turn: Turn) -> Markup:
    tree, question, given = diagnosis.tree, diagnosis.tree.questions[turn.id], turn.answer.replace(" ", "_")
    line = [
        tag("span", turn.id, class_="id"),
        tag("span", turn.short + turn.source, class_="ask"),
        tag("b", turn.answer, class_="answer" if turn.checked else "answer unchecked"),
        tag("span", turn.number, class_="number"),
    ]
    ways = []
    for verdict, target in question.go.items():
        answer, end = tag("b", verdict.replace("_", " ")), f" → {target} {tree.title_of(target)}"
        ways.append(tag("li", answer, end, class_="taken" if verdict == given else False))
    known = [
        ("seen" if turn.checked else "not checked", items("ul", turn.evidence)),
        ("why", prose(question.why)),
        ("rule", prose(rule_of(tree, question))),
        ("by hand", prose(question.person)),
        ("goes", tag("ul", *ways, class_="ways")),
        ("see", items("ul", (reference_to(tree, link) for link in question.see))),
    ]
    asked = tag("p", turn.ask, class_="question") if turn.ask != turn.short else NOTHING
    return folded(joined(line, Markup(" ")), asked, fields(known), class_="node")


def _ending(diagnosis: Diagnosis, walk: Walk) -> Markup:
    """Return where a walk ended."""
    tree, leaf = diagnosis.tree, diagnosis.tree.leaves[walk.leaf]
    ids = tag("span", f" {walk.node} · {walk.leaf}", class_="id")
    line = joined([tag("span", "→ ", aria_hidden="true"), tag("b", walk.ends), ids])
    more = fields([("means", prose(leaf.why)), ("see", items("ul", (reference_to(tree, link) for link in leaf.see)))])
    return folded(line, more, class_="node end") if more else tag("p", line, class_="end")


def _also(report: Report) -> Markup:
    """Return what else was found, each to be opened."""
    notes = f"{counted(report.notes, 'note')} besides" if report.notes else ""
    return headed("Also found", *map(_other, report.also), _paragraph(notes, "quiet"), name="also")


def _other(finding: Incident) -> Markup:
    leaf = finding.leaf
    ids = tag("span", f"{leaf.of} · {leaf.id}", class_="id")
    head = joined([badge(leaf.severity), " ", f"{step_prefix(finding)}{leaf.title}", " ", ids])
    seen = items("ul", [item.text for item in finding.evidence])
    what_helps = [tag("h3", "What fixes it"), _fixes(finding.advice)] if finding.advice else []
    return folded(head, tag("p", prose(leaf.why)), seen, *what_helps, class_="node")


def _not_checked(report: Report) -> Markup:
    """Return what was not checked, and what to log next time: the first of it, the rest folded."""
    rows = [_open(item) for item in report.open]
    parts = [tag("ul", *rows[:MAX_OPEN], class_="open")] if rows else []
    if rows[MAX_OPEN:]:
        parts.append(folded(f"and {len(rows) - MAX_OPEN:,} more", tag("ul", *rows[MAX_OPEN:], class_="open")))
    title = "Not checked, and what to log next time"
    return headed(title, _paragraph(report.unchecked, "quiet"), *parts, name="not-checked")


def _open(item: Open) -> Markup:
    unlocks = tag("span", ", ".join(item.unlocks), class_="id")
    decides = f"decides {'; '.join(item.decides)}" if item.decides else ""
    return tag(
        "li", tag("p", prose(item.text), " ", unlocks), *(_paragraph(text, "quiet") for text in (item.how, decides))
    )


def _closing(report: Report) -> Markup:
    """Return the last line: verdict, step, restart, exit code."""
    parts = [tag("strong", report.closing)]
    if report.finding:
        parts.append(tag("code", f"stabtree explain {report.node}"))
    if report.finding and report.finding.leaf.page:
        parts.append(tag("a", "about this failure", href=report.finding.leaf.page, rel="noopener"))
    return tag("p", *parts, class_=f"closing {report.verdict}")


def _everything_else(report: Report) -> Markup:
    """Return what no first look needs."""
    diagnosis, finding = report.diagnosis, report.finding
    trees = [[tree.name, tree.title, "walked" if tree.walked else "not walked", tree.why] for tree in diagnosis.trees]
    advice = finding.advice if finding else ()
    parts = [
        _folded("What happened, in order", _events(report)),
        _folded(f"All fixes, in the order in which to try them ({len(advice)})", _fixes(advice)),
        _folded("NaN monitor", items("ul", report.monitor)),
        _folded("The walks past the first diagnosis", *_further(diagnosis)),
        _folded(f"Trees ({len(trees)})", table(["tree", "title", "", "why"], trees)),
        _folded("Your answers", items("ul", diagnosis.answer_notes)),
        _folded("Notes on the log", items("ul", report.log_notes)),
    ]
    return headed("Everything else", *parts, name="more")


def _folded(title: str, *children: str) -> Markup:
    """Return something that opens at a click; nothing where there is nothing in it."""
    return folded(title, *children) if any(children) else NOTHING


def _events(report: Report) -> Markup:
    """Return what happened, in order; nothing where the headline reports all of it."""
    rows = []
    for event, text in in_order(report.events):
        step = tag("span", f"{event.unit} {event.step:,}", class_="step")
        mark = tag("span", "◀ first", class_="first") if event.first else NOTHING
        rows.append(tag("li", step, tag("span", prose(text), " ", mark), class_="leads" if event.first else False))
    return tag("ol", *rows, class_="events") if rows else NOTHING


def _further(diagnosis: Diagnosis) -> Iterator[Markup]:
    """Yield the walks past the path, by section."""
    for visits in filter(None, diagnosis.further):
        yield tag("h3", diagnosis.tree.section(visits[0].question.section).heading)
        yield _turns(diagnosis, map(turn_of, visits))
