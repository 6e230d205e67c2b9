"""The trees that come with stabtree: where they are, what can be read of them without parsing them, their calibration.

The calibration holds the fitted limits of questions, and how likely an engineer calls a run faulty at a given strength.
`make fit` writes `trees/calibration.yaml`. A limit is the value of a question's own parameter at which that likelihood
reaches the level of an alarm, so a strength of 0 is an alarm, and below it the fitted slope decides how fast it falls.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping  # noqa: TC003 - read when a file is converted
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.yaml12 import read, typed
from stabtree.tree.model import Param, Part

if TYPE_CHECKING:
    from stabtree.tree.model import Tree

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "_trees"  # where a wheel has the trees; in a checkout they are beside the package
MAIN = "phase19"
DEFAULT = (MAIN, "convergence", "precision", "sft", "grpo", "errors")
PREFLIGHT = "preflight"
KNOWN = (*DEFAULT, PREFLIGHT)
"""All that can be explained; a log is walked through the default ones, a configuration through the last."""
CALIBRATION = "calibration.yaml"
TABLES = ("causes.yaml", "actions.yaml")
HEAD = 2000  # characters
_HEAD = re.compile(r"^(name|title|when): (.*)$", re.MULTILINE)
_TITLED = re.compile(
    r'\bid: ([\w.-]+)(?:(?!\bid: ).)*?\b(?:ask|title): (?:"((?:[^"\\]|\\.)*)"|([^\n]*?)(?:,?\n|, \w+: ))', re.DOTALL
)


def trees_folder() -> Path:
    """Return the folder of the shipped trees."""
    return INSTALLED if INSTALLED.is_dir() else PACKAGE.parent / "trees"


@cache
def shipped() -> dict[str, Path]:
    """Return the files of the shipped trees, by name."""
    files = sorted(trees_folder().glob("*.yaml"))
    return {path.stem: path for path in files if path.name not in (CALIBRATION, *TABLES)}


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
    found = chain.from_iterable(map(_TITLED.findall, texts))
    return {id_: " ".join((quoted or plain).replace('\\"', '"').split()) for id_, quoted, plain in found}


def names_defining(id_: str) -> list[str]:
    """Return the names of the shipped trees that may define an id."""
    word = re.escape(id_)
    mark = rf"\bid: [\"']?{word}[\"']?\s*[,\n}}]|\bleaf: {word}\s*[,\n]"
    return _names_with(id_, mark)


def names_asking(test: str) -> list[str]:
    """Return the names of the shipped trees that ask a measure."""
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


class Fit(Struct, frozen=True):
    """What was fitted for one question.

    Attributes:
        slope: how much the log-odds of a fault grow with each doubling of what was measured.
        family: the family whose slope it shares; empty where it has its own.
        limit: the fitted parameters, by name; empty where the limit is a document's or simulated.
        positives: how many failing runs it rests on.
        repositories: of how many repositories they are.
        unseen: rates on repositories that had no part in the fit, each with its 95% interval, by name.
    """

    slope: float
    family: str = ""
    limit: Mapping[str, Param] = {}
    positives: int = 0
    repositories: int = 0
    unseen: Mapping[str, tuple[float, ...]] = {}


class Calibrations(Struct, frozen=True):
    """The calibrations of all questions.

    Attributes:
        alarm: the likelihood from which on a finding is an alarm.
        near: the likelihood from which on a fact is worth a note.
        slope: the slope of questions in no family.
        questions: what was fitted, by question.
    """

    alarm: float
    near: float
    slope: float
    questions: Mapping[str, Fit]

    def of(self, id_: str) -> Fit:
        """Return what is known of a question; the shared slope where nothing was fitted."""
        return self.questions.get(id_) or Fit(self.slope, "default")

    def likelihood(self, id_: str, strength: float) -> float:
        """Return how likely an engineer would call the run faulty in the way that a question asks for.

        Args:
            id_: the question.
            strength: how far its answer stands from the limit, in doublings.
        """
        odds = math.log(self.alarm / (1 - self.alarm)) + self.of(id_).slope * strength
        return 1 / (1 + math.exp(-odds))


_USED: list[Calibrations] = []


def calibrations() -> Calibrations:
    """Return the calibrations that are used: the shipped ones, unless others were chosen."""
    return _USED[-1] if _USED else _shipped_calibrations()


def use_calibrations(other: Calibrations) -> None:
    """Judge with other calibrations from now on: to measure them. Trees that were loaded keep their limits."""
    _USED[:] = [other]


@cache
def _shipped_calibrations() -> Calibrations:
    path = trees_folder() / CALIBRATION
    raw = read(path)
    levels, slope = raw["levels"], raw["families"]["default"]["slope"]
    return typed({**levels, "slope": slope, "questions": raw["questions"]}, Calibrations, path.name)


def with_limits(tree: Tree) -> Tree:
    """Return a shipped tree with the fitted limits in place of those that its questions state."""
    known, questions = calibrations().questions, dict(tree.questions)
    for id_ in known.keys() & questions.keys():
        question, limit = questions[id_], known[id_].limit
        advanced = {name: limit.get(name, value) for name, value in question.advanced.items()}
        own = {name: value for name, value in limit.items() if name not in advanced}
        questions[id_] = replace(question, params={**question.params, **own}, advanced=advanced)
    return replace(tree, questions=questions)
