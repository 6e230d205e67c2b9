"""A post-mortem that is filled in with what the log tells; what only people know is marked as theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.diagnosis.result import STRONG
from stabtree.render.look import LOOK, Look
from stabtree.render.markdown.page import actions, causes, event, other, unchecked, walk
from stabtree.render.markdown.text import escape, listed, paged, table
from stabtree.render.report.build import report
from stabtree.render.report.words import clock, known
from stabtree.render.sections.monitor import sentences
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.render.report.model import CauseRow, Report

MOST_FOLLOW_UPS = 5


def postmortem(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """Summary, timeline, evidence, root cause with its state, fix, prevention and follow-ups."""
    told = report(diagnosis, exit_code=look.exit_code)
    return paged(
        f"# Post-mortem: {escape(told.title)}",
        f"Drafted by stabtree from the log. What stands after {_mark()} no log can tell.",
        f"## Summary\n\n{_summary(told)}",
        escape(told.earlier),
        escape(told.plainly),
        f"**Careful:** {escape(told.careful)}" if told.careful else "",
        listed(map(escape, known(told.diagnosis))),
        escape(told.why),
        _fill("what the run was for, and what the trouble cost"),
        f"## Timeline\n\n{listed(_timeline(told))}",
        f"## Evidence\n\n{_evidence(told)}",
        f"## Root cause\n\n{_root_cause(told.causes)}",
        f"## Fix\n\n{_fix(told)}",
        f"## Prevention\n\n{listed(_prevention(told))}",
        f"## Follow-ups\n\n{listed(_follow_ups(told), '- [ ]')}",
    )


def _mark() -> str:
    return "**To fill in:**"


def _fill(what: str) -> str:
    """A place that a person fills."""
    return f"{_mark()} {what}"


def _summary(told: Report) -> str:
    finding, restart = told.finding, told.finding.restart if told.finding else None
    rows = [("Run", escape(told.facts)), ("Verdict", f"{LOOKS[told.badge].word}: {escape(told.title)}")]
    if finding and finding.onset_step is not None:
        at = clock(told.diagnosis.run, finding.onset_step)
        rows.append(("Onset", f"{finding.unit} {finding.onset_step:,}{f', {at:%Y-%m-%d %H:%M:%S} UTC' if at else ''}"))
    if restart:
        rows.append((f"{restart.unit.capitalize()}s to run again", f"{restart.lost_steps:,}"))
    if restart and restart.lost_hours is not None:
        rows.append(("Hours lost", f"{restart.lost_hours:,.1f}"))
    rows += [("Author, date", _fill("who wrote this, and when")), ("Status", _fill("open, mended or closed"))]
    return table(("", ""), rows)


def _timeline(told: Report) -> Iterator[str]:
    finding = told.finding
    happened = [(item.step, event(item)) for item in told.events]
    if finding and finding.last_good_step is not None:
        happened.append((finding.last_good_step, f"{finding.unit} {finding.last_good_step:,}: the last good one"))
    if finding and finding.onset_step is not None:
        happened.append(
            (finding.onset_step, f"{finding.unit} {finding.onset_step:,}: onset: {escape(finding.leaf.title)}")
        )
    last = told.diagnosis.run.last_step
    if last is not None:
        happened.append((last, f"{told.diagnosis.run.unit} {last:,}: the log ends"))
    yield from (text for _, text in sorted(happened, key=lambda item: item[0]))
    yield _fill("when it was noticed, by whom or by what; when the run was stopped; when it went on")


def _evidence(told: Report) -> str:
    finding = told.finding
    seen = [item.text for item in (*finding.evidence, *finding.precursors)] if finding else []
    files = [
        f"read from {source.path} ({source.format}, {source.rows:,} rows)" for source in told.diagnosis.run.sources
    ]
    parts = [listed(map(escape, [*dict.fromkeys(seen), *files])), *map(walk, told.walks)]
    return "\n\n".join([*(part for part in parts if part), _fill("links to plots, dashboards and the commit")])


def _root_cause(rows: Sequence[CauseRow]) -> str:
    """What the log says of the causes, strongest first, and that a person has the last word."""
    if not rows:
        return f"State: **not known**. The log points to no cause.\n\n{_fill('the cause, and how it was proved')}"
    first = rows[0]
    strong = first.judged.state in STRONG
    said = f": {escape(first.judged.cause.text)}" if strong else ". The log shows none of these"
    state = escape(first.judged.state) if strong else "not known"
    return "\n\n".join([f"State: **{state}**{said}.", causes(rows), _fill("the cause, and how it was proved")])


def _fix(told: Report) -> str:
    now = {item.fix for item in told.do_now}
    fixes = [text for text in told.finding.fixes if text not in now] if told.finding else []
    parts = [listed(actions(told.do_now), "- [ ]"), f"If that does not help:\n\n{listed(map(escape, fixes))}"]
    return "\n\n".join(
        [*parts[: 1 + bool(fixes)], _fill("what was done, in which commit, and whether the run recovered")]
    )


def _prevention(told: Report) -> Iterator[str]:
    """What would have told of it earlier, or kept it from costing as much."""
    finding, first = told.finding, next((item for item in told.events if item.first), None)
    if finding and first and finding.onset_step is not None and first.step < finding.onset_step:
        lead = finding.onset_step - first.step
        yield f"Watch {escape(first.metric)}: it moved {lead:,} step{'s' * (lead > 1)} before the trouble."
    if told.diagnosis.monitor:
        yield escape(f"The NaN monitor {sentences(told.diagnosis.monitor, told.diagnosis.run.unit)[0]}.")
    if finding and finding.restart and finding.restart.assumed:
        yield "Say in the run's manifest where its checkpoints are: here it had to be assumed."
    yield _fill("the change, the alert or the test that keeps it from happening again")


def _follow_ups(told: Report) -> Iterator[str]:
    yield from (f"Look at {other(finding)}" for finding in told.also)
    logged = [item for item in told.open if item.how]
    yield from (f"Log {unchecked(item)}" for item in logged[:MOST_FOLLOW_UPS])
    yield _fill("what else is to be done, by whom, until when")
