"""The outputs of `check`: what to fix before the run, each with its value, its cost, its fix and its source."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, cast

from stabtree.common import extensions
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words, quoted
from stabtree.frameworks.load import framework
from stabtree.judging.verdict import UNREAD
from stabtree.report.markdown import escape, folded, listed, paged, table
from stabtree.report.outputs import DEFAULT_OPTIONS, HEADLINE, JSON, JSONL, RUN, RUNS, RenderOptions, output
from stabtree.report.page import BADGES, Page, clipped, counted, in_lines, new_page
from stabtree.report.screen import one_line
from stabtree.report.words import accepted_notes, badge, finding_title, ignored_counts
from stabtree.report.words import headline as headline_of
from stabtree.tools.check.fix import edits
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stabtree.common.files import Place
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.judging.verdict import Outcome

MAX_LINES = 40
HEAD = 6
INDENT = 2
MAX_FINDINGS = 28  # that are named on a screen
MAX_NOTES = 2
MIN_NAME = 24  # characters of a path
LOUD = (Severity.CRITICAL, Severity.WARNING)
# How many lines of each part of a finding a screen has, in three lengths: a title always has one.
FORMS = ({"now": 2, "line": 2, "cost": 2, "fix": 2, "from": 1}, {"now": 1, "line": 2, "fix": 1}, dict[str, int]())


def screen(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return configurations' diagnoses for a terminal: one on one screen or in full, several in a line each."""
    name, found = outcomes[0]
    if len(outcomes) > 1 or isinstance(found, StabtreeError):
        return _several(outcomes, look)
    page = new_page(look)
    _head(page, found, name)
    if look.full:
        for finding in found.findings:
            page.blank()
            _title(page, finding)
            for head, text in _rows(finding):
                page.item((head, "dim"), [(text, "")], indent=INDENT, head_width=HEAD)
                if head == "now":
                    page.lines([[(line, "")] for line in _quoted(found, finding, look)], indent=INDENT + HEAD)
        page.blank()
        page.line((coverage(found), "heading"))
        for miss in found.missing:
            text = f"{found.tree.questions[miss.id].ask} {miss.reason}"
            page.line((f"{miss.id} ", "id"), (text, ""), indent=INDENT, hanging=INDENT)
        for note in _all_notes(found, name):
            page.line((note, "dim"), hanging=INDENT)
    else:
        _short(page, found, name, look)
    page.line((_closing(found, look), "heading" if found.findings else ""))
    return page.text()


def _short(page: Page, found: Diagnosis, name: str, look: RenderOptions) -> None:
    """Add a diagnosis on a screen: the worst findings in the longest form that leaves a title for each of the rest."""
    loud = [finding for finding in found.findings if finding.leaf.severity in LOUD]
    quiet = [finding for finding in found.findings if finding.leaf.severity not in LOUD]
    more, loud = len(loud) - MAX_FINDINGS, loud[:MAX_FINDINGS]
    accepted = accepted_notes(found)
    notes = [*_read_from(found, name), *accepted, *found.run.notes[:MAX_NOTES]]
    # The verdict, the last two lines, and what parts them.
    room = MAX_LINES - 4 - (more > 0) - len(notes) - 2 * bool(quiet)
    was_long, parted, lines = True, False, list[tuple[str, str]]()
    for place, finding in enumerate(loud):
        rest = len(loud) - place - 1
        for form in FORMS:
            lines = _lines(page, found, finding, form, look)
            # The longest form only where all others can be brief.
            parted = form is FORMS[0] or was_long
            if parted + 1 + len(lines) + (3 if form is FORMS[0] else 1) * rest <= room:
                break
        was_long = form is FORMS[0]
        if parted:
            page.blank()
        _title(page, finding)
        for head, line in lines:
            page.lines([[(f"{head:<{HEAD}}", "dim"), (line, "")]], indent=INDENT)
        room -= parted + 1 + len(lines)
    if more > 0:
        page.line((f"and {more} more (--full)", ""))
    if quiet:
        page.blank()
    if len(quiet) > room + 1:
        page.item(("note", "note word"), [(", ".join(one.leaf.id for one in quiet), "id")], indent=0, head_width=HEAD)
        quiet = []
    for finding in quiet:
        leaf, text = finding.leaf.id, page.plain(f"{finding_title(finding)}: {_decisive(finding)}")
        text = clipped(text, page.width - HEAD - len(leaf) - 3)
        page.lines([[(f"{'note':<{HEAD}}", "note word"), (f"{text} ", ""), (f"({leaf})", "id")]])
    if found.findings:
        page.blank()
    told = ([(clipped(page.plain(note), page.width), "dim")] for note in notes)
    page.lines([[(coverage(found, page.width), "")], *told])


def _lines(
    page: Page, found: Diagnosis, finding: Incident, form: Mapping[str, int], look: RenderOptions
) -> list[tuple[str, str]]:
    """Return the rows of a finding in a form: of each line what stands before it, and the line."""
    lines: list[tuple[str, str]] = []
    for head, text in _rows(finding):
        if head in form:
            wrapped = in_lines(page.plain(text), page.width - INDENT - HEAD, form[head])
            lines += zip([head, *[""] * len(wrapped)], wrapped, strict=False)
        if head == "now" and "line" in form:
            lines += (("", line) for line in _quoted(found, finding, look))
    return lines


def _quoted(found: Diagnosis, finding: Incident, look: RenderOptions) -> tuple[str, ...]:
    """Return the line of the setting that decided, and carets under its value; nothing where that is not known."""
    place = place_of(found, finding)
    return quoted(place, look.width - INDENT - HEAD, ascii=look.ascii) if place else ()


def _several(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return a line for each configuration, and one for each of its findings."""
    page = new_page(look)
    for outcome in outcomes:
        found = outcome.found
        if isinstance(found, StabtreeError):
            unread = f" {BADGES[UNREAD].word} "
            page.line((unread, UNREAD), ("  ", ""), (f"{outcome.name}: {found.problem}", ""), hanging=INDENT)
            continue
        _head(page, found, outcome.name)
        for finding in found.findings:
            severity, title = finding.leaf.severity, f"  {finding_title(finding)} "
            fix = next((f": {action.text}" for action in finding.actions), "")
            pieces = [(str(severity), f"{severity} word"), (title, ""), (f"({finding.leaf.id})", "id"), (fix, "dim")]
            page.line(*pieces, indent=INDENT, hanging=INDENT)
    counts = Counter(outcome.verdict for outcome in outcomes)
    verdicts = ", ".join(f"{count} {word}" for word, count in counts.items())
    code = f" · exit {look.exit_code}" if look.exit_code is not None else ""
    page.line((f"{len(outcomes)} configurations: {verdicts}{code}", "heading"))
    return page.text()


def _head(page: Page, found: Diagnosis, name: str) -> None:
    """Add the verdict and the summary in a line; of a long path only the end, so that they fit."""
    verdict, text, shown = badge(found), _summary(found), page.plain(name)
    word = f" {BADGES[verdict].word} "
    room = max(page.width - INDENT - len(word) - len("  : ") - len(page.plain(text)), MIN_NAME)
    if len(shown) > room:
        shown = f"…{shown[1 - room :]}"
    page.line((word, verdict), ("  ", ""), (f"{shown}: {text}", "heading"), hanging=INDENT)


def _title(page: Page, finding: Incident) -> None:
    word, leaf = str(finding.leaf.severity), f" ({finding.leaf.id})"
    title = clipped(page.plain(finding_title(finding)), page.width - len(word) - 2 - len(leaf))
    page.lines([[(word, f"{word} word"), (f"  {title}", "heading"), (leaf, "id")]])


def _rows(finding: Incident) -> Iterator[tuple[str, str]]:
    """Yield the value that decided, what it costs to leave it, what to do, and who says so."""
    yield "now", _decisive(finding)
    yield "cost", finding.leaf.why
    yield from (("fix", action.text) for action in finding.actions)
    yield "from", finding.leaf.source


def _decisive(finding: Incident) -> str:
    """Return the text of the evidence that decided: that of the walk's last question."""
    return finding.evidence[-1].text if finding.evidence else ""


def place_of(found: Diagnosis, finding: Incident) -> Place | None:
    """Return where the first setting that decided stands; None where all are defaults, or from a log."""
    text = _decisive(finding)
    settings = (item for item in found.run.config.values() if f"({item.source})" in text)
    places = {text.index(f"({item.source})"): item.place for item in settings if item.place}
    return next(iter(map(places.get, sorted(places))), None)


def _all_notes(found: Diagnosis, name: str) -> tuple[str, ...]:
    return (*_read_from(found, name), *accepted_notes(found), *found.run.notes)


def _read_from(found: Diagnosis, name: str) -> Iterator[str]:
    """Yield a line for the trainer, if it is known, and one for the files, if they are not what was named."""
    trainer = found.run.setting("framework")
    if trainer:
        yield f"Trainer: {framework(str(trainer)).name}."
    files = [source.path for source in found.run.sources]
    if ", ".join(files) != clean(name):
        folder = f"{clean(name).rstrip('/')}/"
        yield f"Read: {in_words([file.removeprefix(folder) for file in files])}."


def coverage(found: Diagnosis, width: int = 200) -> str:
    """Return how many rules were judged and which settings are missing, those that most rules ask for first.

    Args:
        found: the diagnosis.
        width: how many characters fit.
    """
    text = f"{counted(found.judged, 'rule')} judged"
    if not found.missing:
        return text
    text = f"{text}, {len(found.missing)} not"
    keys = [key for key, _ in Counter(key for miss in found.missing for key in miss.metrics).most_common()]
    for shown in range(len(keys), 0, -1):
        rest = len(keys) - shown
        named = f"{', '.join(keys[:shown])} and {rest} more" if rest else in_words(keys)
        if len(f"{text}: {named} not said") <= width:
            return f"{text}: {named} not said"
    return text


def _summary(found: Diagnosis) -> str:
    """Return the headline of a single finding; of several the number of each severity."""
    counts = Counter(str(finding.leaf.severity) for finding in found.findings)
    if counts.total() < 2 or found.ignored:
        return headline_of(found)
    # `critical` is no noun, so it has no plural.
    texts = (f"{n} {word}" if word == Severity.CRITICAL else counted(n, word) for word, n in counts.items())
    return ", ".join(texts)


def _closing(found: Diagnosis, look: RenderOptions) -> str:
    """Return the last line: the verdict, the findings, how many `--fix` would settle, the exit code."""
    parts = [BADGES[badge(found)].word.lower()]
    if found.findings:
        parts[0] += f": {found.findings[0].leaf.id}"
    if len(found.findings) > 1:
        parts[0] += f" and {len(found.findings) - 1} more"
    if found.ignored:
        parts.append(ignored_counts(found))
    count = sum(1 for _ in edits(found))
    if count:
        parts.append(f"{count} can be fixed (--fix)")
    return " · ".join([*parts, *([f"exit {look.exit_code}"] if look.exit_code is not None else [])])


def headline(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return one line for each configuration."""
    if len(outcomes) > 1:
        return _data(HEADLINE, outcomes, look)
    name, found = outcomes[0]
    return _several(outcomes, look) if isinstance(found, StabtreeError) else one_line(found, name, look)


def markdown(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the diagnoses for a pull request, in the order of the paths: a table of what to fix each."""
    parts = []
    for name, found in outcomes:
        if isinstance(found, StabtreeError):
            parts.append(f"### {BADGES[UNREAD].word}: {escape(name)}: {escape(found.problem)}\n")
            continue
        rows = [
            (
                f"**{finding.leaf.severity}**",
                f"{escape(finding_title(finding))} ({escape(finding.leaf.id)})",
                *map(escape, (_decisive(finding), finding.leaf.why)),
                "<br>".join(escape(action.text) for action in finding.actions),
                escape(finding.leaf.source),
            )
            for finding in found.findings
        ]
        missing = [escape(f"{m.id}: {found.tree.questions[m.id].ask} {m.reason}") for m in found.missing]
        judged = escape(coverage(found))
        parts.append(
            paged(
                f"### {BADGES[badge(found)].word}: {escape(name)}: {escape(headline_of(found))}",
                table(("", "what", "now", "what it costs", "fix", "source"), rows) if rows else "",
                folded(judged, listed(missing)) if missing else judged,
                listed(map(escape, _all_notes(found, name))),
                f"**{escape(_closing(found, look))}**",
            )
        )
    return "\n".join(parts)


def _data(kind: str, outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return what machines read of runs, of a single one as of a run that is diagnosed alone."""
    if len(outcomes) > 1:
        return "".join(output(RUNS, kind)([extensions.function("record_of")(one, one.name) for one in outcomes], look))
    return str(output(RUN, kind)(cast("Diagnosis", outcomes[0].found), look))


json: Callable[..., str] = partial(_data, JSON)
jsonl: Callable[..., str] = partial(_data, JSONL)
