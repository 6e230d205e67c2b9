"""Every run whose diagnosis is known is told the same as ever: a threshold that moves turns one of these red."""

from __future__ import annotations

import re

import pytest

from benchmarks.documents import STATED
from benchmarks.faultbench import predict
from stabtree.tree.params import declared
from tests import corpus
from tests.corpus import labelled, made
from tests.corpus.made import documents
from tests.whole.invariants import contradictions

KINDS = {case: re.findall(r"leaves/\w+|^\w+", case)[-1] for case in {**corpus.cases(), **corpus.expected()}}
# What the log of a labelled run does not tell, each with what is said instead.
MISSES = {"r0104": "a slow growth of the weights, of which the log holds loss and lr: a small spike, no alarm"}
OTHER_LEAVES = {"r0101": "a spike that stays up by a sliver of the range that the loss covers counts as back"}


@pytest.mark.parametrize("kind", sorted({*KINDS.values()}))
def test_known_runs_are_told_the_same(kind: str) -> None:
    """Verdict, leaf, onsets and the causes that the log bears out are those that were recorded; no number refutes them.

    Where the change is meant, `python -m tests.corpus` records the new ones; look at each line that changed.
    """
    found = {case: corpus.found(case) for case in corpus.cases() if KINDS[case] == kind}
    refuted = {case: [*contradictions(diagnosis)] for case, diagnosis in found.items() if not diagnosis.literal}
    assert not {case: texts for case, texts in refuted.items() if texts}
    told = {case: corpus.told(diagnosis) for case, diagnosis in found.items()}
    assert told == {case: known for case, known in corpus.expected().items() if KINDS[case] == kind}


def test_a_run_close_to_a_threshold_is_told_what_its_side_says() -> None:
    """On one side of the threshold what its line names is told, on the other it is not."""
    for pin in made.PINS:
        said = corpus.told(corpus.found(f"made/{pin.name}"))
        words = {said.verdict, said.end, *(line.rsplit(" ", 1)[0] for line in said.causes)}
        for found in said.findings:
            words |= {found.leaf, f"restart {found.restart_step}", *(f"precursor {step}" for step in found.precursors)}
        assert (pin.told.removeprefix("no ") in words) != pin.told.startswith("no "), pin.name


def test_every_threshold_that_is_named_is_one() -> None:
    """Made runs and documents name parameters of the trees, as `--set` spells them."""
    for threshold in (*(hold.threshold for hold in documents.HOLDS), *STATED):
        id_, _, name = threshold.rpartition(".")
        assert name in declared(corpus.trees(), id_), threshold


def test_a_labelled_run_is_told_what_was_done_to_it() -> None:
    """A run that is well raises no alarm; one that is not ends in a leaf that its log allows; misses are known."""
    for id_, truth in labelled.truth().items():
        said = predict(corpus.found(f"labelled/{id_}"))
        if truth["fault"] in labelled.CALM or said["leaf"] == "s4.plateau":
            assert said["healthy"], id_
        elif truth["fault"] != "PLATEAU":
            assert said["healthy"] == (id_ in MISSES), id_
            right = said["leaf"] in truth["acceptable_leaves"] and said["section"] in truth["acceptable_sections"]
            assert right == (id_ not in OTHER_LEAVES), id_
