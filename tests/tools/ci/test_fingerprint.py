"""A finding is known again by its leaf, its run, and all that was logged up to its onset."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.judging.judge import Judging
from stabtree.tools.ci.baseline import fingerprint
from tests.conftest import make_run, series

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Series

GONE = 40  # the step at which the loss goes NaN


def found(columns: Mapping[str, list[float]]) -> Diagnosis:
    """What is found in a run of these columns."""
    return Judging().diagnosed(make_run(columns))


def losses(onset: int = GONE, length: int = 60) -> list[float]:
    """A loss that falls, and is NaN from a step on."""
    return [3.0 / (1 + step / 10) if step < onset else math.nan for step in range(length)]


def known(columns: Mapping[str, list[float]]) -> str:
    """The fingerprint of the worst finding."""
    diagnosis = found(columns)
    return fingerprint(diagnosis, diagnosis.findings[0])


BASE = known({"loss": losses()})


def test_a_log_that_merely_grew_keeps_its_fingerprint() -> None:
    """More rows after the onset, and a column that begins after it, change nothing."""
    assert known({"loss": losses(length=90)}) == BASE
    diagnosis = found({"loss": losses()})
    late = {**diagnosis.run.series, "lr": series("lr", [1e-3], [GONE + 5])}
    assert fingerprint(replace(diagnosis, run=replace(diagnosis.run, series=late)), diagnosis.findings[0]) == BASE


@pytest.mark.parametrize(
    "columns",
    [
        {"loss": losses(onset=GONE + 1)},
        {"loss": [2.999, *losses()[1:]]},
        {"loss": losses(), "lr": [1e-3] * 60},
        {"loss": [*losses()[:20], math.inf, *losses()[21:]]},
    ],
    ids=["a later NaN", "another first row", "another column", "an infinity before it"],
)
def test_another_event_in_the_same_file_is_new(columns: dict[str, list[float]]) -> None:
    """Whatever differs up to the onset gives another fingerprint."""
    assert known(columns) != BASE


def test_another_run_and_another_leaf_are_others() -> None:
    """The same rows under another name, or another leaf found in them, are not taken for known."""
    diagnosis = found({"loss": losses()})
    finding = diagnosis.findings[0]
    named = replace(diagnosis, run=replace(diagnosis.run, name="another"))
    leaf = replace(finding, leaf=replace(finding.leaf, id="another"))
    assert len({BASE, fingerprint(named, finding), fingerprint(diagnosis, leaf)}) == 3


def test_it_is_the_same_whatever_wrote_the_numbers() -> None:
    """The order of columns, the byte order of the arrays and the bits of a NaN say nothing of the run."""
    diagnosis = found({"loss": losses(), "lr": [1e-3] * 60})
    finding, held = diagnosis.findings[0], diagnosis.run.series
    odd = np.frombuffer(np.array([0x7FF8_0000_0000_0001], dtype="<u8").tobytes(), dtype="<f8")[0]
    values = np.where(np.isnan(held["loss"].values), odd, held["loss"].values).astype(">f8")
    other: dict[str, Series] = {"lr": held["lr"], "loss": replace(held["loss"], values=values)}
    assert fingerprint(replace(diagnosis, run=replace(diagnosis.run, series=other)), finding) == fingerprint(
        diagnosis, finding
    )


def test_it_is_a_hash_in_hex() -> None:
    """64 small hexadecimal digits, the same in every version that does not say otherwise."""
    assert known({"loss": losses()}) == BASE
    assert len(BASE) == 64
    assert int(BASE, 16) >= 0
