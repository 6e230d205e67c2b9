"""A page for each tree: its questions section by section, then its groups, entries and known causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site import causes
from docs.site import markup as md
from docs.site.lookup import measured, reads
from docs.site.markup import MEASURE, METRIC, code, finding, listed, part, prose, shipped, table, text, to
from stabtree.common.answer import UNKNOWN
from stabtree.measures import MEASURES
from stabtree.report.explain import rule_of
from stabtree.report.trees import UNITS, outline, shown_value
from stabtree.run import CONFIG
from stabtree.tree.fixes import plain
from stabtree.tree.load import load_tree
from stabtree.tree.model import NOTHING
from stabtree.tree.params import fact_params, fine, known, settable
from stabtree.tree.shipped import KNOWN, PREFLIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.tree.model import Entry, Group, Question, Tree

ABOUT = (
    "stabtree asks questions of a log, one after the other; the answer decides which comes next, until a finding is "
    "reached or nothing is left to ask. All that it asks is in YAML files, the trees, of which these pages are made: "
    "each question with its rule in numbers, where each answer leads, and how often that was right."
)
WAITS = {"lines": "the log holds lines of text", "rerun": "a second run is given with `--rerun`"}


def pages() -> dict[str, str]:
    """Return the content of each page by its path."""
    trees = {name: load_tree(name) for name in KNOWN}
    rows = [
        (
            f"[{text(tree.title)}]({name}.md)",
            *(str(len(nodes) or "") for nodes in (tree.questions, tree.entries)),
            "`stabtree check CONFIG`" if name == PREFLIGHT else "`stabtree diagnose RUN`",
        )
        for name, tree in trees.items()
    ]
    contents = "\n".join(("```{toctree}", ":hidden:", *trees, "causes", "actions", "```"))
    index = md.page("The trees", ABOUT, table(("tree", "questions", "entries", "walked by"), rows), contents)
    return {
        **causes.pages(),
        "nodes/index.md": index,
        **{f"nodes/{name}.md": _tree(tree) for name, tree in trees.items()},
    }


def _tree(tree: Tree) -> str:
    whole = shipped()
    sections: dict[str, list[Question]] = {}
    for id_ in tree.questions:
        section = whole.section(whole.questions[id_].section)
        sections.setdefault("Checks, each of one question" if section.check else section.heading, []).append(
            whole.questions[id_]
        )
    return md.page(
        text(tree.title),
        prose(tree.about),
        md.folded(
            f"Its outline, as `stabtree tree show {tree.name}` prints it", f"```text\n{outline(tree).rstrip()}\n```"
        ),
        *(part(text(heading), *map(_question, asked)) for heading, asked in sections.items()),
        part("Nodes that hold findings", *map(_group, tree.groups.values())),
        part("Entries, for a person", *(_entry(whole.entries[id_]) for id_ in tree.entries)),
        _last(tree.see, tree.source),
    )


def exits(question: Question) -> dict[str, list[str]]:
    """Return where the answers of a question lead, each with the answers that lead there."""
    ends: dict[str, list[str]] = {}
    for verdict, target in question.go.items():
        ends.setdefault(target, []).append(verdict)
    return ends


def answers(question: Question) -> str:
    """Return a table of where each answer of a question leads."""
    rows = []
    for target, verdicts in exits(question).items():
        leaf = shipped().leaves.get(target)
        nothing = leaf is not None and leaf.title == NOTHING
        end = "nothing found" if nothing else f"{to(target)} {prose(shipped().title_of(target))}"
        rows.append((", ".join(map(code, verdicts)), end, md.badge(leaf.severity) if leaf and not nothing else ""))
    return table(("answer", "leads to", "how bad"), rows)


def rule(question: Question) -> str:
    """Return the rule of a question, what it is by the document's letter if that differs, and what tests it."""
    if not question.test:
        return "No log can tell: a person is asked."
    usual, letter = rule_of(shipped(), question), rule_of(shipped(), question, literal=True)
    test = MEASURES[question.test]
    lines = [
        f"> {prose(usual)}" if usual else "",
        f"By the document's letter (`--literal`): {prose(letter.removesuffix('.'))}." if letter != usual else "",
        f"Tested by {to(test.name, kind=MEASURE)}: {prose(test.question)}",
    ]
    return "\n\n".join(filter(None, lines))


def _question(node: Question) -> str:
    words = ", ".join(f"{code(word)} for {code(verdict)}" for word, verdict in node.words.items())
    without = "" if UNKNOWN in node.go else "Without an answer it is *not checked*, and the walk goes on as for `no`."
    return part(
        f"{node.id}: {text(node.ask)}",
        prose(node.why),
        rule(node),
        answers(node),
        without if node.test else "",
        f"By hand: {prose(node.person)}" if node.person else "",
        f"Other words that are understood: {words}." if words else "",
        measured("questions", node.id),
        *_reads(node),
        settings(node),
        f"What it does not state itself it takes over from {to(node.like)}." if node.like else "",
        _last(node.see, node.source),
        level=3,
        at=node.id,
    )


def _reads(node: Question) -> Iterator[str]:
    section = shipped().section(node.section)
    if CONFIG not in section.when and section.tree != PREFLIGHT:
        waits = " or ".join(WAITS.get(item, f"{code(item)} was logged") for item in section.when)
        yield f"Its section is walked where {waits}." if waits else ""
    metrics = [to(name, kind=METRIC) + ("" if needed else " (if logged)") for name, needed in reads(node).items()]
    yield f"Reads {', '.join(metrics)}." if metrics else ""


def settings(node: Question) -> str:
    """Return a table of all that can be set of a node; what only fine-tunes a guard is folded."""
    if node.test not in MEASURES:
        return ""
    tree = shipped()
    usual, letter = known(tree, node), known(tree, node, literal=True)
    guards = fine(tree, node) | {key for facts in tree.facts.values() for key in facts.advanced}
    rows: tuple[list[Sequence[str]], list[Sequence[str]]] = ([], [])
    for name, (fact, parameter) in settable(MEASURES[node.test]).items():
        value, literal = (values.get(name, parameter.default) for values in (usual, letter))
        shown, by_letter = (code(shown_value(item)) if item not in (None, "") else "none" for item in (value, literal))
        unit = UNITS.get(name.rpartition("_")[2], "")
        row = (code(f"{fact or node.id}.{name}"), shown, by_letter if literal != value else "", unit)
        rows[name in guards].append(row)
    heads = ("set it by", "value", "by the letter", "counted in")
    more = md.folded(f"{len(rows[1])} more, which only fine-tune a guard", table(heads, rows[1])) if rows[1] else ""
    return "\n\n".join(filter(None, (table(heads, rows[0]), more)))


def _group(node: Group) -> str:
    leaves = (leaf for leaf in shipped().leaves.values() if leaf.of == node.id)
    words = prose(node.rule.format_map(fact_params(shipped())))
    holds = listed(map(finding, leaves))
    return part(
        f"{node.id}: {text(node.ask)}",
        prose(node.why),
        f"> {words}",
        holds,
        _last(node.see, node.source),
        level=3,
        at=node.id,
    )


def _entry(node: Entry) -> str:
    fields = {"How it shows": node.symptom, "Where it comes from": node.cause, "What settles it": node.probe}
    lines = [f"**{name}.** {prose(words)}" for name, words in {**fields, "The setting": node.knob}.items() if words]
    return part(
        f"{node.id}: {text(node.title)}", *lines, fixes(node.fixes), _last(node.see, node.source), level=3, at=node.id
    )


def fixes(texts: Sequence[str], mark: str = "1.") -> str:
    """Return what to do as a list."""
    return listed((prose(plain(fix)) for fix in texts), mark)


def _last(see: Sequence[str], source: str) -> str:
    words = [f"See {'; '.join(map(md.reference, see))}." if see else "", f"Source: {prose(source)}." if source else ""]
    return " ".join(filter(None, words))
