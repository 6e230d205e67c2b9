"""Files and folders without names: they are read as before, and said to be the same; a reading bug stays one."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import diagnose
from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run, load_runs
from stabtree.tools.anonymize.anonymize import MAX_FILES, anonymized
from tests.cli.command import run
from tests.conftest import FIXTURES
from tests.leaves import errors
from tests.leaves.make import text_log
from tests.loaders import make_binary
from tests.loaders.make import points
from tests.loaders.test_same_run import WRITERS
from tests.loaders.text.textlogs import LOGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.run import Run

ROWS = [{"step": i, "loss": 3 - i / 16} for i in range(12)]
OWN = sorted(path for path in FIXTURES.rglob("*") if path.suffix in (".csv", ".jsonl", ".txt", ".log"))
SHARED = Path(__file__).resolve().parents[4] / "shared"
# Some of the logs that people published, where they lie beside the checkout; a larger one shows nothing more.
REAL = [path for name in ("logs", "wild") for path in sorted((SHARED / name).rglob("*")) if path.suffix != ".md"]
PUBLISHED = [path for path in REAL if path.is_file() and path.stat().st_size <= 100_000][::27]
BROKEN = {
    "cut.csv": "step,loss\n1,2.5\n2,2.4\n3,2.3\n4,2",
    "oops.csv": "step,loss,note\n1,2.5,fine\n2,oops,Jane saw it\n3,1_234,\n4,2.2,true\n",
    "quote.csv": 'step,loss,note\n1,2.5,"a"\n2,2.4,"never closed\n3,2.3,x\n4,2.2,y\n5,2.1,z\n',
    "lines.csv": 'step,loss,text\n1,2.5,"Dear Jane,\r\nsee you"\n2,2.4,"and\nso\non"\n3,2.3,x\n',
    "german.csv": "Schritt;step;loss\nEva;1;2,5\nEva;2;2,4\nUwe;3;2,3\n",
    "again.csv": "host,step,loss\nh1,1,2.5\nh1,2,2.4\nh1,3,2.4\nloss,frobs,step\n2.3,1,4\n2.2,1,5\n",
    "blanks.csv": "# written by jane\n# step loss\n1 2.5\n2 2.4\n3 2.3\n",
    "long.csv": "run,step,loss\n" + "".join(f"{who},{i},{3 - i / 9}\n" for who in ("jane", "uwe") for i in range(9)),
    "bare.jsonl": '{"step": 1, "loss": nan}\n{"step": 2, "loss": 1.5\nwritten by jane\n{"step": 3, "loss": "2.5"}\n',
    "cut.jsonl": '{"step": 1, "loss": 2.5, "who": "J\\u00e4ne \\"x\\""}\n{"step": 2, "loss": 2.4}\n{"step": 3, "lo',
    "keys.json": '{"jane": {"step": [1, 2, 3], "loss": [3, 2, 1]}}',
    "trainer_state.json": '{"global_step": 3, "best_model_checkpoint": "/home/jane/checkpoint-2", "log_history": ['
    '{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.4}, {"step": 3, "loss',
    "\u00fc.log": "".join(f"\x1b[32m[worker-jane]\x1b[0m step {i}/99 loss: {3 - i / 9:.3f}\r\n" for i in range(9)),
}
TEXTS = {
    **{f"trainer {name}": ("run.log", log) for name, (log, _) in LOGS.items()},
    **{f"error {leaf}": ("run.log", text_log(line, after=30)) for leaf, line in errors.LINES.items()},
    **{f"format {name}": (file, write()) for name, (file, write) in WRITERS.items()},
}


def reading(file: Path) -> list[Any]:
    """All that is read of a file and said of it, but for names and labels."""
    try:
        return [_of(item.run) for item in load_runs(str(file))]
    except StabtreeError as error:
        return [_of(error)]


def _of(run: Run | StabtreeError) -> Any:
    if isinstance(run, StabtreeError):  # names stand in quotes, or behind a colon
        return re.sub(r"'[^']*'|\"[^\"]*\"|: .*", "", run.problem)
    series = {
        name: (one.steps.tolist(), None if one.labels else ["nan" if math.isnan(v) else v for v in one.values.tolist()])
        for name, one in run.series.items()
    }
    config = {key: "text" if isinstance(one.value, str) else one.value for key, one in run.config.items()}
    settings = {key: one.value for key, one in run.config.items() if key in ("dtype", "optimizer", "lr_schedule")}
    uses = [(use.format, use.rows, use.skipped_count) for use in run.sources]
    columns = [
        # In a text log those that stand for something: words beside them may be names.
        [column.name for column in use.columns if column.metric or not use.format.startswith("text")]
        for use in run.sources
    ]
    lines = [(line.line, line.at_end, line.source) for line in run.lines]
    rest = run.saved, run.epoch_ends, run.gaps, run.resumes, len(run.notes)
    found = diagnose(run)
    path = [(visit.question.id, visit.answer.verdict) for visit in found.path]
    findings = [
        (item.leaf.id, item.onset_step, item.last_good_step, item.restart, [(c.cause.id, c.state) for c in item.causes])
        for item in found.findings
    ]
    return series, config, settings, uses, columns, lines, rest, found.verdict, path, findings


def without_names(file: Path, tmp_path: Path) -> bytes:
    """The file without names, after a check that it is read as before."""
    (tmp_path / "own").mkdir()  # without the settings beside it
    (tmp_path / "other").mkdir()
    own, other = Path(shutil.copy(file, tmp_path / "own")), tmp_path / "other" / file.name
    other.write_bytes(b"".join(anonymized(own).pieces))
    assert reading(other) == reading(own)
    return other.read_bytes()


@pytest.mark.parametrize("file", [*OWN, *PUBLISHED], ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_log_is_read_as_before(file: Path, tmp_path: Path) -> None:
    """Our own fixtures, and logs as people published them."""
    try:
        if anonymized(file).suffix:
            pytest.skip("holds no text, and becomes JSON lines")
    except StabtreeError as error:
        pytest.skip(error.problem)
    without_names(file, tmp_path)


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_written_and_printed_is_read_as_before(name: str, tmp_path: Path) -> None:
    """The text log of every trainer, the message of every error, one run in every format."""
    file, text = TEXTS[name]
    (tmp_path / file).write_text(text, encoding="utf-8")
    without_names(tmp_path / file, tmp_path)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_broken_file_stays_broken(name: str, encoding: str, tmp_path: Path) -> None:
    """What can't be read can't be read of the copy either, in the same lines; and no name is left in it."""
    file = tmp_path / name
    file.write_bytes(BROKEN[name].encode(encoding, "replace"))
    written = without_names(file, tmp_path).decode(encoding, "replace").lower()
    assert ("frobs" in written) == ("frobs" in BROKEN[name])  # the name of a column, in a header that comes again
    assert name == "keys.json" or not any(who in written for who in ("jane", "eva", "uwe", "j\u00e4ne"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "log", ["step,loss\n1,2.5\n\n2, 2.4 \n3,nan", '{"step": 1,  "loss": NaN}\n{"step": 2}', "step 1 loss: 2.5\n" * 9]
)
def test_what_holds_no_name_stays_to_the_byte(log: str, end: str, encoding: str, tmp_path: Path) -> None:
    """Marks, line ends, blanks, and bytes that are no text."""
    file = tmp_path / "run.log"
    data = log.replace("\n", end).encode(encoding)
    for whole in (data, data + b"\xff\xfe7\xe4" if encoding == "utf-8-sig" else data):
        file.write_bytes(whole)
        assert b"".join(anonymized(file).pieces) == whole


# ---- folders


@pytest.mark.parametrize("name", ["fp16-overflow", "nan-layer"])
def test_the_folder_of_a_run_is_read_as_before(name: str, tmp_path: Path) -> None:
    """Its manifest names the same files, whose rows and settings are those of the run."""
    out = tmp_path / "out"
    done = run("anonymize", str(FIXTURES / "phase19" / name), "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert reading(out) == reading(FIXTURES / "phase19" / name)


def test_a_name_is_the_same_in_all_files_and_in_their_names(tmp_path: Path) -> None:
    """So a manifest finds its files, and what is no log is left out."""
    folder, out = tmp_path / "gerda", tmp_path / "out"
    rows = "".join(f"{row['step']},{row['loss']},gerda\n" for row in ROWS)
    manifest = {"run_name": "gerda-3", "dtype": "bf16", "optimizer": "frobnicator", "metrics_file": "hugo/gerda.csv"}
    for name, text in {
        "hugo/gerda.csv": f"step,loss,host\n{rows}",
        "manifest.json": json.dumps(manifest),
        "hparams.yaml": "user: gerda\nmax_steps: 12\n",
        "own/mlruns/0/0123456789abcdef0123456789abcdef/tags/mlflow.user": "gerda",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "weights.bin").write_bytes(bytes(range(256)) * 9)
    done = run("anonymize", str(folder), "-o", str(out))
    assert "4 files written" in done.stderr
    assert "1 left out, which are no logs: weights.bin" in done.stderr
    files = [path for path in out.rglob("*") if path.is_file()]
    assert not any(re.search("gerda|abcdef", f"{path.relative_to(out)} {path.read_text('utf-8')}") for path in files)
    assert points(load_run(str(out))) == points(load_run(str(folder)))
    assert load_run(str(out)).config["dtype"].value == "bf16"


def test_where_a_folder_goes(tmp_path: Path) -> None:
    """To a new one, never into itself, never over files; and it is no data set."""
    folder = shutil.copytree(FIXTURES / "phase19" / "fp16-overflow", tmp_path / "run")
    before = sorted(path.name for path in folder.iterdir())
    places = {folder / "out": "is inside the folder", folder: "is the log itself", tmp_path: "is not empty"}
    for place, message in places.items():
        done = run("anonymize", str(folder), "-o", str(place))
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert "type -o FOLDER" in run("anonymize", str(folder)).stderr
    assert sorted(path.name for path in folder.iterdir()) == before
    for number in range(MAX_FILES + 1):
        (folder / f"{number}.txt").touch()
    assert "holds more than 2,000 files" in run("anonymize", str(folder), "-o", str(tmp_path / "new")).stderr


WRITTEN: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "events.out.tfevents.1.gerda": lambda rows: make_binary.events((row.pop("step"), row) for row in rows),
    "run-gerda.wandb": lambda rows: make_binary.wandb(rows, {"run_name": "gerda", "lr": 0.25}),
    "gerda.parquet": lambda rows: make_binary.parquet({key: [row[key] for row in rows] for key in ("step", "loss")}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_holds_no_text_becomes_json_lines(name: str, tmp_path: Path) -> None:
    """Of the series that stabtree reads, alone and in its folder."""
    file = tmp_path / "run" / name
    file.parent.mkdir()
    file.write_bytes(WRITTEN[name]([dict(row) for row in ROWS]))
    lines = b"".join(anonymized(file).pieces)
    assert b"gerda" not in lines
    done = run("anonymize", str(file.parent), "-o", str(tmp_path / "out"))
    (written,) = (tmp_path / "out").iterdir()
    assert (written.read_bytes(), "gerda" in written.name) == (lines, False)
    assert points(load_run(str(written)))["loss"] == points(load_run(str(file)))["loss"]
    assert "were written as JSON lines" in done.stderr


def test_a_file_of_several_runs_asks_which(tmp_path: Path) -> None:
    """As any command does."""
    file = tmp_path / "runs.parquet"
    columns = {key: [row[key] for row in ROWS] * 2 for key in ("step", "loss")}
    file.write_bytes(make_binary.parquet({"run_name": ["a"] * len(ROWS) + ["b"] * len(ROWS), **columns}))
    done = run("anonymize", str(file))
    assert (done.returncode, "--run" in done.stderr) == (2, True)
    assert run("anonymize", str(file), "--run", "b").stdout.count('"loss"') == len(ROWS)
