"""A post-mortem that is filled in with what the log says; what only people know is left for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.diagnosis.judged import STRONG
from stabtree.report.markdown.page import actions, beside_the_title, causes, event, other, unchecked, walk
from stabtree.report.markdown.text import escape, listed, paged, table
from stabtree.report.model.build import report as report_of
from stabtree.report.model.run_facts import logged_at
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.text import counted
from stabtree.report.verdicts import BADGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.model.report import CauseRow, Report

MAX_FOLLOW_UPS = 5
MARK = "**To fill in:**"


def postmortem(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return summary, timeline, evidence, root cause with its state, fix, prevention and follow-ups."""
    report = report_of(diagnosis, exit_code=options.exit_code)
    return paged(
        f"# Post-mortem: {escape(report.title)}",
        f"Drafted by stabtree from the log. No log can say what follows {MARK}",
        f"## Summary\n\n{_summary(report)}",
        *beside_the_title(report),
        escape(report.meaning),
        f"{MARK} what the run was for, and what the trouble cost",
        f"## Timeline\n\n{listed(_timeline(report))}",
        f"## Evidence\n\n{_evidence(report)}",
        f"## Root cause\n\n{_root_cause(report.causes)}",
        f"## Fix\n\n{_fix(report)}",
        f"## Prevention\n\n{listed(_prevention(report))}",
        f"## Follow-ups\n\n{listed(_follow_ups(report), '- [ ]')}",
    )


def _summary(report: Report) -> str:
    finding = report.finding
    rows = [("Run", escape(report.facts)), ("Verdict", f"{BADGES[report.badge].word}: {escape(report.title)}")]
    if finding and finding.onset_step is not None:
        time = logged_at(report.diagnosis.run, finding.onset_step)
        at = f", {time:%Y-%m-%d %H:%M:%S} UTC" if time else ""
        rows.append(("Onset", f"{finding.unit} {finding.onset_step:,}{at}"))
    if finding and finding.restart:
        restart = finding.restart
        rows.append((f"{restart.unit.capitalize()}s to run again", f"{restart.lost_steps:,}"))
        if restart.lost_hours is not None:
            rows.append(("Hours lost", f"{restart.lost_hours:,.1f}"))
    rows += [("Author, date", f"{MARK} who wrote this, and when"), ("Status", f"{MARK} open, fixed or closed")]
    return table(("", ""), rows)


def _timeline(report: Report) -> Iterator[str]:
    finding, run = report.finding, report.diagnosis.run
    happened = [(item.step, event(item)) for item in report.events]
    # At a turn one step is both: the best one, from which on it gets worse.
    if finding and finding.last_good_step is not None and finding.last_good_step != finding.onset_step:
        happened.append((finding.last_good_step, f"{finding.unit} {finding.last_good_step:,}: the last good one"))
    if finding and finding.onset_step is not None:
        onset = f"{finding.unit} {finding.onset_step:,}: onset: {escape(finding.leaf.title)}"
        happened.append((finding.onset_step, onset))
    if run.last_step is not None:
        happened.append((run.last_step, f"{run.unit} {run.last_step:,}: the log ends"))
    yield from (text for _, text in sorted(happened, key=lambda item: item[0]))
    yield f"{MARK} when it was noticed, by whom or by what; when the run was stopped; when it went on"


def _evidence(report: Report) -> str:
    finding, sources = report.finding, report.diagnosis.run.sources
    seen = [item.text for item in (*finding.evidence, *finding.precursors)] if finding else []
    files = [f"read from {source.path} ({source.format}, {source.rows:,} rows)" for source in sources]
    parts = [listed(map(escape, [*dict.fromkeys(seen), *files])), *map(walk, report.walks)]
    return "\n\n".join([*filter(None, parts), f"{MARK} links to plots, dashboards and the commit"])


def _root_cause(rows: Sequence[CauseRow]) -> str:
    """Return what the log says of the causes, strongest first; a person has the last word."""
    proof = f"{MARK} the cause, and how it was proved"
    if not rows:
        return f"State: **not known**. The log points to no cause.\n\n{proof}"
    first, state = rows[0].judged, "State: **not known**. The log shows none of these."
    if first.state in STRONG:
        state = f"State: **{escape(first.state)}**: {escape(first.cause.text)}."
    return "\n\n".join([state, causes(rows), proof])


def _fix(report: Report) -> str:
    now = {item.fix for item in report.do_now}
    fixes = [text for text in report.finding.fixes if text not in now] if report.finding else []
    parts = [listed(actions(report.do_now), "- [ ]")]
    if fixes:
        parts.append(f"If that does not help:\n\n{listed(map(escape, fixes))}")
    return "\n\n".join([*parts, f"{MARK} what was done, in which commit, and whether the run recovered"])


def _prevention(report: Report) -> Iterator[str]:
    """Yield what would have shown it earlier, or kept it from costing as much."""
    finding = report.finding
    if finding and finding.onset_step is not None:
        yield from _first_sign(report, finding.onset_step)
    for sentence in report.monitor[:1]:
        yield escape(f"The NaN monitor {sentence}.")
    if finding and finding.restart and finding.restart.assumed:
        yield "Say in the run's manifest where its checkpoints are: here nothing does."
    yield f"{MARK} the change, the alert or the test that keeps it from happening again"


def _first_sign(report: Report, onset: int) -> Iterator[str]:
    """Yield what moved first, where that was before the trouble."""
    first = next((item for item in report.events if item.first), None)
    if first and first.step < onset:
        yield f"Watch {escape(first.metric)}: it moved {counted(onset - first.step, 'step')} before the trouble."


def _follow_ups(report: Report) -> Iterator[str]:
    yield from (f"Look at {other(finding)}" for finding in report.also)
    logged = [item for item in report.open if item.how]
    yield from (f"Log {unchecked(item)}" for item in logged[:MAX_FOLLOW_UPS])
    yield f"{MARK} what else is to be done, by whom, until when"
