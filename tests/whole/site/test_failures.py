"""The gallery shows every failure, its pages hold what the trees hold, and what they print is what stabtree prints."""

from __future__ import annotations

import html
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from docs.site import failures as made
from docs.site.failures import parts
from docs.site.failures.examples import Kind, after, as_yaml, examples, failures, near
from docs.site.failures.gallery import SEEN, seen
from docs.site.failures.leaf import page
from docs.site.failures.pictures import thumbnail
from docs.site.failures.terminal import WIDE
from docs.site.markup import FAILURES, has_page, known
from stabtree.tree.fixes import plain
from stabtree.tree.load import file_of
from stabtree.tree.model import NOTHING, Severity
from tests.cli.command import run
from tests.conftest import ROOT
from tests.leaves import NEAR

if TYPE_CHECKING:
    from pathlib import Path

LEAVES = [leaf.id for leaf in known().leaves.values() if leaf.title != NOTHING]
FIXTURES = [id_ for id_, example in examples().items() if example.kind is Kind.FIXTURE]
CONFIGS = [id_ for id_, example in examples().items() if example.kind is Kind.CONFIG]


@cache
def pages() -> dict[str, str]:
    """All pages and files, as text."""
    return {path: str(content) for path, content in made.pages().items()}


def of(leaf: str) -> str:
    """The page of a failure."""
    return pages()[f"{FAILURES}/{file_of(leaf)}.md"]


def words(markup: str) -> str:
    """What a reader sees of markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def terminal(leaf: str) -> str:
    """What the wide terminal of a page shows."""
    (found,) = re.findall(r'<pre class="term-wide"[^>]*>(.*?)</pre>', of(leaf), re.DOTALL)
    return words(found)


def test_every_failure_has_a_page_and_a_card_and_nothing_else_has() -> None:
    """Also the healthy ends and the notes; what is called nothing found has none."""
    paths = {path for path in pages() if path.startswith(FAILURES)}
    assert paths == {f"{FAILURES}/index.md", *(f"{FAILURES}/{file_of(leaf)}.md" for leaf in LEAVES)}
    index = pages()[f"{FAILURES}/index.md"]
    for leaf in failures():
        assert f'href="{parts.address(leaf.id)}"' in index or f'href="{file_of(leaf.id)}.html"' in index, leaf.id


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_run_of_a_page_ends_there(leaf: str) -> None:
    """It is found, or, where it says that all is well, its walk ends there; what heads the report instead is named."""
    example = examples()[leaf]
    if example.leaf.severity is Severity.OK:
        assert after(example.visits[-1]) == leaf
        return
    assert example.finding
    assert example.main
    first = example.found.findings[0].leaf
    assert first.id == leaf or f"{parts.link(first.id, first.title)}.</p>" in of(leaf)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_page_tells_what_the_tree_tells(leaf: str) -> None:
    """Title, severity, meaning, all causes with their fixes, fixes, and every other answer of the question."""
    held, seen_words = known().leaves[leaf], words(of(leaf))
    assert "\n# " in of(leaf)
    texts = [held.why, *map(plain, held.fixes)]
    texts += [text for cause in held.causes for text in (cause.text, *map(plain, cause.fixes))]
    for told in texts:
        assert " ".join(told.replace("`", "").split()) in " ".join(seen_words.split()), told
    for question in parts.leading(leaf):
        assert question.ask in seen_words
        for id_ in question.go.values():
            assert parts.healthy(id_) or known().title_of(id_) in seen_words, id_


def test_every_run_that_comes_close_is_shown_and_is_told_something_else() -> None:
    """From the other side of each bar."""
    for name in NEAR:
        leaf, _, bar = name.partition(": ")
        assert f"<td>{bar}</td>" in of(leaf)
        assert leaf not in {one.ends for one in near(leaf)}, name


@pytest.mark.parametrize("leaf", FIXTURES[::7])
def test_the_terminal_of_a_fixture_shows_what_its_command_prints(leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the letter, on a screen of as many columns."""
    command = examples()[leaf].command
    assert html.escape(f"$ {command}", quote=False) in of(leaf)
    monkeypatch.chdir(ROOT)
    told = run(*command.split()[1:], COLUMNS=str(WIDE))
    assert terminal(leaf).split("\n") == told.stdout.strip("\n").split("\n")


@pytest.mark.parametrize("leaf", CONFIGS[::9])
def test_the_terminal_of_a_configuration_shows_what_its_command_prints(
    leaf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the letter, of the file that the page shows."""
    example = examples()[leaf]
    assert example.settings
    assert example.command == "stabtree check run.yaml"
    (tmp_path / "run.yaml").write_text(as_yaml(example.settings), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = run("check", "run.yaml", COLUMNS=str(WIDE))
    assert terminal(leaf).split("\n") == told.stdout.strip("\n").split("\n")


def test_every_configuration_is_found_in_a_file() -> None:
    """A command prints what is found in each: the reader of configurations drops nothing that a rule asks for."""
    assert [id_ for id_ in CONFIGS if not examples()[id_].command] == []


def test_every_terminal_fits_and_has_its_colours() -> None:
    """No line is longer than its screen, and each class of a colour has a rule."""
    rules = pages()["_static/failures.css"]
    for leaf in LEAVES:
        assert max(map(len, terminal(leaf).split("\n"))) <= WIDE
        names = {name for names in re.findall(r'<span class="(t[^"]*)"', of(leaf)) for name in names.split()}
        for name in names:
            assert f".term .{name}" in rules, name


def test_a_failure_is_found_by_what_is_seen() -> None:
    """Each card can be filtered for, by words that the filter has; none fits none of them."""
    assert {name for example in examples().values() for name in seen(example)} == set(SEEN)
    without = {
        id_ for id_, example in examples().items() if not seen(example) and example.leaf.severity is not Severity.OK
    }
    assert not without


def test_every_link_leads_to_a_page() -> None:
    """To one of these, to an anchor of the gallery, or to a page that another maker writes for a node."""
    nodes = {f"../{has_page(id_)}/{file_of(id_)}.html" for id_ in _ids() if has_page(id_)}
    anchors = {f"index.html#{part.name}" for part in known().parts}
    for path, content in pages().items():
        if not path.endswith(".md"):
            continue
        for address in set(re.findall(r'href="([^"]*)"', content)):
            own = f"{FAILURES}/{address.removesuffix('.html')}.md" in pages()
            outside = address.startswith(("https://", "../predicates/", "../_static/"))
            assert own or outside or address in nodes | anchors, f"{path}: {address}"


def _ids() -> list[str]:
    tree = known()
    nodes = (tree.questions, tree.groups, tree.entries, tree.leaves)
    return [*(id_ for held in nodes for id_ in held), *(item.id for item in tree.signatures)]


def test_no_page_names_this_machine() -> None:
    """No folder of it, as of the text logs that are made for a moment."""
    for path, content in pages().items():
        assert str(ROOT) not in content, path
        assert not re.search(r"/tmp/\w", content), path  # noqa: S108 - it is looked for


def test_the_pages_are_small() -> None:
    """What is read at once: the gallery in less than a megabyte, a page in a tenth of one."""
    assert len(pages()[f"{FAILURES}/index.md"]) < 850_000
    assert max(len(of(leaf)) for leaf in LEAVES) < 150_000
    assert sum(map(len, pages().values())) < 12_000_000


def test_a_picture_follows_the_page_and_not_the_system() -> None:
    """No picture brings a style sheet of its own: it would follow what the reader's system prefers."""
    assert not [path for path, content in pages().items() if path.endswith(".md") and "<style" in content]


def test_the_same_tree_gives_the_same_page() -> None:
    """Nothing on it depends on the time or on the place."""
    example = examples()["spike-bad-batch"]
    assert page(example) == of("spike-bad-batch")


def test_a_card_shows_the_loss_and_what_tells_of_the_failure() -> None:
    """A broken loss scale is seen in the scale, not in the loss above it."""
    shown = thumbnail(examples()["scale-collapse"])
    assert re.findall(r'class="name"[^>]*>([^<]*)', shown) == ["loss", "loss_scale"]
    assert "batch_id" not in thumbnail(examples()["spike-duplicate-batch"])


def test_a_group_is_shown_by_its_highest_member() -> None:
    """Attention logits are logged by layer, and told of as one."""
    names = re.findall(r'class="name"[^>]*>([^<]*)', thumbnail(examples()["attention-logits-grow"]))
    assert names == ["loss", "attention_logits_max/block3"]


def test_where_nothing_is_wrong_the_picture_shows_what_answered() -> None:
    """The loss scale that backs off as it should."""
    assert "loss_scale" in thumbnail(examples()["normal-backoff"])


def test_what_no_curve_tells_is_asked() -> None:
    """A card with the same flat loss as ten others would help nobody."""
    shown = thumbnail(examples()["loss-detached"])
    assert known().questions["O3"].ask in words(shown)
    assert "<svg" not in shown


def test_a_loss_that_is_no_longer_logged_stands_above_a_run_that_goes_on() -> None:
    """Alone it would look like one that ends."""
    assert re.findall(r'class="name"[^>]*>([^<]*)', thumbnail(examples()["loss-stops"])) == ["loss", "lr"]
    assert 'class="onset-line"' in thumbnail(examples()["loss-stops"])


def test_no_two_pages_are_called_the_same() -> None:
    """The search of the site shows titles and nothing else of an address."""
    headlines = [parts.headline(example.leaf) for example in examples().values()]
    assert len(set(headlines)) == len(headlines)
    assert parts.headline(known().leaves["disk-full"]) == known().leaves["disk-full"].title
    assert "# The disk is full, and the run survived it\n" in of("disk-full-survived")


def test_a_spike_stands_out_on_its_card() -> None:
    """The axis of a report cuts it off, so that the rest of the curve can be read."""
    shown = thumbnail(examples()["spike-unexplained"])
    (curve,) = re.findall(r'class="curve" d="M([^"]*?)Z?"', shown)
    heights = sorted(float(point.split()[1]) for point in curve.split("L"))
    assert heights[0] < heights[2] - 20  # but for the two ends of the band, all else is far below
    assert "0.294 to 6.94" in words(shown)


def test_failures_that_differ_in_their_level_differ_on_their_cards() -> None:
    """Two curves that fall alike, from a chance level and from nearly 0."""
    above, zero = (thumbnail(examples()[id_]) for id_ in ("starts-above-chance", "starts-near-zero"))
    assert above != zero


def test_a_run_that_comes_close_is_drawn_with_what_decided() -> None:
    """Not with series that had no say."""
    rows = of("answers-cut-off").partition("Runs that come close")[2].partition("What else looks like it")[0]
    assert set(re.findall(r'<svg[^>]* aria-label="([^"]*)"', rows)) == {"loss, clipped_ratio"}


def test_the_filter_goes_by_what_is_seen_in_the_series_that_decided() -> None:
    """An eval loss that is NaN is a NaN; a settled loss says nothing of the evaluation's parting."""
    assert "nan" in seen(examples()["eval-loss-nan"])
    assert "nan" not in seen(examples()["spike-minor"])


def test_a_card_is_found_by_each_message_that_is_told_so() -> None:
    """Also by those that its picture does not quote."""
    card = next(part for part in pages()[f"{FAILURES}/index.md"].split("<article") if ">disk-full<" in part)
    assert "No space left on device" in words(f"<article{card}")
    asked = re.findall(r'data-words="([^"]*)"', card)[0]
    assert {"quota", "exceeded"} <= set(asked.lower().split())
