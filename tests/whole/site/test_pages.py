"""The made pages: everything is described once, links lead somewhere, and pages say what trees, code and runs say."""

from __future__ import annotations

import ast
import html
import importlib
import re
from functools import cache

import pytest

import stabtree
from docs.site import failures, lookup, nodes, reference
from docs.site import markup as md
from docs.site.examples import examples, near, terminal, thumbnail
from stabtree.cli.program import commands
from stabtree.common.yaml12 import parse
from stabtree.measures import MEASURES
from stabtree.metrics.table import all_metrics, by_name, match
from stabtree.report.contract import schema
from stabtree.report.explain import action_in_words, usual_actions, usual_causes
from stabtree.tree.fixes import plain
from stabtree.tree.model import EVENTS, NOTHING, Severity
from stabtree.tree.params import apply_overrides, declared
from tests.cli.command import run
from tests.conftest import ROOT

DOCS = ROOT / "docs"
LABEL = re.compile(r"^\(([\w.-]+)\)=$|\]\{#([\w-]+)\}", re.MULTILINE)
LEAVES = [leaf for leaf in md.shipped().leaves.values() if leaf.title != NOTHING]
OWN = [leaf.id for leaf in LEAVES if "#" not in leaf.page]
LINES = parse((DOCS / "figures" / "log_lines.yaml").read_text(encoding="utf-8"), "log_lines.yaml").value
CODE = [
    (metric, code)
    for metric, ways in LINES["metrics"].items()
    for how in ways.values()
    for code in re.findall("`(.+?)`", how)
]


@cache
def pages() -> dict[str, str]:
    """All made pages by their paths."""
    return {
        path: content
        for maker in (failures, nodes, lookup, reference)
        for path, content in maker.pages().items()
        if path.endswith(".md")
    }


def labels() -> list[str]:
    """The labels of all pages."""
    return [first or second for content in pages().values() for first, second in LABEL.findall(content)]


def section(label: str) -> str:
    """What stands under a label, up to the next one."""
    content = next(content for content in pages().values() if f"({label})=" in content)
    return content.partition(f"({label})=")[2].partition("\n(")[0]


def of(leaf: str) -> str:
    """The page of a failure that has one of its own."""
    return pages()[md.address(md.shipped().leaves[leaf]).replace(".html", ".md")]


def test_everything_is_described_in_one_place() -> None:
    """Each node, metric and measure has a label or a page; what a report links to is there."""
    lower = [label.lower() for label in labels()]
    assert len(set(lower)) == len(lower)
    assert md.labels() - set(lower) == {leaf.lower() for leaf in OWN}
    for leaf in LEAVES:
        path, _, anchor = md.address(leaf).partition("#")
        assert anchor in ("", leaf.id)
        assert f"({anchor})=" in pages()[path.replace(".html", ".md")] or not anchor
        assert f'href="../{md.address(leaf)}"' in pages()["failures/index.md"] or anchor


def test_links_of_made_pages_lead_somewhere() -> None:
    """To a label, to a made page or to a written one."""
    known, lost = {label.lower() for label in labels()}, set()
    for path, content in pages().items():
        for target in re.findall(r"(?<!\\)\]\(([^<>)\s]+)\)", re.sub(r"(?<!\[)(`+).+?\1", "", content)):
            page = target.removeprefix("../") if target.startswith("../") else f"{path.partition('/')[0]}/{target}"
            there = target[1:] in known if target.startswith("#") else page in pages() or (DOCS / page).is_file()
            lost |= set() if there else {(path, target)}
    assert not lost


def test_each_answer_of_a_question_is_there_with_where_it_leads() -> None:
    """Answers that lead to one place share a row."""
    for question in md.shipped().questions.values():
        rows = [line.split(" | ") for line in section(question.id).splitlines() if " | " in line]
        for verdict, target in question.go.items():
            leaf = md.shipped().leaves.get(target)
            end = "nothing found" if leaf and leaf.title == NOTHING else md.to(target)
            assert [row for row in rows if f"`{verdict}`" in row[0] and end in row[1]], (question.id, verdict)


def test_what_can_be_set_is_shown_by_the_name_to_set_it_by() -> None:
    """With the value that it has."""
    rows = re.findall(r"^\| `(\S+)\.(\w+)` \| `([\d.e+-]+)` \|", "\n".join(pages().values()), re.MULTILINE)
    assert len(rows) > 300
    for node, name, value in rows[::10]:
        kind = declared(md.shipped(), node)[name][1].kind
        apply_overrides(md.shipped(), {node: {name: kind(value)}}, literal=False)


def test_the_page_of_a_failure_has_all_that_the_tree_has() -> None:
    """Title, meaning, causes, fixes, and every answer of the questions that lead there."""
    for leaf in OWN:
        node, page = md.shipped().leaves[leaf], " ".join(of(leaf).split())
        assert f"# {md.text(node.title)}" in page
        causes = (cause.says for cause in usual_causes(node)[: failures.MAX_CAUSES])
        for words in (node.why, plain(node.fix), *map(action_in_words, usual_actions(node)), *causes):
            assert md.prose(words) in page, leaf
        for question in failures.leading(node):
            assert all(md.to(end) in page for end in question.go.values() if end in md.labels()), leaf


def test_the_run_of_a_failure_ends_there() -> None:
    """It is found; if another finding heads the report, the page names it."""
    for leaf, example in examples().items():
        if example.leaf.severity is not Severity.OK:
            assert example.finding, leaf
            first = example.diagnosis.findings[0].leaf
            assert first.id == leaf or leaf not in OWN or f"{md.to(first.id, first.title)}." in of(leaf), leaf


def test_runs_that_come_close_are_found_to_be_something_else() -> None:
    """From the other side of each bar."""
    for leaf in (leaf for leaf in LEAVES if leaf.id in OWN[::9]):
        for bar, diagnosis in near(leaf).items():
            assert leaf.id not in {item.leaf.id for item in diagnosis.findings}, bar


def test_the_terminal_shows_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the letter, on a screen of 80 columns."""
    monkeypatch.chdir(ROOT)
    for example in [examples()[leaf] for leaf in OWN if examples()[leaf].command][::9]:
        shown = html.unescape(re.sub(r"<[^>]+>", "", terminal(example))).splitlines()
        assert shown[0] == f"$ {example.command}"
        printed = run(*example.command.split()[1:], COLUMNS="80").stdout.strip("\n").splitlines()
        assert [line.rstrip() for line in shown[1:]] == [line.rstrip() for line in printed]


def test_a_card_shows_the_loss_and_what_tells_of_the_failure() -> None:
    """A broken loss scale is seen in the scale; a message is quoted, and found by each of its spellings."""
    assert 'class="names">loss · loss_scale<' in thumbnail(examples()["scale-collapse"])
    card = failures.card(md.shipped().leaves["disk-full"])
    assert "No space left on device" in card
    assert {"quota", "exceeded"} <= set(re.findall(r'data-words="([^"]*)"', card)[0].lower().split())
    titles = re.findall(r"^# (.+)$", "\n".join(map(of, OWN)), re.MULTILINE)
    assert len(set(titles)) == len(titles)


def test_what_is_made_is_small_and_names_no_folder_of_this_machine() -> None:
    """What is read at once: the gallery in less than a megabyte."""
    assert max(map(len, pages().values())) < 850_000
    assert sum(map(len, pages().values())) < 7_000_000
    assert not [path for path, content in pages().items() if str(ROOT) in content or "/tmp/" in content]  # noqa: S108


def test_the_names_of_a_metric_are_read_as_that_metric() -> None:
    """What they are read as is asked of the table that loaders ask; a finding needs it if nothing else leads there."""
    for metric in all_metrics():
        names = re.findall(r"`([^`]+)`", section(f"metric-{metric.name}").partition("\nNames: ")[2].partition("\n")[0])
        assert all((place := match(name)) and place[0] == metric.name for name in names), metric.name
        assert len(names) >= len(metric.aliases)
    needing = section("metric-grad_norm").partition("Findings that need it")[2].partition("\n")[0]
    assert "[`grad-norm-rising`]" in needing
    assert "[`loss-stops`]" not in needing


@pytest.mark.parametrize(("metric", "code"), CODE)
def test_a_line_that_logs_a_metric_is_python_and_logs_it(metric: str, code: str) -> None:
    """Arguments alone are taken as those of a call."""
    assert metric in by_name()
    try:
        tree = ast.parse(code)
    except SyntaxError:
        tree = ast.parse(f"call({code})")
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        names = [keyword.arg or "" for keyword in call.keywords] if ast.unparse(call.func) == "rec.log" else []
        names += [ast.literal_eval(call.args[0])] if ast.unparse(call.func) == "self.log" else []
        assert all((place := match(name)) and place[0] == metric for name in names)


def test_of_few_runs_no_share_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four runs say nothing, five do; what was recorded is of questions and measures that there are."""
    assert lookup.figures()["questions"].keys() <= md.shipped().questions.keys()
    assert lookup.figures()["measures"].keys() <= MEASURES.keys()
    counts = {"healthy": {"asked": 4, "alarms": 1}, "failed": {"asked": 5, "right": 3, "elsewhere": 1}}
    monkeypatch.setattr(lookup, "figures", lambda: {"questions": {"Q2.1": counts}})
    rate = "the right finding on 3 of 5 (23% to 88%) failed runs of its kind, and others found 1"
    assert lookup.measured("questions", "Q2.1") == f"On [labelled runs](#measured-rates) it led to {rate}."


def test_the_reference_has_every_command_and_every_key() -> None:
    """The help of each command to the letter, and what the schema says of each key."""
    for name in commands():
        shown = re.sub(r"^ {2}", "", run(name, "--help", COLUMNS="80").stdout, flags=re.MULTILINE)
        assert "".join(shown.split()) in "".join(pages()["reference/commands.md"].split()), name
    for shape in schema()["$defs"].values():
        for key, value, _ in reference.keys(shape):
            assert f"[`{key}`]{{#json-" in pages()["reference/json.md"]
            words = md.sentence(value.get("description", ""))
            assert len(words) < 40 or words in pages()["reference/json.md"]  # a short one may be of several forms
    assert reference.kind({"type": ["integer", "null"]}) == "whole number or null"
    assert reference.kind({"type": "array", "items": {"$ref": "#/$defs/note"}}) == "list: each [note](#json-note)"


def test_what_the_written_reference_names_is_there() -> None:
    """Each public name of the package once, types by their modules, and all words of `events`."""
    page, trees = ((DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8") for name in ("python", "tree-file"))
    named = re.findall(r"^\.\. auto\w+:: ([\w.]+)", page, re.MULTILINE)
    assert sorted(name for name in named if "." not in name) == sorted(stabtree.__all__)
    for module, part in re.findall(r"currentmodule:: ([\w.]+)\n(.*?)```", trees, re.DOTALL):
        named += [f"{module}.{name}" for name in re.findall(r"auto\w+:: (\w+)", part)]
    for module, _, name in (name.rpartition(".") for name in named if "." in name):
        assert hasattr(importlib.import_module(module), name), name
    assert dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", trees, re.MULTILINE)) == dict(EVENTS)


def test_words_are_never_markup() -> None:
    """Code, options and addresses are; an id in parentheses is a link; a table leaves out what is empty."""
    assert md.prose("on a T4 see `x_y` (Q2.1) --literal") == r"on a T4 see `x_y` ([`Q2.1`](#q2.1)) `--literal`"
    assert md.prose("a_b at https://a.org/b.") == r"a\_b at [a.org/b](<https://a.org/b>)."
    assert md.table(("a", "b"), [("`x|y`", ""), ("y", "")]) == "| a |\n| --- |\n| `x\\|y` |\n| y |"
    assert md.table(("a",), []) == ""
    assert md.to("settled", kind=md.MEASURE) == "[`settled`](#measure-settled)"
    assert md.to("grad_norm/blocks", kind=md.METRIC) == "[`grad_norm/blocks`](#metric-grad_norm)"
    assert (md.to("fp16-overflow", "It."), md.to("gone")) == (r"[It.](../failures/fp16-overflow.md)", "`gone`")
