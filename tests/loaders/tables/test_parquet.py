"""Parquet and Feather."""

from __future__ import annotations

import contextlib
import io
import math
import sys
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

pa = pytest.importorskip("pyarrow")


def stored(columns: dict[str, object], kind: str) -> bytes:
    """The columns as a file of this kind."""
    from pyarrow import feather, parquet

    out = io.BytesIO()
    (parquet.write_table if kind == "parquet" else feather.write_feather)(pa.table(columns), out)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_nulls_and_nans_are_told_apart(tmp_path: Path, kind: str) -> None:
    """A null was not logged, a NaN was; text, booleans and lists are no trouble."""
    columns = {
        "step": pa.array([0, 1, 2, 3], pa.int32()),
        "loss": pa.array([4.0, math.nan, None, 3.0], pa.float32()),
        "grad_norm": ["1.5", "inf", "x", None],
        "lr": pa.array([1, None, 0, 1], pa.uint8()),
        "finite/head": [True, False, None, True],
        "sample": [[1], [2], [], None],
    }
    run = load_run(write(tmp_path, stored(columns, kind), f"run.{kind}"))
    assert run.sources[0].format == kind
    assert run.series["loss"].steps.tolist() == [0, 1, 3]
    assert math.isnan(run.series["loss"].values[1])
    assert run.series["grad_norm"].values.tolist() == [1.5, math.inf]
    assert run.series["lr"].steps.tolist() == [0, 2, 3]
    assert run.series["activation_finite/head"].values.tolist() == [1, 0, 1]


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
def test_a_damaged_file_is_an_error(tmp_path: Path, kind: str, share: float) -> None:
    """Its index stands at its end, so nothing of a cut file can be read."""
    data = stored({"step": list(range(999)), "loss": [0.5] * 999}, kind)
    with pytest.raises(StabtreeError, match="can't be read as"):
        load_run(write(tmp_path, data[: int(len(data) * share)], f"run.{kind}"))


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_a_lying_file_does_no_harm(tmp_path: Path, kind: str) -> None:
    """Whatever byte of it is wrong, it is read or refused: no offset leads out of the file."""
    data = stored({"step": list(range(20)), "loss": [0.5] * 20, "run": ["a"] * 19 + ["b"]}, kind)
    for place in range(8, len(data), 7):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        with contextlib.suppress(StabtreeError):
            load_run(write(tmp_path, bytes(broken), f"run.{kind}"))


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StabtreeError) as caught:
        load_run(write(tmp_path, b"PAR1" + bytes(50)))
    assert caught.value.hint == "pip install 'stabtree[parquet]'"
