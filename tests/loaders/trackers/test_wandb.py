"""W&B's files and folders: the history is read wherever it lies, final values are never a run of one point."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run, load_runs
from stabtree.loaders.config import read_config
from stabtree.report.model import Report
from stabtree.run import Run
from tests.loaders.make import points, write
from tests.loaders.make_binary import part, varint, wandb_file, wandb_items, wandb_records

ROWS: list[dict[str, object]] = [
    {"_step": step, "_runtime": step * 1.5, "train/loss": 4 - step / 8, "train/learning_rate": 0.5} for step in range(8)
]
CONFIG: dict[str, object] = {"optimizer": "adamw", "precision": "bf16-mixed", "_wandb": {"m": []}}
FILE = wandb_file(wandb_records(ROWS, CONFIG, "quick-fox-1"))
NAME = "run-id0.wandb"
YAML = "wandb_version: 1\n\n_wandb:\n  value: {m: []}\nlr:\n  desc: null\n  value: 1e-3\nseed:\n  value: 5\n"


def run_folder(place: Path, content: bytes = FILE) -> Path:
    """The folder of a run with its `.wandb` file, settings and final values."""
    (place / "files").mkdir(parents=True)
    write(place, content, NAME)
    write(place / "files", YAML, "config.yaml")
    write(place / "files", json.dumps({"_step": 7, "_runtime": 9, "train/loss": 3.1}), "wandb-summary.json")
    return place


def test_the_history_of_an_offline_run(tmp_path: Path) -> None:
    """Rows, configuration and display name stand in one file."""
    run = load_run(write(tmp_path, FILE, NAME))
    assert points(run)["loss"] == [(step, 4 - step / 8) for step in range(8)]
    assert len(run.series["lr"]) == 8
    assert (run.name, run.setting("dtype"), run.setting("optimizer")) == ("quick-fox-1", "bf16", "adamw")
    assert run.sources[0].format == "wandb"
    assert not run.notes


def test_nan_infinity_and_nested_keys(tmp_path: Path) -> None:
    """W&B writes NaN bare or in quotes; nested keys are joined; a step may stand beside the row."""
    texts = ["4.5", "NaN", '"NaN"', '"Infinity"', "-Infinity", "null"]
    records = [
        part(2, part(1, part(2, "train") + part(2, "loss") + part(16, text)) + part(2, part(1, step)))
        for step, text in enumerate(texts)
    ]
    run = load_run(write(tmp_path, wandb_file(records), NAME))
    assert points(run)["loss"] == [(0, 4.5), (1, "nan"), (2, "nan"), (3, float("inf")), (4, float("-inf"))]


def test_records_run_over_blocks(tmp_path: Path) -> None:
    """A row of 100 kB is put together; rows behind it are read."""
    rows = [{"_step": step, "loss": 4 - step / 8, "text": "x" * (100_000 if step == 3 else 9_000)} for step in range(9)]
    run = load_run(write(tmp_path, wandb_file(wandb_records(rows, {}, "")), NAME))
    assert run.series["loss"].steps.tolist() == list(range(9))
    assert not run.notes


def test_a_cut_file_keeps_what_stands_before(tmp_path: Path) -> None:
    """The file of a killed process ends inside a record."""
    run = load_run(write(tmp_path, FILE[:-5], NAME))
    assert len(run.series["loss"]) == 7
    assert len(run.notes) == 1
    assert run.notes[0].startswith("The file ends inside a record")


def test_a_damaged_record_costs_itself(tmp_path: Path) -> None:
    """One wrong byte costs one row, or the rest of its block where the length is hit."""
    rows = [{"_step": step, "loss": 4.0, "text": "x" * 3000} for step in range(40)]
    data = bytearray(wandb_file(wandb_records(rows, {}, "")))
    data[10_000] ^= 1
    run = load_run(write(tmp_path, bytes(data), NAME))
    assert len(run.series["loss"]) == 39
    assert run.notes == ("Damaged places: 1, the records there were not read.",)
    data[40_000:40_020] = bytes(range(100, 120))
    assert 25 < len(load_run(write(tmp_path, bytes(data), NAME)).series["loss"]) < 40


@pytest.mark.parametrize(
    "bomb",
    [
        b"\xff" * 200,
        part(2, b"\xff" * 30),
        part(2, part(1, b"\x12\xff\xff\xff\x7f")),
        part(2, part(1, part(2, "train/loss") + part(16, "[" * 50_000)) + part(2, varint(1 << 3) + varint(9))),
        b"\x0b",
        b"\x08",
        b"",
    ],
)
def test_records_that_are_none(tmp_path: Path, bomb: bytes) -> None:
    """Varints without an end, lengths beyond the record and values nested without an end cost one record."""
    last = part(2, wandb_items(1, {"_step": 8, "train/loss": 1}))
    run = load_run(write(tmp_path, wandb_file([*wandb_records(ROWS, CONFIG, ""), bomb, last]), NAME))
    assert len(run.series["loss"]) == 9


def test_a_run_without_a_history(tmp_path: Path) -> None:
    """Nothing logged is said so."""
    with pytest.raises(StabtreeError, match="without a history"):
        load_run(write(tmp_path, wandb_file(wandb_records([], CONFIG, "")), NAME))


def test_a_run_folder(tmp_path: Path) -> None:
    """The folder of a run, its sub-folder `files`, the folder `wandb` around it and the one above are the run."""
    place = run_folder(tmp_path / "wandb" / "run-20260102_030405-id0")
    (tmp_path / "wandb" / "latest-run").symlink_to(place)
    for path in (place, place / "files", tmp_path / "wandb", tmp_path, tmp_path / "wandb" / "latest-run"):
        run = load_run(path)
        assert len(run.series["loss"]) == 8
        assert (run.setting("lr"), run.setting("seed"), run.setting("optimizer")) == (0.001, 5, "adamw")


@pytest.mark.parametrize(
    ("code", "leaf"),
    [
        (b"", ""),
        (varint(1 << 3) + varint(1), "exit-status-recorded"),
        (varint(1 << 3) + varint(255), "interrupted"),
        (varint(1 << 3) + varint(137), "host-memory"),
    ],
)
def test_the_exit_code_of_a_run_is_how_it_ended(tmp_path: Path, code: bytes, leaf: str) -> None:
    """A code of 0 is written as nothing."""
    content = wandb_file([*wandb_records(ROWS, CONFIG, "quick-fox-1"), part(18, code)])
    run = load_run(write(tmp_path, content, NAME))
    assert run.lines[0].at_end
    assert [item.leaf.id for item in diagnose(run).findings if item.leaf.of.startswith("E.")] == [leaf] * bool(leaf)


def test_a_summary_with_a_nan_is_one(tmp_path: Path) -> None:
    """Alone, and beside a history that is finite."""
    final = json.dumps({"_step": 7, "_runtime": 9, "train": {"loss": "NaN"}, "_wandb": {"runtime": 9}})
    place = run_folder(tmp_path / "run-20260102_030405-id0")
    write(place / "files", final, "wandb-summary.json")
    for path in (place, place / "files" / "wandb-summary.json", write(tmp_path, final, "copied.json")):
        found = diagnose(load_run(path))
        assert found.verdict == "critical"
        assert found.findings[0].evidence[0].text.lower() == "final train/loss: nan"


def linked(folder: Path) -> Path:
    """The folder `wandb` as the library leaves it: links to the newest run and to its messages, which hold numbers."""
    rows: list[dict[str, object]] = [{"_step": step, "loss": 4 - step / 8} for step in range(24)]
    run = run_folder(folder / "wandb" / "run-20260102_030405-id0", wandb_file(wandb_records(rows, CONFIG, "fox")))
    (run / "logs").mkdir()
    write(run / "files", "".join(f"step {row['_step']} loss: {row['loss']}\n" for row in rows[:3]), "output.log")
    stamp = "2026-01-02 03:04:05,678 INFO    MainThread:1 [wandb_run.py:_config_callback():1382] "
    write(run / "logs", "".join(f"{stamp}step {i} loss: {i}.5 lr: 0.1\n" for i in range(9)), "debug.log")
    line = '{{"time":"2026-01-02T03:04:05Z","level":"INFO","msg":"history","step":{0},"loss":{0}.5}}\n'
    write(run / "logs", "".join(line.format(i) for i in range(9)), "debug-internal.log")
    (folder / "wandb" / "latest-run").symlink_to(run.name)
    for name in ("debug.log", "debug-internal.log"):
        (folder / "wandb" / name).symlink_to(f"{run.name}/logs/{name}")
    return folder / "wandb"


def test_the_folder_that_the_library_leaves(tmp_path: Path) -> None:
    """Its links to the newest run and to messages of W&B's own are no further runs, whole or copied."""
    place = linked(tmp_path)
    for path in (place, tmp_path, place / "latest-run"):
        assert [len(item.run.series["loss"]) for item in load_runs(path) if isinstance(item.run, Run)] == [24]
    shutil.copytree(place, tmp_path / "copy" / "wandb")
    assert len(load_run(tmp_path / "copy" / "wandb").series["loss"]) == 24
    with pytest.raises(StabtreeError, match="holds only the messages of a W&B run"):
        load_run(place / "debug.log")


def test_links_that_loop_or_lead_out_are_left_alone(tmp_path: Path) -> None:
    """One that leads to another run adds that where it is asked for; one that leads back or nowhere adds none."""
    place = linked(tmp_path)
    run_folder(tmp_path / "elsewhere" / "run-2-b")
    (place / "loop").symlink_to("loop")
    (place / "self").symlink_to(".")
    (place / "run-2-b").symlink_to(tmp_path / "elsewhere" / "run-2-b")
    (place / "nowhere").symlink_to("../../nowhere")
    names = ["run-20260102_030405-id0", "run-2-b"]
    for follow in (False, True):
        assert [Path(item.path).name for item in load_runs(place, follow_links=follow)] == names[: 1 + follow]


def test_several_runs_are_never_mixed(tmp_path: Path) -> None:
    """One of several has to be named, and only that one is read."""
    run_folder(tmp_path / "wandb" / "run-1-a")
    run_folder(tmp_path / "wandb" / "offline-run-2-b", wandb_file(wandb_records(ROWS[:5], {}, "")))
    (tmp_path / "wandb" / "run-3-c").mkdir()
    with pytest.raises(StabtreeError, match="holds 2 runs: wandb/offline-run-2-b, wandb/run-1-a"):
        load_run(tmp_path)
    assert len(load_run(tmp_path, run="offline-run-2-b").series["loss"]) == 5


def test_an_old_run_keeps_its_history_as_json_lines(tmp_path: Path) -> None:
    """Before version 0.10 the history was `files/wandb-history.jsonl`."""
    place = run_folder(tmp_path / "run-1-a", wandb_file(wandb_records([], {}, "")))
    write(place / "files", "".join(json.dumps(row) + "\n" for row in ROWS), "wandb-history.jsonl")
    run = load_run(place)
    assert len(run.series["loss"]) == 8
    assert run.setting("lr") == 0.001
    assert run.notes[0].startswith("Not read: run-id0.wandb is a W&B run without a history")


def test_what_a_run_printed_stands_in(tmp_path: Path) -> None:
    """Without a history, the output is read in whatever format the trainer printed."""
    place = run_folder(tmp_path / "run-1-a")
    (place / NAME).unlink()
    with pytest.raises(StabtreeError, match="whose history is not here"):
        load_run(place)
    write(place / "files", "".join(json.dumps({"step": i, "loss": 4 - i}) + "\n" for i in range(3)), "output.log")
    assert len(load_run(place).series["loss"]) == 3


def test_a_hostile_configuration_is_a_note(tmp_path: Path) -> None:
    """A YAML bomb beside the history costs the configuration only."""
    place = run_folder(tmp_path / "run-1-a")
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    for content in (bomb, "[" * 100_000, "a: b: c", "- 1"):
        write(place / "files", content, "config.yaml")
        assert len(load_run(place).series["loss"]) == 8


@given(st.binary(max_size=150))
def test_any_record_is_an_error_or_a_run(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Any bytes with a right checksum cost a record at most."""
    kind = bytes([1])
    record = struct.pack("<IHB", zlib.crc32(data, zlib.crc32(kind)), len(data), 1) + data
    file = tmp_path_factory.getbasetemp() / NAME
    file.write_bytes(FILE + record + wandb_file([part(2, data)])[7:])
    assert len(load_run(file).series["loss"]) >= 8


def test_the_same_as_wandb_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the real library writes offline is read."""
    wandb: Any = pytest.importorskip("wandb")
    for key, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(key, value)
    run = wandb.init(project="p", name="fox", config={"lr": 0.25, "model": {"layers": 2}})
    for step in range(30):
        run.log({"train/loss": float("nan") if step == 7 else 4 - step / 16, "norms": {"grad_norm": step / 2}})
    run.finish()
    read = load_run(tmp_path)
    assert points(read)["loss"] == [(step, "nan" if step == 7 else 4 - step / 16) for step in range(30)]
    assert (read.name, read.setting("lr")) == ("fox", 0.25)


def with_console(pieces: list[tuple[int, str]], *, raw: bool = True, before: int = 8) -> bytes:
    """A run's file in which something is printed after so many of its rows; the error stream is 0, the other one 1."""
    records = wandb_records(ROWS, CONFIG, "quick-fox-1")
    printed = [part(1, 9) + part(13 if raw else 4, part(1, stream) + part(3, text)) for stream, text in pieces]
    return wandb_file([*records[: before + 1], *printed, *records[before + 1 :]])


TRACEBACK = [
    (0, "Traceback (most recent call last):\n"),
    (0, '  File "train.py", line 7, in <module>\n    step()\n'),
    (1, "epoch 1: loss 3."),
    (0, "RuntimeErr"),
    (1, "2\r"),
    (0, "or: expected\x1b[0m a tensor\n"),
]


@pytest.mark.parametrize("raw", [True, False])
def test_the_console_of_a_run_is_read_as_a_log_is(tmp_path: Path, *, raw: bool) -> None:
    """Pieces of two streams are lines again; those about errors are kept, and show how the run ended."""
    run = load_run(write(tmp_path, with_console(TRACEBACK, raw=raw), NAME))
    assert [line.text for line in run.lines] == [
        "Traceback (most recent call last):",
        'File "train.py", line 7, in <module>',
        "RuntimeError: expected a tensor",
    ]
    assert all(line.at_end for line in run.lines)
    assert points(run)["loss"] == [(step, 4 - step / 8) for step in range(8)]
    assert diagnose(run).findings[0].leaf.id == "exception"


def test_an_error_that_rows_follow_is_not_the_end(tmp_path: Path) -> None:
    """What was caught is kept, and ended nothing."""
    run = load_run(write(tmp_path, with_console(TRACEBACK, before=4), NAME))
    assert run.lines
    assert not any(line.at_end for line in run.lines)


def test_a_line_without_end_is_read_and_a_very_long_one_is_cut(tmp_path: Path) -> None:
    """A bar that never ends its line takes no more room than its beginning."""
    pieces = [(1, "x" * 4000)] * 40 + [(0, "ValueError: no end")]
    run = load_run(write(tmp_path, with_console(pieces), NAME))
    assert [line.text for line in run.lines] == ["ValueError: no end"]


def test_an_output_log_beside_the_file_repeats_nothing(tmp_path: Path) -> None:
    """W&B keeps the console in both."""
    folder = run_folder(tmp_path / "run-1-id0", with_console(TRACEBACK))
    write(folder / "files", "".join(text for stream, text in TRACEBACK if not stream), "output.log")
    (run,) = [found.run for found in load_runs(tmp_path)]
    assert isinstance(run, Run)
    assert len(run.lines) == len({line.text for line in run.lines}) == 3


def test_a_run_that_failed_before_its_first_row_is_judged_by_its_error(tmp_path: Path) -> None:
    """Nothing was logged, and what was printed says why."""
    content = wandb_file([wandb_records([], CONFIG, "r")[0], part(13, part(3, "ValueError: no data\n"))])
    assert diagnose(load_run(write(tmp_path, content, NAME))).findings[0].leaf.id == "exception"


def test_a_scale_at_its_minimum_is_why_no_gradient_arrived(tmp_path: Path) -> None:
    """The error is printed last, and the steps before it were skipped for the same reason."""
    rows = [{"_step": k, "train/loss": 0.0, "train/grad_norm": 0.0} for k in range(1, 18)]
    config = {"fp16": True, "torch_dtype": "bfloat16"}
    error = part(13, part(3, "Exception: Current loss scale already at minimum - cannot decrease scale anymore.\n"))
    run = load_run(write(tmp_path, wandb_file([*wandb_records(rows, config, "r"), error]), NAME))
    found = diagnose(run)
    assert run.setting("dtype") == "fp16"
    assert found.findings[0].leaf.id == "minimum-loss-scale"
    assert "no-gradient" in [item.leaf.id for item in found.findings[0].consequences]
    assert not any("trainable parameters" in action.text for action in Report(found).do_now)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ({"torch_dtype": "bfloat16", "fp16": True}, "fp16"),
        ({"torch_dtype": "bfloat16", "mixed_precision": "fp16"}, "fp16"),
        ({"torch_dtype": "float32", "bf16": True, "fp16": False}, "bf16"),
        ({"transformers_version": "5.0.0", "dtype": "bfloat16", "fp16": True}, "fp16"),
        ({"dtype": "bfloat16", "fp16": False}, "bf16"),
        ({"torch_dtype": "bfloat16"}, "bf16"),
    ],
)
def test_what_a_trainer_computes_in_outranks_the_weights(values: dict[str, object], dtype: str) -> None:
    """A model is loaded in a precision of its own, which only counts where no flag says more."""
    assert read_config(values)[0]["dtype"] == dtype
