"""The whole of a report as sections of plain text: what `--full`, Markdown and the page print, in one order."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.figures import figure
from stabtree.common.passes import row_of
from stabtree.diagnosis.timeline import FOLLOWS
from stabtree.measures.movers import LOST
from stabtree.report.advice import do_now
from stabtree.report.explain import reference_to
from stabtree.report.page import BADGES, CAUSE_SIGNS, TICK_WORDS
from stabtree.report.words import (
    FURTHER,
    answer_word,
    because,
    by_group,
    ended,
    in_order,
    named,
    progress,
    restart_brief,
    seen,
    sentences,
    step_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Happening, Incident, JudgedCause
    from stabtree.report.model import Open, Report, Walk
    from stabtree.run import Run

BULLET, NUMBER, PARAGRAPH = "-", "1.", ""
ONSET = "onset of:"  # how an event begins that no move of a series shows
COURSE = "What happened, in order"
MAX_TOLD = 3  # events that the story names
PAST = {"goes": "went", "grows": "grew", "shrinks": "shrank", "rises": "rose"}
PAST |= {"falls": "fell", "jumps": "jumped", "drops": "dropped"}
_MOVE = re.compile(rf"({'|'.join(PAST)}) .*?(\S+) → ([^\s,]+(?:,\d+)*)")
_PRESENT = re.compile(rf"\b({'|'.join(PAST)})\b")


class Item(Struct, frozen=True):
    """One thing of a section.

    Attributes:
        text: what is said; commands stand in backticks.
        head: what stands before it, such as an id, a state or a step; may be empty.
        style: the style of the head, one of `page.STYLES`.
        strong: the part of the text that matters most; may be empty.
        below: what is said below it, a line each.
    """

    text: str
    head: str = ""
    style: str = ""
    strong: str = ""
    below: tuple[str, ...] = ()

    def parts(self) -> tuple[str, str, str]:
        """Return the text before, in and after its strong part."""
        return self.text.partition(self.strong) if self.strong else (self.text, "", "")


class Topic(Struct, frozen=True):
    """A part of a report under a heading.

    Attributes:
        title: its heading.
        entries: what it holds.
        mark: how its entries are listed: `BULLET`, `NUMBER` or `PARAGRAPH`.
        background: whether nobody needs it to act: Markdown and the page fold it.
    """

    title: str
    entries: tuple[Item, ...]
    mark: str = BULLET
    background: bool = True


def sections(report: Report) -> list[Topic]:
    """Return what a report says below its head; sections with nothing in them are left out."""
    diagnosis = report.diagnosis
    see = report.finding.leaf.see if report.finding else ()
    links = [Item(f"See {reference_to(diagnosis.tree, link)}") for link in see]
    unjudged = report.finding is None
    answers, others = diagnosis.answer_notes, report.log_notes[len(report.unexplained) :]
    found = [
        Topic("What it means", _texts(report.meaning, report.also_seen), PARAGRAPH, background=False),
        Topic("Do now", tuple(to_do(report)), NUMBER, background=False),
        Topic("Causes", (*map(cause_entry, report.causes), *_texts(report.undecided)), background=False),
        Topic("Log next", _texts(report.log_next, *report.how_to_log), PARAGRAPH, background=False),
        Topic("Also found", tuple(map(other_entry, report.also)), background=False),
        Topic("Not checked, and what to log next time", tuple(map(open_entry, report.open)), background=not unjudged),
        Topic("Checked", tuple(checked(report))),
        Topic("Path", tuple(path(report))),
        Topic(COURSE, tuple(_events(report)), NUMBER),
        Topic("Read on", tuple(links)),
        Topic("NaN monitor", _texts(*report.monitor)),
        Topic("Your answers", _texts(*answers)),
        Topic("Unexplained", _texts(*report.unexplained)),
        Topic("Notes on the log", _texts(*others)),
    ]
    return [section for section in found if section.entries]


def story(report: Report) -> str:
    """Tell a run in a sentence or three with its numbers: what moved first, what broke, how it ended, the restart."""
    run, finding = report.diagnosis.run, report.finding
    if finding is None or finding.onset_step is None:
        seen = finding.evidence[-1].text if finding and finding.is_alarm and finding.evidence else progress(run)
        return sentences(_spoken(seen, run), report.passed)
    groups = [group[0] for group in by_group(report.diagnosis.timeline)]
    shown = [event for event in groups if event.metric.partition("/")[0] not in FOLLOWS] or groups
    own = [event for event in shown if event.metric == finding.metric][:1]
    before = [event for event in shown if event not in own and event.step <= finding.onset_step]
    told = sorted([*before[: MAX_TOLD - 1], *own], key=attrgetter("step"))
    parts = [_told(event, run, finding) for event in told]
    end = ""
    if finding.is_alarm and not any(event.text.startswith(LOST) for event in told):
        end = ended(run, finding)
    moved = re.sub(r"\b(?:step|epoch|row)s? (?=\d)", "", ", ".join(parts))
    course = (end, moved) if moved.endswith("meanwhile") else (moved, end)
    return sentences(*course, re.sub(r"^use (?=\d)", "use the checkpoint of ", restart_brief(finding)))


def _told(event: Happening, run: Run, finding: Incident) -> str:
    """Return what a series did in the past tense, with its numbers and steps."""
    name, series, at = named(event.metric), run.find(event.metric), f"{event.step:,}"
    if series is not None and event.text.startswith(LOST):
        word, rest = figure(float(series.values[row_of(series.steps, event.step)][0])), event.text[len(LOST) :]
        return f"{name} is {word} {'at' if rest else 'from'} {at}{rest}"
    if move := _MOVE.match(event.text):
        gradual = move[1] not in ("jumps", "drops") and event.step < (onset := finding.onset_step or 0)
        when = f"{at} to {onset:,}" if gradual else at
        return f"{name} {PAST[move[1]]} from {move[2]} to {move[3]} ({when})"
    # An onset that no move of a series shows has only the title of its finding, with its step: what was seen says more.
    text = finding.parts[0].evidence[-1].text if event.text.startswith(ONSET) else event.text
    return _PRESENT.sub(lambda verb: PAST[verb[0]], _spoken(re.split(r"; | \(", text)[0], run))


def _spoken(text: str, run: Run) -> str:
    """Return a sentence with the series that it begins with as a sentence calls it."""
    first, _, rest = text.partition(" ")
    return f"{named(first)} {rest}" if first in run.series else text


def _texts(*texts: str) -> tuple[Item, ...]:
    return tuple(Item(text) for text in texts if text)


def checked(report: Report) -> Iterator[Item]:
    """Yield the numbered sections of the tree by what became of them."""
    tree = report.diagnosis.tree
    for tick, words in TICK_WORDS.items():
        titles = [tree.section(id_).title for id_, became in report.ticks if became is tick]
        if titles:
            yield Item("; ".join(titles), words, "dim")


def to_do(report: Report) -> Iterator[Item]:
    """Yield what to do in order, each with its reason; below a question what may come out of it."""
    for action, reason in zip(report.do_now, because(report.do_now), strict=True):
        branches = [f"{answer} → {do}" for answer, do in action.branches]
        strong = action.text if branches else action.strong
        yield Item(action.text, strong=strong, below=tuple(filter(None, (*branches, reason))))


def cause_entry(item: JudgedCause) -> Item:
    """Return a cause with all that was seen of it."""
    head = f"{CAUSE_SIGNS[item.state]} {item.state}"
    return Item(item.cause.says, head, str(item.state), below=tuple(seen.text for seen in item.evidence))


def other_entry(finding: Incident) -> Item:
    """Return a further finding: what was seen, what it means, and what to do."""
    leaf = finding.leaf
    seen, fixes = (item.text for item in finding.evidence), (action.text for action in do_now(finding)[:1])
    text = f"{step_prefix(finding)}{leaf.title} ({leaf.id})"
    return Item(text, BADGES[leaf.severity].word, str(leaf.severity), below=(*seen, leaf.why, *fixes))


def open_entry(item: Open) -> Item:
    """Return something that was not checked, how to log it, and what that would decide."""
    decides = f"decides {'; '.join(item.decides)}" * bool(item.decides)
    unlocks = ", ".join(item.unlocks)
    text = f"{item.text} → {unlocks}" if item.how else f"{unlocks}: {item.text}"
    return Item(text, below=tuple(filter(None, (item.how, decides))))


def path(report: Report) -> Iterator[Item]:
    """Yield the questions of the path, and of the walk that the verdict rests on where that is another."""
    for walk in report.walks:
        if walk is not report.walks[0]:
            yield Item(FURTHER)
        yield from walk_entries(walk)


def walk_entries(walk: Walk) -> Iterator[Item]:
    """Yield the questions of a walk, each with its answer and what decided it, and where the walk ended."""
    for visit, *others in walk.groups:
        question = visit.question
        if others:
            ids = ", ".join([question.id, *(other.question.id for other in others)])
            yield Item(f"{len(others) + 1} questions for a person ({ids}): --interactive asks them", "not asked", "dim")
        else:
            source = " (answered by a person)" * (visit.given_by == "person")
            yield Item(question.ask + source, f"{question.id} {answer_word(visit)}", "id", below=seen(visit))
    yield Item(f"→ {walk.ends} ({walk.leaf.of} · {walk.leaf.id})", strong=walk.ends)


def _events(report: Report) -> Iterator[Item]:
    for event, text in in_order(report.diagnosis.timeline):
        first = "◀ first" * event.first
        yield Item(f"{text} {first}".rstrip(), f"{event.unit} {event.step:,}", "id", strong=first)
