"""The gallery: every failure as a card, by tree and section, to be found by looking."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from docs.site.failures import parts
from docs.site.failures.examples import Kind, examples
from docs.site.markup import known as tree
from docs.site.markup import text
from stabtree.report.tags import Markup, joined, tag
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.site.failures.examples import Example
    from stabtree.tree.model import Part, Section

# What a person sees first: words of `EVENTS`, series that a failure rests on, and the sections that it stands in.
SEEN = {
    "rise": ("The loss goes up", {"rise"}),
    "nan": ("NaN or inf", {"nan", "rerun"}),
    "flat": ("It does not learn", {"flat", "zero", "learning", "units", "S1", "not-shown"}),
    "odd": (
        "The loss looks odd",
        {"zero", "resume", "O1.start", "O15", "O14.rows", "O14.batch", "O14.calm", "O14.repeat", "O14.same"},
    ),
    "grad": ("Gradients look wrong", {"grad_norm", "gradients", "overflow"}),
    "scale": ("Loss scale, skipped steps", {"loss_scale", "skipped_steps", "3"}),
    "rate": ("Learning rate, schedule", {"schedule", "lr"}),
    "layers": ("Updates, weights, layers", {"update_ratio", "dead_relu_frac", "logsumexp", "attention_logits_max"}),
    "eval": ("Evaluation parts from training", {"eval_loss", "eval_quality", "O27.memorised"}),
    "reward": ("Reward and policy", {"grpo"}),
    "slow": ("Slow, or standing still", {"slow"}),
    "message": ("An error message", {"message"}),
    "config": ("Before the run", {"config"}),
}
INTRO = """
A picture for each thing that stabtree can find: the curve of a run that ends there, or the message that a trainer
printed. Look for the one that resembles yours. Each page tells how the failure is told from its neighbours, what may
be behind it, what fixes it and where to restart. Nothing here is drawn by hand: the runs are those that the tests hold,
and the reports are what stabtree prints of them.
"""


def gallery() -> str:
    """The index page."""
    chips = [tag("button", words, type="button", data_seen=name) for name, (words, _) in SEEN.items()]
    levels = [tag("button", level, type="button", data_severity=level, class_=level) for level in _levels()]
    search = tag("input", type="search", placeholder="Search: a word, an id, a message", aria_label="Search")
    bar = tag(
        "div",
        search,
        tag("div", *chips, class_="chips", role="group", aria_label="What you see"),
        tag("div", *levels, class_="chips", role="group", aria_label="How bad"),
        tag("p", _counted(), class_="count", aria_live="polite"),
        class_="filter wide-page",
        hidden=True,
    )
    script = Markup('<script src="../_static/gallery.js" defer></script>')
    head = ["---\norphan: true\nhide-toc: true\n---\n", "# Failures\n", INTRO, parts.raw(joined([bar, script]))]
    return "\n".join([*head, *(block for part in tree().parts for block in _tree(part))])


def _counted() -> str:
    """How many there are of each kind."""
    each = Counter(str(example.leaf.severity) for example in examples().values())
    return f"{len(examples())} pages: {', '.join(f'{each[level]} {level}' for level in _levels())}"


def _levels() -> list[str]:
    return [level.value for level in sorted(Severity, key=lambda level: -level.rank)]


def _tree(part: Part) -> Iterator[str]:
    """The failures of a tree: sections of several under headings of their own, single checks together."""
    held = [example for example in examples().values() if parts.section_of(example.leaf).tree == part.name]
    if not held:
        return
    yield f"\n({part.name})=\n## {text(part.title)}\n"
    if part.name == "errors":
        yield parts.raw(parts.cards((_message(example) for example in held if not _milder(example)), close=True))
        return
    sections = dict.fromkeys(parts.section_of(example.leaf).id for example in held)
    alone = [id_ for id_ in sections if tree().section(id_).check or part.name == "preflight"]
    for id_ in sections:
        if id_ not in alone:
            section = tree().section(id_)
            yield f"\n### {text(section.heading)}\n"
            yield parts.raw(parts.cards(_of(held, [section]), close=True))
    if alone:
        yield "\n### Checks that stand alone\n" if len(alone) < len(sections) else ""
        yield parts.raw(parts.cards(_of(held, [tree().section(id_) for id_ in alone]), close=True))


def _of(held: list[Example], sections: list[Section]) -> Iterator[Markup]:
    ids = {section.id for section in sections}
    return (_card(example) for example in held if parts.section_of(example.leaf).id in ids)


def _card(example: Example, below: str = "") -> Markup:
    leaf = example.leaf
    marks = {"data_seen": " ".join(seen(example)), "data_severity": str(leaf.severity), "data_words": _words(example)}
    return parts.card(leaf.id, below=below, **marks)


def _words(example: Example) -> str:
    """What is searched beside what a card shows: why it matters, its causes, all messages that are told so."""
    leaf, question = example.leaf, parts.question_of(example.leaf)
    patterns = str(question.params.get("pattern", "")) if question else ""
    messages = re.sub(r"\\[a-zA-Z]|[^\w' ]+", " ", patterns).split()
    return " ".join([leaf.why, *(cause.text for cause in leaf.causes), *dict.fromkeys(messages)])


def _milder(example: Example) -> bool:
    return example.leaf.id.endswith(parts.SURVIVED)


def _message(example: Example) -> Markup:
    """A message, with the leaf that tells it where the run went on."""
    survived = f"{example.leaf.id}{parts.SURVIVED}"
    if survived not in examples():
        return _card(example)
    word = parts.badge(examples()[survived].leaf.severity)
    return _card(example, joined([parts.link(survived, "where the run went on"), " ", word]))


def seen(example: Example) -> list[str]:
    """Under which of the words of `SEEN` a failure is found."""
    if example.kind in (Kind.LOG, Kind.CONFIG):
        return ["message" if example.kind is Kind.LOG else "config"]
    section = parts.section_of(example.leaf)
    series = {item.metric for item in example.visits[-1].answer.evidence}
    metrics = {name.partition("/")[0] for name in series}
    words = {example.leaf.id, *example.leaf.events, *metrics, section.id, section.tree}
    words |= {"nan"} if any(map(example.broken, series)) else set()
    return [name for name, (_, of) in SEEN.items() if of & words]
