"""A log without names is read as the log was, and said to be the same: a reading bug stays one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.tools.anonymize.anonymize import anonymized
from tests.leaves import errors
from tests.leaves.make import text_log
from tests.loaders.test_same_run import WRITERS
from tests.loaders.text.textlogs import LOGS
from tests.tools.anonymize.same import read, said, without_names

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = sorted(path for path in (ROOT / "fixtures").rglob("*") if path.suffix in (".csv", ".jsonl", ".txt", ".log"))
REAL = [folder for name in ("logs", "wild") if (folder := ROOT.parent / "shared" / name).is_dir()]
LARGEST = 100_000  # bytes; a larger log shows nothing that a smaller one of its kind does not
EVERY = 9

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


def checked(file: Path, tmp_path: Path, *, diagnosed: bool = False) -> None:
    """Compare what is read, and perhaps what is said, of a file with and without names."""
    own = tmp_path / "own" / file.name  # without the settings beside it
    own.parent.mkdir()
    file = Path(shutil.copy(file, own))
    other = without_names(file, tmp_path / "other")
    assert read(other) == read(file)
    if diagnosed:
        assert said(other) == said(file)


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: str(file.relative_to(ROOT / "fixtures")))
def test_a_fixture_s_log(file: Path, tmp_path: Path) -> None:
    """The logs of the fixtures, and what is said of them."""
    checked(file, tmp_path, diagnosed=True)


@pytest.mark.parametrize("name", LOGS)
def test_what_a_trainer_prints(name: str, tmp_path: Path) -> None:
    """Text logs of every trainer."""
    file = tmp_path / "run.log"
    file.write_text(LOGS[name][0], encoding="utf-8")
    checked(file, tmp_path)


@pytest.mark.parametrize("leaf", errors.LINES)
@pytest.mark.parametrize("after", [0, 30])
def test_a_message_of_an_error_is_found_as_before(leaf: str, after: int, tmp_path: Path) -> None:
    """The errors' own words stay."""
    file = tmp_path / "run.log"
    file.write_text(text_log(errors.LINES[leaf], after=after), encoding="utf-8")
    checked(file, tmp_path, diagnosed=True)


@pytest.mark.parametrize("name", WRITERS)
def test_a_run_of_every_format(name: str, tmp_path: Path) -> None:
    """One run as each trainer writes it."""
    file_name, write = WRITERS[name]
    file = tmp_path / "run" / file_name
    file.parent.mkdir(parents=True)
    file.write_text(write(), encoding="utf-8")
    checked(file, tmp_path)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_broken_file_stays_broken(name: str, encoding: str, tmp_path: Path) -> None:
    """What can't be read can't be read of the copy either, in the same lines; and no name is left in it."""
    file = tmp_path / name
    file.write_bytes(BROKEN[name].encode(encoding, "replace"))
    checked(file, tmp_path)
    held = b"".join(anonymized(file).pieces).decode(encoding, "replace").lower()
    assert ("frobs" in held) == ("frobs" in BROKEN[name])  # the name of a column, in a header that comes again
    assert name == "keys.json" or not any(who in held for who in ("jane", "eva", "uwe", "j\u00e4ne"))


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


def real() -> list[Path]:
    """Every ninth log of those that people published, where they lie beside the checkout."""
    files = sorted(path for folder in REAL for path in folder.rglob("*") if path.is_file())
    return [path for path in files if path.stat().st_size <= LARGEST and path.suffix != ".md"][::EVERY]


@pytest.mark.skipif(not REAL, reason="the published logs are not here")
@pytest.mark.parametrize("file", real(), ids=lambda file: file.name)
def test_a_published_log(file: Path, tmp_path: Path) -> None:
    """Logs as people published them."""
    try:
        if anonymized(file).suffix:
            pytest.skip("holds no text, and becomes JSON lines")
        checked(file, tmp_path, diagnosed=True)
    except StabtreeError as error:
        pytest.skip(error.problem)
