"""Every run whose diagnosis is known is told the same as ever: a threshold that moves turns one of these red."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.documents import STATED
from benchmarks.faultbench import predict
from stabtree.tree.params import declared
from tests import corpus
from tests.corpus import labelled, made
from tests.corpus.made import documents

if TYPE_CHECKING:
    from tests.corpus.made.hold import Pin

# What the log of a labelled run does not tell, each with what is said instead.
MISSES = {
    "r0104": "a slow growth of the weights, of which the log holds loss and lr: a small spike, no alarm",
}
OTHER_LEAVES = {
    "r0101": "a spike that stays up by a sliver of the range that the loss covers counts as back",
}


@pytest.mark.parametrize("case", corpus.cases())
def test_a_known_run_is_told_the_same(case: str) -> None:
    """Verdict, leaf, onsets and the causes that the log bears out are those that were recorded.

    Where the change is meant, `python -m tests.corpus` records the new ones; look at each line that changed.
    """
    assert corpus.told(corpus.found(case)) == corpus.expected()[case]


def test_no_run_is_expected_that_is_not_there() -> None:
    """The record holds the cases that there are, no more."""
    assert corpus.expected().keys() == corpus.cases().keys()


@pytest.mark.parametrize("pin", made.PINS, ids=lambda pin: pin.name)
def test_a_run_close_to_a_threshold_is_told_what_its_side_says(pin: Pin) -> None:
    """On one side of the threshold what its line names is told, on the other it is not."""
    said = corpus.told(corpus.found(f"made/{pin.name}"))
    words = {said.verdict, said.end, *(line.rsplit(" ", 1)[0] for line in said.causes)}
    for found in said.findings:
        words |= {found.leaf, f"restart {found.restart_step}", *(f"precursor {step}" for step in found.precursors)}
    assert (pin.told.removeprefix("no ") in words) != pin.told.startswith("no ")


def test_every_threshold_that_is_held_is_one() -> None:
    """The table of made runs names parameters of the trees, as `--set` spells them."""
    for hold in documents.HOLDS:
        id_, _, name = hold.threshold.rpartition(".")
        assert name in declared(corpus.trees(), id_), hold.threshold


def test_every_documented_number_is_one_of_the_trees() -> None:
    """What is never fitted, since a document gives it, are parameters of the trees."""
    for key in STATED:
        id_, _, name = key.rpartition(".")
        assert name in declared(corpus.trees(), id_), key


@pytest.mark.parametrize("id_", labelled.truth())
def test_a_labelled_run_is_told_what_was_done_to_it(id_: str) -> None:
    """A run that is well raises no alarm; one that is not ends in a leaf that its log allows; misses are known."""
    truth, said = labelled.truth()[id_], predict(corpus.found(f"labelled/{id_}"))
    if truth["fault"] in labelled.CALM or said["leaf"] == "s4.plateau":
        assert said["healthy"]
    elif truth["fault"] != "PLATEAU":
        assert said["healthy"] == (id_ in MISSES)
        right = said["leaf"] in truth["acceptable_leaves"] and said["section"] in truth["acceptable_sections"]
        assert right == (id_ not in OTHER_LEAVES)
