"""The whole of a report as sections of plain text: what `--full`, Markdown and the page print, in one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.report.advice import do_now
from stabtree.report.explain import reference_to
from stabtree.report.page import BADGES, CAUSE_SIGNS, TICK_SIGNS
from stabtree.report.words import FURTHER, answer_word, because, in_order, seen, step_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis, Incident, JudgedCause
    from stabtree.report.model import Open, Report, Walk

BULLET, NUMBER, PARAGRAPH = "-", "1.", ""


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
        Topic("What it means", tuple(meaning(report)), PARAGRAPH, background=False),
        Topic("Do now", tuple(to_do(report)), NUMBER, background=False),
        Topic("Causes", (*map(cause_entry, report.causes), *_texts(report.undecided)), background=False),
        Topic("Log next", _texts(report.log_next, *report.how_to_log), PARAGRAPH, background=False),
        Topic("Also found", tuple(map(other_entry, report.also)), background=False),
        Topic("Not checked, and what to log next time", tuple(map(open_entry, report.open)), background=not unjudged),
        Topic("Path", tuple(path(report))),
        Topic("What happened, in order", tuple(_events(report))),
        Topic("Read on", tuple(links)),
        Topic("NaN monitor", _texts(*report.monitor)),
        Topic("Trees", tuple(_trees(diagnosis))),
        Topic("Your answers", _texts(*answers)),
        Topic("Unexplained", _texts(*report.unexplained)),
        Topic("Notes on the log", _texts(*others)),
    ]
    return [section for section in found if section.entries]


def _texts(*texts: str) -> tuple[Item, ...]:
    return tuple(Item(text) for text in texts if text)


def meaning(report: Report) -> Iterator[Item]:
    """Yield what the finding means, how else it shows, and what became of each numbered section."""
    tree = report.diagnosis.tree
    ticks = " · ".join(f"§{id_} {TICK_SIGNS[tick]} {tree.section(id_).title}" for id_, tick in report.ticks)
    yield from _texts(report.meaning, report.also_seen, ticks)


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
    for event, text in in_order(report.events):
        first = "◀ first" * event.first
        yield Item(f"{text} {first}".rstrip(), f"{event.unit} {event.step:,}", "id", strong=first)


def _trees(diagnosis: Diagnosis) -> Iterator[Item]:
    """Yield which trees were walked, and which were not and why; nothing where there is only one."""
    first, *others = diagnosis.trees
    walked = [first.name, *(f"{tree.name} ({tree.why})" for tree in others if tree.walked)]
    passed = [f"{tree.name} ({tree.why})" for tree in others if not tree.walked]
    for head, names in (("walked", walked), ("not walked", passed)):
        if names and others:
            yield Item("; ".join(names), head, "dim")
