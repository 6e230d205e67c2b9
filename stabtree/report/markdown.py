"""A report for a pull request or an issue, and a post-mortem: what it takes to act, the rest folded.

Text from outside stays what it is, whatever it holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.common.text import clean, inert
from stabtree.diagnosis.result import STRONG
from stabtree.report.model import Report
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.verdicts import BADGES, TICK_SIGNS
from stabtree.report.words import accepted_notes, because, logged_at, step_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis, Happening, Incident
    from stabtree.report.advice import Action
    from stabtree.report.model import CauseRow, Open, Walk

LONGEST = 1000
GAP = "&#8203;"  # of no width: what would call a person or an issue by name is two words then, and looks the same
_SPECIAL = re.compile(r"[\\`*\[\]<>~&$#]|(?<![^\W_])_+|_+(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
_PIPE = "&#124;"  # a backslash before it means one thing in a table and another outside
# What forges make links or pictures of when the page is already text, so that no backslash helps.
_CALLS = re.compile(r"([@#])(?=\w)|(:)(?=[\w+-]*[a-z_][\w+-]*:|100:|1234:)", re.IGNORECASE)
_AT_START = re.compile(r"^(\d+)(?=[.)])|^(?=[-+=/])")


def escape(text: object) -> str:
    r"""Return a text in one line that Markdown shows as it is: no markup, HTML, link, mention or end of a table cell.

    >>> escape("@ann: see <b>grad_norm</b> | *2*")
    '@&#8203;ann: see \\<b\\>grad_norm\\</b\\> &#124; \\*2\\*'
    """
    plain = clean(text, LONGEST)
    marked = _CALLS.sub(lambda found: f"{found[0]}\0", plain)
    marked = _SPECIAL.sub(lambda found: "".join(f"\\{char}" for char in found[0]), marked)
    marked = _AT_START.sub(lambda found: f"{found[0]}\\", marked)
    return marked.replace("|", _PIPE).replace("\0", GAP)


def code(command: str) -> str:
    """Return a command as a block to copy."""
    text = inert(clean(command, LONGEST))
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def folded(head: str, inner: str) -> str:
    """Return a part that opens with a click; its head is our own plain words."""
    return f"<details><summary>{head}</summary>\n\n{inner}\n\n</details>"


def listed(items: Iterable[str], mark: str = "-") -> str:
    """Return a list, an item a line; `1.` as its mark numbers them."""
    if mark == "1.":
        return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
    return "\n".join(f"{mark} {item}" for item in items)


def paged(*parts: str) -> str:
    """Return the parts that are not empty, a blank line between them."""
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the report as GitHub and GitLab show it."""
    report = Report(diagnosis, options.exit_code)
    return paged(
        f"### {BADGES[report.badge].word}: {escape(report.title)}",
        escape(report.facts),
        *_beside_the_title(report),
        _quoted(report),
        escape(report.meaning),
        escape(report.also_seen),
        _part("Do now", listed(_actions(report.do_now), "1.")),
        _part("Causes", _causes(report.shown_causes)),
        _part("Log next", escape(report.log_next)),
        _part("Also found", listed(map(_other, report.also))),
        " · ".join(
            f"§{escape(id_)} {TICK_SIGNS[tick]} {escape(diagnosis.tree.section(id_).title)}"
            for id_, tick in report.ticks
        ),
        *_folded(report),
        " · ".join(filter(None, [f"**{escape(report.closing)}**", _about(report)])),
    )


def _beside_the_title(report: Report) -> list[str]:
    """Return what came before the finding, what to be careful about, and what is accepted."""
    return [
        escape(report.earlier),
        f"**Careful:** {escape(report.misread)}" if report.misread else "",
        listed(map(escape, accepted_notes(report.diagnosis))),
    ]


def _quoted(report: Report) -> str:
    """Return the rows of the log that show it; empty where none do."""
    if report.quoted is None:
        return ""
    found = report.quoted
    rows = [[f"{line.step:,}", *line.cells, escape(line.note)] for line in found.lines]
    return table((found.unit, *map(escape, found.metrics), ""), rows)


def _actions(items: Sequence[Action]) -> Iterator[str]:
    """Yield what to do in order, each with its reason; below a question what may come out of it."""
    for item, reason in zip(items, because(items), strict=True):
        yield f"{_action(item)}<br>{escape(reason)}" if reason else _action(item)


def _action(item: Action) -> str:
    if item.branches:
        branches = [f"{escape(answer)} → {escape(do)}" for answer, do in item.branches]
        return "<br>".join([f"**{escape(item.text)}**", *branches])
    before, strong, after = item.parts()
    if not strong:
        return escape(before)
    # What was escaped at its end loses the blank that the next words need.
    gap, next_gap = " " * before.endswith(" "), " " * after.startswith(" ")
    return f"{escape(before)}{gap}**{escape(strong)}**{next_gap}{escape(after)}"


def _event(item: Happening) -> str:
    """Return one thing that happened, and whether it was the first."""
    text = f"{item.unit} {item.step:,}: {escape(item.sentence)}"
    return f"{text} (**first**)" if item.first else text


def _causes(rows: Sequence[CauseRow]) -> str:
    """Return the causes beside their fixes; empty where there are none."""
    if not rows:
        return ""
    cells = [(row.word, row.judged.cause.text, row.why, " ".join(row.fixes)) for row in rows]
    return table(("state", "cause", "what the log says", "what fixes it"), [[*map(escape, row)] for row in cells])


def _walk(item: Walk) -> str:
    """Return the questions of a walk with what decided each, and where it ended."""
    rows = [
        (escape(turn.id), escape(turn.ask), escape(turn.answer + turn.source), "<br>".join(map(escape, turn.evidence)))
        for turn in item.turns
    ]
    questions = table(("", "question", "answer", "what decided it"), rows)
    return f"{questions}\n\n→ {escape(item.ends)} ({escape(item.leaf)})"


def _other(finding: Incident) -> str:
    """Return a further finding in a line."""
    severity = BADGES[finding.leaf.severity].word.lower()
    text = f"{severity}: {step_prefix(finding)}{finding.leaf.title} ({finding.leaf.id})"
    if finding.evidence:
        text += f": {finding.evidence[0].text}"
    return escape(text)


def _unchecked(item: Open) -> str:
    """Return something that was not checked, and how to have it checked next time."""
    text = f"{item.text} → {', '.join(item.unlocks)}"
    if item.how:
        text += f"; {item.how}"
    if item.decides:
        text += f"; decides {'; '.join(item.decides)}"
    return escape(text)


def _about(report: Report) -> str:
    if report.finding and report.finding.leaf.page:
        return f"[about this failure]({report.finding.leaf.page})"
    return ""


def _part(head: str, inner: str) -> str:
    return f"**{head}**\n\n{inner}" if inner else ""


def _folded(report: Report) -> Iterator[str]:
    """Yield what is not needed to act."""
    fixes: tuple[str, ...] = ()
    if report.finding:
        fixes = report.finding.fixes
    notes = (*report.diagnosis.answer_notes, *report.log_notes)
    turns = sum(len(item.turns) for item in report.walks)
    rest = [row for row in report.causes if row not in report.shown_causes]
    parts = (
        (f"The path: {turns} questions", "\n\n".join(map(_walk, report.walks))),
        ("What happened, in order", listed(map(_event, report.events))),
        (f"Further causes: {len(rest)}", _causes(rest)),
        (f"All fixes: {len(fixes)}", listed(map(escape, fixes), "1.")),
        ("What the NaN monitor would have done", listed(map(escape, report.monitor))),
        (f"Not checked, and what to log next time: {len(report.open)}", listed(map(_unchecked, report.open))),
        (f"Notes on the log: {len(notes)}", listed(map(escape, notes))),
    )
    yield from (folded(head, inner) for head, inner in parts if inner)


POSTMORTEM = """# Post-mortem: {title}

Drafted by stabtree from the log. No log can say what follows {mark}

## Summary

{summary}

{meaning}

{mark} what the run was for, and what the trouble cost

## Timeline

{timeline}
- {mark} when it was noticed, by whom or by what; when the run was stopped; when it went on

## Evidence

{evidence}

{mark} links to plots, dashboards and the commit

## Root cause

State: **{state}**

{causes}

{mark} the cause, and how it was proved

## Fix

{do_now}

{mark} what was done, in which commit, and whether the run recovered

## Prevention

{prevention}
- {mark} the change, the alert or the test that keeps it from happening again

## Follow-ups

{follow_ups}
- [ ] {mark} what else is to be done, by whom, until when
"""
MARK = "**To fill in:**"
MAX_FOLLOW_UPS = 5


def postmortem(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a post-mortem that is filled in with what the log says; what only people know is left for them."""
    report = Report(diagnosis, options.exit_code)
    finding, run = report.finding, diagnosis.run
    rows = [("Run", escape(report.facts)), ("Verdict", f"{BADGES[report.badge].word}: {escape(report.title)}")]
    happened = [(item.step, _event(item)) for item in report.events]
    seen = [item.text for item in (*finding.evidence, *finding.precursors)] if finding else []
    if finding and finding.onset_step is not None:
        time = logged_at(run, finding.onset_step)
        rows.append(
            ("Onset", f"{finding.unit} {finding.onset_step:,}" + (f", {time:%Y-%m-%d %H:%M:%S} UTC" if time else ""))
        )
        onset = f"{finding.unit} {finding.onset_step:,}: onset: {escape(finding.leaf.title)}"
        happened.append((finding.onset_step, onset))
    if finding and finding.restart:
        rows.append((f"{finding.unit.capitalize()}s to run again", f"{finding.restart.lost_steps:,}"))
    if run.last_step is not None:
        happened.append((run.last_step, f"{run.unit} {run.last_step:,}: the log ends"))
    rows += [("Author, date", f"{MARK} who wrote this, and when"), ("Status", f"{MARK} open, fixed or closed")]
    first = report.causes[0].judged if report.causes else None
    files = [f"read from {source.path} ({source.format}, {source.rows:,} rows)" for source in run.sources]
    evidence = [listed(map(escape, [*dict.fromkeys(seen), *files])), *map(_walk, report.walks)]
    logs = [_unchecked(item) for item in report.open if item.how]
    text = POSTMORTEM.format(
        title=escape(report.title),
        mark=MARK,
        summary=table(("", ""), rows),
        meaning="\n\n".join(filter(None, [*_beside_the_title(report), escape(report.meaning)])),
        timeline=listed(text for _, text in sorted(happened, key=lambda item: item[0])),
        evidence="\n\n".join(filter(None, evidence)),
        state=f"{escape(first.state)}: {escape(first.cause.text)}" if first and first.state in STRONG else "not known",
        causes=_causes(report.causes),
        do_now=listed(_actions(report.do_now), "- [ ]"),
        prevention=listed(escape(f"The NaN monitor {sentence}.") for sentence in report.monitor[:1]),
        follow_ups=listed(
            [*(f"Look at {_other(item)}" for item in report.also), *(f"Log {log}" for log in logs[:MAX_FOLLOW_UPS])],
            "- [ ]",
        ),
    )
    return re.sub("\n{3,}", "\n\n", text)
