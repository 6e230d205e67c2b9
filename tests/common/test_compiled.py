"""What is compiled of our YAML is what reading it gives, and only while it is unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from release.compiled import encoded, written
from stabtree.common import data
from stabtree.frameworks import load as frameworks
from stabtree.frameworks import model as frameworks_model
from stabtree.metrics import load as metrics
from stabtree.metrics import metric
from stabtree.tree import calibration, document, load, model
from stabtree.tree.shipped import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def file(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of this very checkout, in place of what the installation wrote."""
    made = written(tmp_path_factory.getbasetemp() / "compiled.json")
    monkeypatch.setattr(data, "FILE", made)
    data._lines.cache_clear()
    yield made
    data._lines.cache_clear()


@pytest.mark.parametrize("name", shipped())
def test_a_compiled_tree_is_the_one_in_its_file(name: str) -> None:
    """To the last attribute, its types included."""
    assert repr(data.compiled(name, model, document)) == repr(load.built(name))


def test_other_tables_are_those_of_their_files() -> None:
    """Trainers, metrics and the fit."""
    assert data.compiled("frameworks", frameworks_model) == frameworks.read(frameworks.FOLDER)
    assert data.compiled("metrics", metric, metrics) == metrics.read(metrics.FILE)
    assert data.compiled("calibrations", calibration) == calibration.read()


def test_a_change_of_a_source_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled before counts no more."""
    monkeypatch.setattr(data, "INSTALLED", tmp_path)
    (tmp_path / "phase19.yaml").write_text("name: phase19", encoding="utf-8")
    assert data.compiled("phase19", model, document) is None


@pytest.mark.parametrize("text", ["", "no key\nphase19\n{}", "\x00"])
def test_a_damaged_file_is_left_aside(file: Path, text: str) -> None:
    """The trees are built from their YAML then."""
    file.write_text(text, encoding="utf-8")
    assert data.compiled("phase19", model, document) is None


def test_containers_keep_their_type() -> None:
    """A tuple within a tuple, a list, a set, and a mapping of no class."""
    case = document.Case("run", "leaf", {"a": "b"})
    assert encoded(((1, 2), [3])) == [{"": "tuple", "[]": [1, 2]}, {"": "list", "[]": [3]}]
    assert encoded(frozenset("ba")) == {"": "frozenset", "[]": ["a", "b"]}
    assert encoded(case) == {"": "Case", "run": "run", "reaches": "leaf", "answers": {"a": "b"}}
