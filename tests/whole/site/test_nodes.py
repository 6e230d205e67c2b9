"""Pages of nodes, metrics and predicates: all are there, their links lead somewhere, what they say to type is true."""

from __future__ import annotations

import re
from functools import cache

from docs.site import metrics, nodes, predicates
from docs.site.markup import has_page, known
from docs.site.prose import cell, prose, table
from stabtree.metrics.table import all_metrics, match
from stabtree.predicates import PREDICATES
from stabtree.report.trees import metrics_of
from stabtree.tree.load import file_of
from stabtree.tree.model import NOTHING
from stabtree.tree.params import apply_overrides
from tests.conftest import ROOT

TYPED = re.compile(r"^\$ stabtree (.*)$", re.MULTILINE)


@cache
def made() -> dict[str, str]:
    """All pages that these makers make."""
    every = {**nodes.pages(), **metrics.pages(), **predicates.pages()}
    return {path: content if isinstance(content, str) else content.decode() for path, content in every.items()}


def typed(option: str) -> list[tuple[str, str]]:
    """What pages tell one to type after an option, with the page."""
    commands = [(path, line) for path, content in made().items() for line in TYPED.findall(content)]
    return [(path, line.split(f"{option} ")[1].split()[0]) for path, line in commands if f" {option} " in line]


def test_every_node_metric_and_predicate_has_a_page() -> None:
    """Whatever a tree or the code adds gets one of itself."""
    tree = known()
    ids = [*tree.questions, *tree.groups, *tree.entries, *(item.id for item in tree.signatures)]
    wanted = {f"nodes/{file_of(id_)}.md" for id_ in ids}
    wanted |= {f"metrics/{metric.name}.md" for metric in all_metrics()}
    wanted |= {f"predicates/{name}.md" for name in PREDICATES}
    assert wanted <= made().keys()
    assert len({path.lower() for path in made()}) == len(made()), "two pages have one name where capitals count nothing"


def test_links_between_made_pages_lead_somewhere() -> None:
    """To a made page, to a failure's, to a written one; or to a label that stands on a page."""
    labels = {label for content in made().values() for label in re.findall(r"^\(([\w.-]+)\)=$", content, re.MULTILINE)}
    failures = {f"failures/{file_of(leaf)}.md" for leaf in known().leaves if has_page(leaf)}
    lost = set()
    for path, content in made().items():
        for target in re.findall(r"(?<!\\)\]\(([^<>)\s]+)\)", re.sub(r"(?<!\[)(`+).+?\1", "", content)):
            page = target.removeprefix("../") if target.startswith("../") else f"{path.partition('/')[0]}/{target}"
            known_page = page in made() or page in failures or (ROOT / "docs" / page).is_file()
            if not (target[1:] in labels if target.startswith("#") else known_page):
                lost.add((path, target))
        for folder, page in re.findall(r'href="\.\./(\w+)/([^"]+)\.html"', content):
            if f"{folder}/{page}.md" not in made().keys() | failures:
                lost.add((path, page))
    assert not lost


def test_each_answer_of_a_question_stands_on_its_page_with_where_it_leads() -> None:
    """Answers that lead to one place share a line."""
    tree = known()
    for question in tree.questions.values():
        rows = [line.split(" | ") for line in made()[f"nodes/{question.id}.md"].splitlines()]
        for verdict, target in question.go.items():
            nothing = target in tree.leaves and tree.leaves[target].title == NOTHING
            leads = "nothing found" if nothing else f"/{file_of(target)}.md)"
            found = [row for row in rows if f"`{verdict}`" in row[0] and len(row) > 1 and leads in row[1]]
            assert len(found) == 1, (question.id, verdict)


def test_what_a_page_tells_one_to_set_can_be_set() -> None:
    """With another value than it has."""
    tree = known()
    settings = typed("--set")
    assert len(settings) > 100
    for path, setting in settings:
        place, value = setting.split("=")
        node, name = place.rsplit(".", 1)
        number = float(value) if "." in value or "e" in value else int(value)
        apply_overrides(tree, {node: {name: number}}, literal=False)
        row = next(line for line in made()[path].splitlines() if line.startswith(f"| `{place}` |"))
        assert f"| `{value}` |" not in row, path


def test_what_a_page_tells_one_to_answer_and_to_ask_is_a_question() -> None:
    """And the answer is one that it takes."""
    tree = known()
    for path, said in typed("--answer"):
        question, verdict = said.split("=")
        assert verdict in tree.questions[question].go, path


def test_a_name_on_a_metrics_page_is_read_as_that_metric() -> None:
    """Every one of them; what it is read as is asked of the table that loaders ask."""
    for metric in all_metrics():
        part = made()[f"metrics/{metric.name}.md"].split("## Names under which it is found")[1].partition("##")[0]
        names = re.findall(r"`([^`]+)`", part.strip().splitlines()[-1] if metric.aliases else "")
        assert all((found := match(name)) and found[0] == metric.name for name in names), metric.name
        assert len(names) >= len(metric.aliases)


def test_findings_that_need_a_metric_are_not_reached_without_an_answer() -> None:
    """`loss-stops` is told whether grad_norm was logged or not; `grad-norm-rising` needs it."""
    needing = made()["metrics/grad_norm.md"].split("## Findings that need it")[1].partition("\n##")[0]
    assert "[`grad-norm-rising`]" in needing
    assert "[`loss-stops`]" not in needing


def test_every_question_of_a_walked_section_is_in_its_outline() -> None:
    """Those that only a check asks stand among the checks."""
    tree = known()
    for part in tree.parts:
        page = made()[f"nodes/tree-{part.name}.md"]
        ids = [q.id for q in tree.questions.values() if tree.section(q.section).tree == part.name]
        assert [id_ for id_ in ids if f"[`{id_}`](../nodes/{file_of(id_)}.md)" not in page] == []


def test_prose_keeps_code_and_links_and_escapes_the_rest() -> None:
    """A card called T4 is no cause, where it does not stand in parentheses by itself."""
    assert prose("on a T4 see `x_y` (Q2.1) --literal") == r"on a T4 see `x_y` ([`Q2.1`](../nodes/Q2.1.md)) `--literal`"
    assert prose("a_b at https://a.org/b.") == r"a\_b at [a.org/b](<https://a.org/b>)."


def test_a_table_leaves_out_what_is_empty_and_a_cell_ends_none() -> None:
    """A pattern holds bars."""
    assert table(("a", "b"), [("x", ""), ("y", "")]) == "| a |\n| --- |\n| x |\n| y |"
    assert table(("a",), []) == ""
    assert cell("`a|b`") == r"`a\|b`"


def test_a_metric_of_a_fact_that_may_be_unknown_is_not_needed() -> None:
    """Also behind another fact: a run without `batch_id` is told that its loss rises."""
    read = metrics_of(PREDICATES["loss_rising"])
    assert (read["loss"], read["batch_id"]) == (True, False)
    assert metrics_of(PREDICATES["batch_repeats_at_spike"])["batch_id"]
