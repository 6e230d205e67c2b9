"""Measures of other packages: the page on how to write one is followed, and what can go wrong is told."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.measures import measure_named, registry
from stabtree.tree.load import build
from tests.cli.command import environment, failed, process, run
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = ROOT / "docs" / "how-to" / "write-a-measure.md"
FILE = re.compile(r"`([\w.-]+\.(?:py|toml|yaml))`[^`]*?:\n\n(?:<!--[^\n]*\n)?```\w+\n(.*?)```", re.DOTALL)
BLOCKS = dict(FILE.findall(PAGE.read_text(encoding="utf-8")))
OFFERS = {"loss_frozen": "frozen:loss_frozen"}
LOG = "step,loss\n" + "\n".join(f"{step},{max(4 - step / 100, 2.5)}" for step in range(400))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that this process imports from and finds packages in, for the time of a test."""
    registry._entries.cache_clear()
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    registry._entries.cache_clear()
    registry.loaded.cache_clear()
    sys.modules.pop("frozen", None)


def install(site: Path, code: str, offers: dict[str, str], name: str = "frozen-loss") -> None:
    """Put a package of one module into a folder, as an installer does: its code, and what it says of itself."""
    (site / "frozen.py").write_text(code, encoding="utf-8")
    about = site / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = [f"{key} = {value}" for key, value in offers.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{registry.GROUP}]", *lines, ""]), encoding="utf-8")


def test_the_package_of_the_page_diagnoses_a_run(site: Path, tmp_path: Path) -> None:
    """Installed with the entry points of its pyproject, its measure is asked, set, explained and checked by name."""
    project = tomllib.loads(BLOCKS["pyproject.toml"])["project"]
    install(site, BLOCKS["frozen.py"], project["entry-points"][registry.GROUP], project["name"])
    tree, log = tmp_path / "frozen.yaml", tmp_path / "run.csv"
    tree.write_text(BLOCKS["frozen.yaml"], encoding="utf-8")
    log.write_text(LOG, encoding="utf-8")
    done = process("diagnose", str(log), "--tree", str(tree), "-q", PYTHONPATH=str(site))
    assert done.stdout == f"CRITICAL  {log}: Step 150: The loss is frozen [loss-frozen]\n", done.stderr
    high = ["--set", "F1.rows=300"]
    assert run("diagnose", str(log), "--tree", str(tree), "-q", *high).returncode == 0
    explained = run("explain", "F1", "--tree", str(tree), "--full").stdout
    assert "loss_frozen: Does the loss stay at exactly one number?" in explained
    assert "no mistake" in run("tree", "check", str(tree)).stdout
    tree.write_text(BLOCKS["frozen.yaml"].replace("{rows: 30}", "{row: 30}"), encoding="utf-8")
    assert "did you mean 'rows'?" in failed("tree", "check", str(tree))


def test_the_tests_of_the_page_pass(site: Path) -> None:
    """As they stand, by pytest."""
    install(site, BLOCKS["frozen.py"], {})
    (site / "test_frozen.py").write_text(BLOCKS["test_frozen.py"], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_frozen.py"]
    done = subprocess.run(
        command, cwd=site, capture_output=True, text=True, encoding="utf-8", check=False, env=environment()
    )
    assert "3 passed" in done.stdout


@pytest.mark.parametrize(
    ("code", "offers", "problem"),
    [
        ("import nothing_of_this_name", OFFERS, "No module named 'nothing_of_this_name'"),
        ("", OFFERS, "AttributeError"),
        ("raise SystemExit(3)", OFFERS, "can't be imported: SystemExit"),
        ("def loss_frozen(): ...", OFFERS, "is no measure that answers a question but of type function"),
        (
            BLOCKS["frozen.py"],
            {"loss_spikes": "frozen:loss_frozen"},
            "a measure 'loss_spikes', which stabtree itself has as well",
        ),
    ],
)
def test_what_can_not_be_used_names_the_package(site: Path, code: str, offers: dict[str, str], problem: str) -> None:
    """A module that fails, a thing that is no measure, a name that is ours: two lines, not a traceback."""
    install(site, code, offers)
    tree = site / "frozen.yaml"
    tree.write_text(BLOCKS["frozen.yaml"], encoding="utf-8")
    text = failed("tree", "check", str(tree))
    assert text.startswith("error: package frozen-loss: ")
    assert problem in text
    assert len(text.splitlines()) == 2


def test_a_name_that_two_packages_offer_is_an_error(site: Path) -> None:
    """Neither wins: the message names both."""
    install(site, BLOCKS["frozen.py"], OFFERS)
    install(site, BLOCKS["frozen.py"], OFFERS, "other")
    with pytest.raises(StabtreeError, match=r"'loss_frozen', which (other|frozen-loss) has as well"):
        measure_named("loss_frozen")


def test_a_misspelt_name_is_told_with_the_nearest_of_all(site: Path) -> None:
    """A tree's mistake stays a mistake with its line, and what packages offer is among what may have been meant."""
    install(site, BLOCKS["frozen.py"], OFFERS)
    with pytest.raises(StabtreeError, match=r"'loss_frozn', which does not exist; did you mean 'loss_frozen'\?"):
        build(BLOCKS["frozen.yaml"].replace("test: loss_frozen", "test: loss_frozn"), "my.yaml")
