"""TensorBoard's event files: what was logged is read, what is damaged is named, folders make runs."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree import diagnose
from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from stabtree.report.inspect import inspect_text
from stabtree.tree.load import load_trees
from tests.conftest import falling
from tests.loaders.make import points, write
from tests.loaders.make_binary import event, events, masked_crc, part, record, scalar, tensor, varint

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.run import Run

NAN, INF = float("nan"), float("inf")
NAME = "events.out.tfevents.1700000000.host.1.0"


def rows(count: int, first: int = 0) -> list[tuple[int, Mapping[str, float]]]:
    """A falling loss with its learning rate."""
    return [(step, {"train/loss": 4 - step / 64, "lr": 0.5}) for step in range(first, first + count)]


def load(tmp_path: Path, content: bytes, **options: Any) -> Run:
    """The run of a file with this content."""
    return load_run(write(tmp_path, content, NAME), **options)


def test_scalars_of_one_step_are_one_row(tmp_path: Path) -> None:
    """Each tag is a column on its own steps; NaN and infinity are values."""
    content = [(0, {"loss": 4.5, "lr": 0.5}), (3, {"loss": 4.25}), (300, {"loss": NAN, "lr": 0.25})]
    content.append((301, {"loss": -INF}))
    run = load(tmp_path, events(content))
    assert points(run) == {"loss": [(0, 4.5), (3, 4.25), (300, "nan"), (301, -INF)], "lr": [(0, 0.5), (300, 0.25)]}
    assert run.sources[0].rows == 4
    assert run.sources[0].format == "tfevents"
    assert not run.notes


def test_evaluations_of_keras_are_read_once_and_by_epoch(tmp_path: Path) -> None:
    """It writes them by iteration as well, and calls the loss of an epoch as in the training's file."""
    rows = [(epoch, {"epoch_loss": 4.5 - epoch}) for epoch in range(3)]
    rows += [(epoch * 32, {"evaluation_loss_vs_iterations": 4.5 - epoch}) for epoch in range(1, 4)]
    run = load(tmp_path, events(rows))
    assert points(run) == {"eval_loss": [(0, 4.5), (1, 3.5), (2, 2.5)]}
    assert run.sources[0].steps_from == "epoch"
    assert any("by iteration, which are left out" in note for note in run.notes)


def test_training_of_keras_is_counted_in_epochs(tmp_path: Path) -> None:
    """All that its file of the training holds is by epoch."""
    run = load(tmp_path, events([(epoch, {"epoch_loss": 4.5, "epoch_mse": 3.0}) for epoch in range(9)]))
    assert run.sources[0].steps_from == "epoch"
    assert set(points(run)) == {"loss"}


def test_several_values_in_one_event(tmp_path: Path) -> None:
    """Writers of the first TensorFlow put a whole step into one summary."""
    content = b"".join(event(step, [scalar("loss", 4 - step), scalar("lr", step / 2)]) for step in range(3))
    assert points(load(tmp_path, content)) == {"loss": [(0, 4), (1, 3), (2, 2)], "lr": [(0, 0), (1, 0.5), (2, 1)]}


@pytest.mark.parametrize(
    ("dtype", "content", "value"),
    [
        (1, part(5, struct.pack("<f", 2.5)), 2.5),
        (1, varint(5 << 3 | 5) + struct.pack("<f", 2.5), 2.5),
        (1, part(4, struct.pack("<f", 2.5)), 2.5),
        (1, part(4, struct.pack("<f", float("nan"))), "nan"),
        (2, part(6, struct.pack("<d", 2.5)), 2.5),
        (2, part(4, struct.pack("<d", 2.5)), 2.5),
    ],
)
def test_a_tensor_of_one_number_is_a_scalar(tmp_path: Path, dtype: int, content: bytes, value: float | str) -> None:
    """TensorFlow 2 and JAX log tensors, in any of the codings that hold one float."""
    file = b"".join(event(step, [tensor("loss", dtype, content)]) for step in (1, 2))
    assert points(load(tmp_path, file))["loss"] == [(1, value), (2, value)]


def test_histograms_images_and_texts_are_no_scalars(tmp_path: Path) -> None:
    """Values of other kinds are passed over."""
    others = [
        part(1, "weights") + part(5, part(1, 0.0) + part(7, bytes(80))),
        part(1, "sample") + part(4, part(1, 8) + part(4, bytes(900))),
        tensor("bins", 2, part(4, bytes(90 * 8))),
        tensor("two", 1, part(5, bytes(8))),
        tensor("text", 7, part(8, "hello")),
    ]
    run = load(tmp_path, event(0, others) + events([(1, {"loss": 4}), (2, {"loss": 3})]) + event(2, others))
    assert points(run) == {"loss": [(1, 4), (2, 3)]}


def test_hyperparameters_are_the_configuration(tmp_path: Path) -> None:
    """`add_hparams` and the text `args` of a trainer say how the run was configured."""
    pairs = {"learning_rate": part(2, 0.5), "optimizer": part(3, "adam"), "fp16": part(4, 1)}
    session = b"".join(part(1, part(1, key) + part(2, value)) for key, value in pairs.items())
    hparams = part(1, "_hparams_/session_start_info") + part(9, part(1, part(1, "hparams") + part(2, part(3, session))))
    text = part(1, "args/text_summary") + part(8, part(1, 7) + part(8, '{"warmup_steps": 100}'))
    run = load(tmp_path, event(0, [hparams]) + event(0, [text]) + events(rows(3)))
    assert {key: run.setting(key) for key in run.config} == {
        "lr": 0.5,
        "optimizer": "adam",
        "dtype": "fp16",
        "mixed": True,
        "warmup_steps": 100,
    }


def test_a_cut_file_keeps_what_stands_before(tmp_path: Path) -> None:
    """The file of a killed process ends inside a record, whatever the byte."""
    content = events([(step, {"loss": 4 - step / 8}) for step in range(10)])
    size = len(event(1, [scalar("loss", 1)]))
    for cut in (1, 4, size - 12, size - 1):
        run = load(tmp_path, content[:-cut])
        assert len(run.series["loss"]) == 9
        assert run.notes == (f"The file ends inside a record, whose {size - cut} bytes were not read.",)


def test_a_damaged_record_costs_itself(tmp_path: Path) -> None:
    """Data that does not fit its checksum is not read; a damaged length is stepped over to the next record."""
    content = events([(step, {"loss": 4 - step / 8}) for step in range(1, 11)])
    size = len(event(1, [scalar("loss", 1)]))
    data = bytearray(content)
    data[-3 * size + 20] ^= 1
    run = load(tmp_path, bytes(data))
    assert run.series["loss"].steps.tolist() == [1, 2, 3, 4, 5, 6, 7, 9, 10]
    assert run.notes == ("Damaged records: 1, not read.",)
    data[-5 * size + 2] ^= 1
    run = load(tmp_path, bytes(data))
    assert run.series["loss"].steps.tolist() == [1, 2, 3, 4, 5, 7, 9, 10]
    assert run.notes[1] == f"Damaged bytes between records: {size} of {len(content):,}, skipped."


def test_zeros_in_the_middle(tmp_path: Path) -> None:
    """A disk that filled up leaves zeros; what was written behind them is found."""
    content = events(rows(5)) + bytes(5000) + events(rows(5, 5))
    run = load(tmp_path, content)
    assert run.series["loss"].steps.tolist() == list(range(10))
    assert run.notes == ("Damaged bytes between records: 5,000 of 5,956, skipped.",)


def test_a_large_record_is_stepped_over(tmp_path: Path) -> None:
    """What follows an image of 17 MiB is read."""
    length = struct.pack("<Q", 17 << 20)
    giant = length + masked_crc(length) + bytes((17 << 20) + 4)
    run = load(tmp_path, events(rows(5)) + giant + events(rows(5, 5)))
    assert run.series["loss"].steps.tolist() == list(range(10))


@pytest.mark.parametrize(
    "bomb",
    [
        b"\xff" * 400,
        part(5, b"\xff" * 30),
        part(5, part(1, b"\x0a\xff\xff\xff\xff\x7f")),
        b"\x0b" * 100,
        part(5, part(1, part(1, "loss") + varint(2 << 3 | 5))),
        b"",
        b"\x08",
    ],
)
def test_records_that_are_no_events(tmp_path: Path, bomb: bytes) -> None:
    """Varints without an end, lengths beyond the record and groups cost one record."""
    run = load(tmp_path, events(rows(5)) + record(bomb) + events(rows(5, 5)))
    assert len(run.series["loss"]) == 10


def test_negative_steps_and_foreign_names(tmp_path: Path) -> None:
    """A step of -1 is no step; a tag that is no UTF-8 or called `step` is only a name."""
    tag = part(1, b"\xff\x1b[31m") + single_loss()
    run = load(tmp_path, events([(-1, {"loss": 9}), (1, {"loss": 4, "step": 7}), (2, {"loss": 3})]) + event(2, [tag]))
    assert points(run) == {"loss": [(1, 4), (2, 3)]}
    assert "Rows without a step in column step: 1, read with the step of the row before." in run.notes
    assert "step (2)" in [use.name for use in run.sources[0].columns]
    assert not any("\x1b" in use.name for use in run.sources[0].columns)


def single_loss() -> bytes:
    """The simple value of a summary."""
    return scalar("", 1.0)[2:]


def test_steps_that_were_never_given(tmp_path: Path) -> None:
    """A logger that was given no step writes 0: the values are counted instead."""
    run = load(tmp_path, events([(0, {"loss": 4 - i / 8}) for i in range(5)]))
    assert points(run)["loss"] == [(i, 4 - i / 8) for i in range(5)]
    assert "Every value was logged at step 0." in run.notes


def test_many_tags_of_one_length(tmp_path: Path) -> None:
    """Norms of hundreds of layers are told apart."""
    content = events([(step, {f"grad_norm/{i:03}": i + step for i in range(300)} | {"loss": 2}) for step in range(4)])
    run = load(tmp_path, content)
    assert len(run.group("grad_norm")) == 300
    assert run.series["grad_norm/217"].values.tolist() == [217, 218, 219, 220]


def test_too_many_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name for every value is no way to log; the first ones are kept."""
    monkeypatch.setattr("stabtree.loaders.tensorboard.events.MAX_TAGS", 10)
    run = load(tmp_path, events([(step, {"loss": 4, f"grad_norm/{step}": 1}) for step in range(20)]))
    assert len(run.series["loss"]) == 20
    assert run.notes[0] == "The file has more than 10 tags: 11 values were left out."


def test_a_wide_table_leaves_layers_out_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for everything, the loss is kept."""
    monkeypatch.setattr("stabtree.loaders.table.MAX_CELLS", 100)
    run = load(tmp_path, events([(step, {f"grad_norm/{i}": 1 for i in range(20)} | {"loss": 4}) for step in range(20)]))
    assert len(run.series["loss"]) == 20
    assert "Series left out to save memory: 13 of 21." in run.notes


def test_compressed_and_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed files and pipes are read like plain ones, by their content."""
    content = events(rows(5))
    packed = load_run(write(tmp_path, gzip.compress(content), "log.gz"))
    assert packed.sources[0].format == "tfevents, gzip"

    class Piped:
        buffer = (tmp_path / "log").open("wb+")

    with Piped.buffer as stream:
        stream.write(content)
        stream.seek(0)
        monkeypatch.setattr("sys.stdin", Piped)
        assert points(load_run("-")) == points(packed)


def test_no_scalars(tmp_path: Path) -> None:
    """An event file of a process that died at its start says so."""
    with pytest.raises(StabtreeError, match="holds no scalars"):
        load(tmp_path, events([]))
    with pytest.raises(StabtreeError, match="no column that is known as the training loss") as error:
        load(tmp_path, events([(0, {"val/my badness": 1, "train/my badness": 1})]))
    assert error.value.hint == "name it: --column 'loss=train/my badness'"


BASE = events([(step, {"loss": 4 - step / 8, "lr": 0.5}) for step in range(6)])


@given(st.binary(max_size=120))
def test_any_record_is_an_error_or_a_run(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Any bytes with a right checksum cost a record at most."""
    file = tmp_path_factory.getbasetemp() / NAME
    file.write_bytes(BASE + record(data) + record(part(1, 1.0) + part(5, part(1, data))))
    assert len(load_run(file).series["loss"]) >= 6


def test_the_same_as_tensorboard(tmp_path: Path) -> None:
    """What TensorBoard's own writer writes is read as its own reader reads it."""
    writer = pytest.importorskip("tensorboardX")
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    log = writer.SummaryWriter(str(tmp_path / "run"))
    rng = np.random.default_rng(0)
    for step in range(300):
        log.add_scalar("train/loss", float(rng.normal(3, 1)) if step != 50 else float("nan"), step * 7)
        log.add_scalar("lr", 0.1 / (1 + step), step * 7)
        if step % 100 == 0:
            log.add_histogram("weights", rng.normal(size=100), step)
            log.add_text("args", "words", step)
    log.close()
    theirs = reader.EventAccumulator(str(tmp_path / "run"), size_guidance={"scalars": 0})
    theirs.Reload()
    run = load_run(tmp_path / "run")
    for tag, metric in (("train/loss", "loss"), ("lr", "lr")):
        expected = theirs.Scalars(tag)
        np.testing.assert_array_equal(run.series[metric].steps, [point.step for point in expected])
        np.testing.assert_array_equal(run.series[metric].values, [point.value for point in expected])


@pytest.mark.parametrize("size", [1 << 63, 1 << 31, 20 << 20, 1 << 20])
def test_a_length_beyond_the_file_costs_nothing_behind_it(tmp_path: Path, size: int) -> None:
    """A record that claims more bytes than the file has is damage of 12 bytes, told as a share of the file."""
    length = struct.pack("<Q", size)
    run = load(tmp_path, events(rows(5)) + length + masked_crc(length) + events(rows(5, 5)))
    assert run.series["loss"].steps.tolist() == list(range(10))
    assert run.notes == ("Damaged bytes between records: 12 of 968, skipped.",)


@pytest.mark.parametrize(("junk", "judged"), [(12, True), (9000, False)])
def test_no_green_verdict_rests_on_a_damaged_file(tmp_path: Path, junk: int, judged: bool) -> None:
    """More than a twentieth of its bytes lost leaves the run unjudged, and `inspect` says how much that is."""
    losses = [(step, {"loss": float(value)}) for step, value in enumerate(falling(600))]
    run = load(tmp_path, events(losses[:300]) + bytes(junk) + events(losses[300:]))
    assert (diagnose(run, load_trees(run)).verdict != "unknown") == judged
    assert f"{run.sources[0].lost_share:.1%} of its bytes damaged" in inspect_text(run)
