"""The page of a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site.failures import parts
from docs.site.failures.examples import Kind, as_yaml
from docs.site.failures.neighbours import neighbours
from docs.site.failures.pictures import PERSON, large
from docs.site.failures.terminal import terminal
from docs.site.markup import known as tree
from docs.site.markup import text
from stabtree.common.answer import UNKNOWN
from stabtree.predicates import predicate_named
from stabtree.report.explain import reference_to
from stabtree.report.tags import Markup, folded, items, joined, prose, tag
from stabtree.tree.fixes import plain
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from docs.site.failures.examples import Example
    from stabtree.diagnosis.result import JudgedCause, Visit
    from stabtree.tree.model import Cause, Leaf

MAX_SEEN = 3
TAKES = {
    Take.BEFORE: "From the newest checkpoint that is older than the trouble.",
    Take.UNLESS_OVER: "From the newest checkpoint that is older than the trouble; nowhere, where the loss came back "
    "to where it was.",
    Take.LOW: "From the newest checkpoint up to the last good step, where the run was at its best.",
    Take.BEST: "Keep the checkpoint nearest to the best evaluation; nothing is trained on from there.",
    Take.NEWEST: "From the newest checkpoint: the trouble has not touched the weights.",
}
ORIGINS = {
    Kind.FIXTURE: "A real small run, kept as a fixture.",
    Kind.MADE: "A made run of the tests, which lies just beyond the bars that decide.",
    Kind.LOG: "A made text log, in which the trainer's message stands.",
    Kind.CONFIG: "A made configuration, in which all else is as it should be.",
}


def page(example: Example) -> str:
    """All that is known of a failure, as a page."""
    leaf = example.leaf
    blocks = [
        "---\norphan: true\n---\n",
        parts.raw(_trail(leaf)),
        f"\n# {text(parts.headline(leaf))}\n",
        parts.raw(_lead(leaf)),
        parts.raw(_hero(example)),
        "\n## What gives it away\n",
        parts.raw(_walk(example)),
        "\n## What stabtree says\n",
        parts.raw(_report(example)),
        "\n## How it is told from its neighbours\n",
        *neighbours(leaf),
        *_mending(example),
        "\n## Sources, and where to read on\n",
        parts.raw(_sources(leaf)),
    ]
    return "\n".join(blocks)


def _trail(leaf: Leaf) -> Markup:
    """The way here from the gallery."""
    section = parts.section_of(leaf)
    home = next(part for part in tree().parts if part.name == section.tree)
    steps = [tag("a", "Failures", href="index.html"), tag("a", home.title, href=f"index.html#{home.name}")]
    if not section.check:
        steps.append(tag("span", section.heading))
    return tag("nav", joined(steps, Markup('<i aria-hidden="true">›</i>')), class_="trail", aria_label="Where this is")


def _lead(leaf: Leaf) -> Markup:
    asked = "stabtree explain"
    told = tag("p", parts.badge(leaf.severity), tag("code", f"{asked} {leaf.id}"), class_="meta lead-meta")
    return joined([told, tag("p", prose(leaf.why), class_="lead") if leaf.why else Markup()])


def _hero(example: Example) -> Markup:
    return tag("figure", Markup(large(example)), tag("figcaption", _origin(example)), class_="portrait")


def _origin(example: Example) -> Markup:
    where = joined([" ", tag("code", example.folder)]) if example.folder else Markup()
    told = example.told or {}
    said = ", ".join(f"{id_} {word}" for id_, word in told.items())
    asked = f" A person has answered {said}: no log tells that." if said else ""
    return joined([ORIGINS[example.kind], where, asked])


def _walk(example: Example) -> Markup:
    """The questions that led to it, each with its answer and what was seen."""
    *before, ending = example.visits
    known = [visit for visit in before if visit.answer.verdict != UNKNOWN]
    rows = [*(_visit(visit, last=False) for visit in known), _visit(ending, last=True)]
    return tag("ol", *rows, class_="walk")


def _visit(visit: Visit, *, last: bool) -> Markup:
    """A turn of the walk; of those on the way only the first thing that was seen."""
    answer = tag("b", parts.said(visit.answer.verdict), class_="answer")
    by = " (said by a person)" if visit.given_by == PERSON else ""
    seen = parts.sentences(visit.answer.evidence[: MAX_SEEN if last else 1]) or prose(visit.answer.reason)
    asked = tag("div", parts.link(visit.question.id), " ", prose(visit.question.ask), " ", answer, by, class_="asked")
    return tag("li", asked, tag("div", seen, class_="evidence"), class_="last" if last else False)


def _report(example: Example) -> Markup:
    title = "stabtree check" if example.kind is Kind.CONFIG else "stabtree diagnose"
    shown = [Markup(terminal(example.found, example.command, title))]
    if example.settings:
        written = tag("pre", as_yaml(example.settings), class_="yaml")
        shown.append(folded("The whole configuration, run.yaml", written, class_="whole"))
    return joined([*shown, _told_under(example)])


def _told_under(example: Example) -> Markup:
    """Where the report of the run is headed by another finding: which, and why."""
    first = example.found.findings[0].leaf if example.found.findings else example.leaf
    if first.id == example.leaf.id or not example.finding:
        return Markup()
    same = example.main is example.found.findings[0]
    told = "It is one event with" if same else "The run has a worse finding as well, which heads the report:"
    return tag("p", told, " ", parts.link(first.id, first.title), ".", class_="aside")


def _mending(example: Example) -> Iterator[str]:
    leaf = example.leaf
    if leaf.causes:
        yield "\n## What may be behind it\n"
        judged = example.causes
        yield parts.raw(tag("div", *(_cause(cause, judged.get(cause.id)) for cause in leaf.causes), class_="causes"))
    if leaf.fixes:
        yield "\n## What to do\n"
        yield parts.raw(items("ol", [Markup(prose(plain(fix))) for fix in leaf.fixes], class_="fixes"))
    if leaf.escalate:
        yield parts.raw(_escalation(leaf))
    if leaf.restart:
        yield "\n## Where to restart\n"
        yield parts.raw(tag("p", TAKES[leaf.take], " ", _restart(example)))


def _cause(cause: Cause, judged: JudgedCause | None) -> Markup:
    """A cause: what it is, what looks for it, and its fixes."""
    found = predicate_named(cause.test)
    looked = parts.predicate_link(cause.test, found.question) if found else Markup()
    tested = joined(["Looked for in the log: ", looked]) if looked else Markup("No log can test it.")
    moved = f" Likely where {cause.moves} left its course before all others." if cause.moves else ""
    holds = " and ".join(f"{key} is {' or '.join(words)}" for key, words in cause.holds.items())
    state = tag("span", f"here {judged.state}", class_=f"state {str(judged.state).replace(' ', '-')}") if judged else ""
    more = joined([" ", parts.link(cause.id)]) if parts.address(cause.id) else Markup()
    head = tag("div", prose(cause.text), " ", state, more, class_="what")
    only = tag("p", f"Told only where {holds}.", class_="holds") if holds else Markup()
    fixes = items("ul", [Markup(prose(plain(fix))) for fix in cause.fixes], class_="fixes")
    see = tag("p", "See ", joined([_see(one) for one in cause.see], ", "), class_="holds") if cause.see else Markup()
    return tag(
        "div", head, tag("p", tested, moved, class_="tested"), only, fixes, see, class_="cause", id=_anchor(cause)
    )


def _anchor(cause: Cause) -> str:
    return f"cause-{cause.id}".replace(" ", "-")


def _escalation(leaf: Leaf) -> Markup:
    to = tree().leaves[leaf.escalate]
    return tag(
        "p", "Where these did not help, ", tag("code", f"--applied {leaf.of}"), " says so, and the run ends at ",
        parts.link(to.id, to.title), ".",
    )  # fmt: skip


def _restart(example: Example) -> Markup:
    """Which checkpoint that is in the run of the page."""
    restart = example.main.restart if example.main else None
    if restart is None or restart.checkpoint_step is None:
        return Markup()
    every = f", where one is written every {restart.every:,} {restart.unit}s" if restart.every else ""
    return tag("span", f"In the run above that is {restart.unit} {restart.checkpoint_step:,}{every}.")


def _sources(leaf: Leaf) -> Markup:
    question = parts.question_of(leaf)
    from_ = dict.fromkeys(filter(None, [leaf.source, question.source if question else ""]))
    see = [*leaf.see, *(link for cause in leaf.causes for link in cause.see)]
    rows = [joined(["The rule is from ", joined([_see(one) for one in from_], ", "), "."])]
    rows += [_see(link) for link in dict.fromkeys(see)]
    rows.append(joined(["In the terminal: ", tag("code", f"stabtree explain {leaf.id} --full"), "."]))
    if not parts.before_run(leaf):
        why = joined(["Why a run of yours was not told this: ", tag("code", f"stabtree explain {leaf.id} --why RUN")])
        rows.append(joined([why, "."]))
    return tag("ul", *_listed(rows), class_="sources")


def _listed(rows: Iterable[Markup]) -> Iterator[Markup]:
    return (tag("li", row) for row in rows)


def _see(link: str) -> Markup:
    """A cross-reference: to a node by what it is called, to an address as it is."""
    if link.startswith(("https://", "http://")):
        return tag("a", link.partition("://")[2], href=link)
    return parts.link(link, reference_to(tree(), link)) if parts.address(link) else prose(reference_to(tree(), link))
