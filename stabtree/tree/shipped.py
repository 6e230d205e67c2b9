"""The trees that come with stabtree: where they are, and what can be read of them without parsing them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.tree.model import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "_trees"  # where a wheel has the trees; in a checkout they are beside the package
MAIN = "phase19"
DEFAULT = (MAIN, "convergence", "precision", "sft", "grpo", "signatures", "errors")
PREFLIGHT = "preflight"
KNOWN = (*DEFAULT, PREFLIGHT)
"""All that can be explained; a log is walked through the default ones, a configuration through the last."""
CALIBRATION = "calibration.yaml"
HEAD = 2000  # characters
_HEAD = re.compile(r"^(name|title|when): (.*)$", re.MULTILINE)
_TITLED = re.compile(r"\bid: ([\w.-]+)[^\n]*\n(?: +(?!ask|title)[a-z]+: [^\n]*\n){0,4}? +(?:ask|title): ([^\n]+)")


def trees_folder() -> Path:
    """Return the folder of the shipped trees."""
    return INSTALLED if INSTALLED.is_dir() else PACKAGE.parent / "trees"


@cache
def shipped() -> dict[str, Path]:
    """Return the files of the shipped trees, by name."""
    files = sorted(trees_folder().glob("*.yaml"))
    return {path.stem: path for path in files if path.name != CALIBRATION}


def calibration_file() -> Path:
    """Return the file of the fitted limits."""
    return trees_folder() / CALIBRATION


@cache
def heads() -> Mapping[str, Part]:
    """Return the name, title and condition of the default trees, from their first lines."""
    known, found = shipped(), {}
    for name in (name for name in DEFAULT if name in known):
        head = dict(_HEAD.findall(known[name].read_text(encoding="utf-8")[:HEAD]))
        words = map(str.strip, head.get("when", "").strip("[] ").split(","))
        found[name] = Part(head["name"], head["title"], tuple(filter(None, words)), loaded=False)
    return found


@cache
def shipped_titles() -> Mapping[str, str]:
    """Return the questions and titles of the nodes of all shipped trees, by id."""
    texts = (path.read_text(encoding="utf-8") for path in shipped().values())
    return {id_: title.strip("\"' ") for text in texts for id_, title in _TITLED.findall(text)}


def names_defining(id_: str) -> list[str]:
    """Return the names of the shipped trees that may define an id."""
    word = re.escape(id_)
    mark = rf"\bid: [\"']?{word}[\"']?\s*[,\n}}]|\bleaf: {word}\s*[,\n]|\bof: \[[^]]*\b{word}\b"
    return _names_with(id_, mark)


def names_asking(test: str) -> list[str]:
    """Return the names of the shipped trees that ask a predicate."""
    return _names_with(test, rf"\btest: {re.escape(test)}\b")


def _names_with(word: str, pattern: str) -> list[str]:
    """Return the names of the shipped trees whose text has a word where a pattern says."""
    known, mark = shipped(), re.compile(pattern)
    texts = ((name, known[name].read_text(encoding="utf-8")) for name in KNOWN if name in known)
    # A word is found tenfold faster than a pattern, and most trees lack it.
    return [name for name, text in texts if word in text and mark.search(text)]


def shipped_runs() -> Path:
    """Return the folder of the runs that come with stabtree: inside the package in a wheel, beside it in a checkout."""
    folder = PACKAGE / "_runs"
    return folder if folder.is_dir() else PACKAGE.parent / "fixtures"
