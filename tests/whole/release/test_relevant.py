"""Which tests a change calls for."""

from __future__ import annotations

import pytest

from tests.whole.release.relevant import ROOT, relevant


def test_a_module_calls_for_the_tests_that_import_it() -> None:
    """They are files that exist, and the module's own test is among them."""
    found = relevant(str(ROOT / "stabtree" / "diagnosis" / "causes.py"))
    assert "tests/diagnosis/test_causes.py" in found
    assert all((ROOT / name).exists() for name in found)


def test_a_module_that_no_test_imports_calls_for_those_of_its_room() -> None:
    """The nearest folder of tests mirrors the module's."""
    assert relevant(str(ROOT / "stabtree" / "loaders" / "text" / "nowhere.py")) == ["tests/loaders/text"]


def test_a_tree_calls_for_the_run_of_each_leaf() -> None:
    """A rule's change shows at the leaves."""
    assert "tests/whole/test_leaves.py" in relevant(str(ROOT / "trees" / "phase19.yaml"))


def test_a_file_without_tests_is_an_error() -> None:
    """No test silently means none is needed."""
    with pytest.raises(ValueError, match="run them all"):
        relevant(str(ROOT / "README.md"))
