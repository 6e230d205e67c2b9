"""The failures: a page for each that is met often, one page a tree for all others, and a gallery of their curves."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from html import escape
from itertools import chain
from typing import TYPE_CHECKING

from docs.site import markup as md
from docs.site.causes import evidence
from docs.site.examples import COARSE, FINE, curves, examples, near, terminal, thumbnail
from docs.site.markup import code, finding, listed, part, prose, shipped, text, to
from docs.site.nodes import answers, fixes, rule
from stabtree.common.answer import UNKNOWN
from stabtree.common.endings import table as endings
from stabtree.report.explain import action_in_words, usual_actions, usual_causes
from stabtree.report.svg import style
from stabtree.tree.load import load_tree
from stabtree.tree.model import EVENTS, Severity, Take

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from docs.site.examples import Example
    from stabtree.diagnosis.result import Visit
    from stabtree.tree.model import Leaf, Question, Section
    from stabtree.tree.tables import Cause

INTRO = """A picture for each thing that stabtree can find: the curve of a run that ends there, or the message that a
trainer printed. Look for the one that resembles yours. Its page shows how the failure is told from its neighbours, what
may be behind it, what fixes it and where to restart. Nothing here is drawn by hand: the runs are those of the tests,
and the reports are what stabtree prints of them."""
TAKES = {
    Take.BEFORE: "From the newest checkpoint that is older than the trouble.",
    Take.UNLESS_OVER: "From the newest checkpoint that is older than the trouble; nowhere, if the loss came back.",
    Take.LOW: "From the newest checkpoint up to the last good step, where the run was at its best.",
    Take.BEST: "Keep the checkpoint nearest to the best evaluation; nothing is trained on from there.",
    Take.NEWEST: "From the newest checkpoint: the trouble has not touched the weights.",
}
MAX_SEEN, MAX_ALIKE, MAX_CAUSES, MAX_EVIDENCE = 3, 6, 5, 3
MAX_QUOTED = 230  # characters


def pages() -> dict[str, str]:
    """Return the content of each page and file by its path."""
    shared: dict[str, list[str]] = defaultdict(list)
    made = {"failures/index.md": gallery(), "_static/curves.css": style()}
    for leaves in failures():
        path, _, anchor = md.address(leaves[0]).replace(".html", ".md").partition("#")
        if anchor:
            labels = "".join(f"({leaf.id})=\n" for leaf in leaves)
            shared[path].append(labels + part(_title(leaves[0]), *_parts(leaves, level=0)))
        else:
            made[path] = md.page(_title(leaves[0]), *_parts(leaves, level=2), orphan=True)
    for path, sections in shared.items():
        title = f"{text(load_tree(path[len('failures/') : -len('.md')]).title)}: findings"
        made[path] = md.page(title, "[Failures](index.md)", *sections, orphan=True)
    return made


@cache
def failures() -> list[list[Leaf]]:
    """Return the failures in the order of the trees; those of one question share a section."""
    groups: dict[tuple[object, ...], list[Leaf]] = defaultdict(list)
    for leaf in shipped().leaves.values():
        if leaf.page:
            groups[(leaf.of, leaf.fix) if "#" in leaf.page and leaf.fix else (leaf.id,)].append(leaf)
    return [*groups.values()]


def _title(leaf: Leaf) -> str:
    """Return the title of a failure, with its id if others have the same: the search shows nothing else."""
    same = [leaves for leaves in failures() if leaves[0].title == leaf.title]
    return text(leaf.title if len(same) == 1 else f"{leaf.title} ({leaf.id})")


def section_of(leaf: Leaf) -> Section:
    """Return the section that a failure belongs to."""
    tree = shipped()
    return tree.section((tree.questions.get(leaf.of) or tree.groups[leaf.of]).section)


def leading(leaf: Leaf) -> list[Question]:
    """Return the questions that lead to a failure."""
    return [question for question in shipped().questions.values() if leaf.id in question.go.values()]


def _parts(leaves: Sequence[Leaf], level: int) -> Iterator[str]:
    """Yield what is known of a failure: all of it on a page of its own, the essentials on one that it shares."""
    leaf, *others = leaves
    example, home = examples().get(leaf.id), section_of(leaf).tree
    if level:
        yield f"[Failures](index.md) › [{text(load_tree(home).title)}](../nodes/{home}.md)"
    yield f"{md.badge(leaf.severity)} {code(f'stabtree explain {leaf.id}')}"
    yield prose(leaf.why)
    yield listed(
        f"{md.badge(other.severity)} {code(other.id)} {text(other.title)}: {prose(other.why)}" for other in others
    )
    if example and example.is_log:
        yield f"```text\n{quoted(example)}\n```"
    elif example and (picture := curves(example, FINE if level else COARSE)):
        yield md.raw(f'<div class="picture">{picture}</div>')
        yield "*A real small run, kept as a fixture.*" if example.command else "*A made run of the tests.*"
    texts = [leaf.fix] * bool(leaf.fix) + [*map(action_in_words, usual_actions(leaf))]
    after = "\n\n".join(filter(None, [fixes(texts[1:]), _escalation(leaf)]))
    if not level:
        yield "; ".join(f"{to(question.id)} {prose(question.ask)}" for question in leading(leaf))
        yield part("What to do", fixes(texts[:1], "-"), _restart(leaf, example), level=0)
        yield md.folded("What may be behind it", _causes(usual_causes(leaf)[:MAX_CAUSES], example))
        yield md.folded("More to do, and sources", "\n\n".join(filter(None, [after, _sources(leaf)])))
        return
    seen = _walk(example.visits) if example else []
    yield part("How to recognise it", listed(seen[-1:]), *map(rule, leading(leaf)))
    rest = usual_causes(leaf)[MAX_CAUSES:]
    yield part(
        "What may be behind it",
        _causes(usual_causes(leaf)[:MAX_CAUSES], example),
        md.folded(f"Rarer causes: {len(rest)}", _causes(rest, example)),
    )
    yield part("What to do first", fixes(texts[:1], "-"), _restart(leaf, example))
    yield part(
        "More",
        md.folded("If that does not help", after),
        md.folded("The questions that lead here, with the answers of this run", listed(seen, "1.")),
        md.folded("How it is told from its neighbours", "\n\n".join(filter(None, _neighbours(leaf)))),
        md.folded("What stabtree prints", f"{md.raw(terminal(example))}\n\n{_heading_it(example)}" if example else ""),
        md.folded("Sources, and where to read on", _sources(leaf)),
    )


def quoted(example: Example) -> str:
    """Return the message that tells of a failure, cut to a few lines."""
    evidence = example.visits[-1].answer.evidence
    words = " ".join(evidence[0].text.split()) if evidence else ""
    return words if len(words) <= MAX_QUOTED else f"{words[: MAX_QUOTED - 1]}…"


def _walk(visits: Sequence[Visit]) -> list[str]:
    """Return the questions that led to a failure, each with its answer and what was seen."""
    lines = []
    for visit in visits:
        last = visit is visits[-1]
        if last or visit.answer.verdict != UNKNOWN:
            evidence = visit.answer.evidence[: MAX_SEEN if last else 1]
            seen = "; ".join(prose(item.text) for item in evidence) or prose(visit.answer.reason)
            verdict = text(visit.answer.verdict.replace("_", " "))
            by = " (a person's answer)" if visit.given_by == "person" else ""
            lines.append(f"{to(visit.question.id)} {prose(visit.question.ask)} **{verdict}**{by}: {seen}")
    return lines


def _heading_it(example: Example) -> str:
    """Return which other finding heads the report of the run, if one does."""
    first = example.diagnosis.findings[0] if example.finding else None
    if first is None or first.leaf.id == example.leaf.id:
        return ""
    why = "It is one event with" if example.main is first else "The run has a worse finding, which heads the report:"
    return f"{why} {to(first.leaf.id, first.leaf.title)}."


def _neighbours(leaf: Leaf) -> Iterator[str]:
    """Yield what decides between a failure and others: the question, runs that come close, what else looks like it."""
    questions = leading(leaf)
    for question in questions:
        yield f"{to(question.id)} **{prose(question.ask)}**\n\n{answers(question)}"
    before = [other for other in shipped().leaves.values() if other.escalate == leaf.id]
    if not questions:
        applied = ", ".join(sorted({code(f"--applied {other.of}") for other in before}))
        yield f"No question leads here. It takes the place of these if their fixes did not help ({applied}):"
        yield listed(map(finding, before))
    runs = near(leaf).items()
    rows = ((prose(bar), finding(run.findings[0].leaf) if run.findings else "nothing") for bar, run in runs)
    yield part("Runs that come close", md.table(("all but", "what is found instead"), rows), level=0)
    beside = {leaf.id, *(end for question in questions for end in question.go.values()), *(item.id for item in before)}
    alike = [other for other in shipped().leaves.values() if other.page and {*other.events} & {*leaf.events}]
    alike = [other for other in alike if other.id not in beside]
    alike.sort(key=lambda other: section_of(other).tree != section_of(leaf).tree)
    yield part("What else looks like it", listed(map(finding, alike[:MAX_ALIKE])), level=0)


def _causes(causes: Sequence[Cause], example: Example | None) -> str:
    """Return a table of causes: each with what speaks most for it and against it, and how likely it is in the run."""
    judged = {item.cause.id: item.state for item in example.finding.causes} if example and example.finding else {}
    rows = (
        (to(f"cause-{cause.id}", cause.says), *(", ".join(said[:MAX_EVIDENCE]) for said in evidence(cause)), state)
        for cause in causes
        for state in (judged.get(cause.id, ""),)
    )
    return md.table(("cause", "for it", "against it", "in this run"), rows)


def _escalation(leaf: Leaf) -> str:
    if not leaf.escalate:
        return ""
    return f"If these did not help, {code(f'--applied {leaf.of}')} says so, and the run ends at {to(leaf.escalate)}."


def _restart(leaf: Leaf, example: Example | None) -> str:
    """Return which checkpoint to restart from, and which one that is in the run of the page."""
    restart, here = example.main.restart if example and example.main else None, ""
    if restart and restart.checkpoint_step:
        here = f" In this run that is {restart.unit} {restart.checkpoint_step:,}."
    return f"**Where to restart.** {TAKES[leaf.take]}{here}" if leaf.restart else ""


def _sources(leaf: Leaf) -> str:
    sources = dict.fromkeys(filter(None, (leaf.source, *(question.source for question in leading(leaf)[:1]))))
    lines = [f"The rule is from {', '.join(map(prose, sources))}."] if sources else []
    lines += map(md.reference, dict.fromkeys(leaf.see))
    return listed(lines)


def gallery() -> str:
    """Return the index: every failure as a card, by tree, with a filter."""
    trees: dict[str, list[str]] = defaultdict(list)
    for leaf, *_ in failures():
        trees[section_of(leaf).tree].append(card(leaf))
    chips = "".join(f'<button type="button" data-seen="{word}">{words}</button>' for word, words in EVENTS.items())
    grades = "".join(f'<button type="button" data-severity="{level}">{level}</button>' for level in reversed(Severity))
    bar = f"""<div class="filter" hidden>
<input type="search" placeholder="Search: a word, an id, a message" aria-label="Search">
<div class="chips" role="group" aria-label="What you see">{chips}</div>
<div class="chips" role="group" aria-label="How bad">{grades}</div>
<p class="count" aria-live="polite">{len(failures())} failures</p></div>
<script src="../_static/gallery.js" defer></script>"""
    cards = {text(load_tree(name).title): f'<div class="gallery">{"".join(held)}</div>' for name, held in trees.items()}
    return md.page(
        "Failures", INTRO, md.raw(bar), *(part(title, md.raw(html)) for title, html in cards.items()), wide=True
    )


def card(leaf: Leaf) -> str:
    """Return a failure as a card: its curves or its message, its title, how bad it is; all of it one link."""
    example = examples().get(leaf.id)
    picture = thumbnail(example) or f"<code>{escape(quoted(example))}</code>" if example else ""
    params = [{"pattern": "", "ending": "", **question.params} for question in leading(leaf)]
    printed = [*chain(*(endings().examples.get(str(one["ending"]), [str(one["pattern"])]) for one in params))]
    messages = re.sub(r"\\[a-zA-Z]|[^\w' ]+", " ", " ".join(printed)).split()
    words = " ".join([leaf.why, *(cause.says for cause in usual_causes(leaf)[:MAX_CAUSES]), *dict.fromkeys(messages)])
    return (
        f'<a class="shot" href="../{md.address(leaf)}" data-seen="{" ".join(leaf.events)}" '
        f'data-severity="{leaf.severity}" data-words="{escape(words)}">{picture}<b>{escape(leaf.title)}</b>'
        f'<span class="badge {leaf.severity}">{leaf.severity}</span><span class="id">{leaf.id}</span></a>'
    )
