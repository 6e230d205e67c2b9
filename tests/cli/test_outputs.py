"""`--output NAME[=FILE]`, or a FILE whose ending says which: one grammar for what is printed and what is written."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from stabtree.report.outputs import OUTPUTS, RUN
from tests.cli.command import failed, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.outputs import RenderOptions

NAN = str(FIXTURES / "phase19" / "nan-forward")


@pytest.mark.parametrize(
    ("short", "long"), [([], "screen"), (["--json"], "json"), (["-q"], "headline"), (["--quiet"], "headline")]
)
def test_a_short_form_is_an_output(short: list[str], long: str) -> None:
    """`--json` is `--output json`, `-q` is `--output headline`, nothing is `--output screen`, `-` standard output."""
    printed = run("diagnose", NAN, *short).stdout
    assert printed
    assert run("diagnose", NAN, "--output", long).stdout == printed
    assert run("diagnose", NAN, "--output", f"{long}=-").stdout == printed


def test_several_outputs_go_to_several_places(tmp_path: Path) -> None:
    """One on standard output, the others into files, as whole as they would be printed."""
    report, page = tmp_path / "report.json", tmp_path / "page.txt"
    report.write_text("what stood there before", encoding="utf-8")
    done = run("diagnose", NAN, "-q", "--output", f"json={report}", "--output", f"screen={page}", FORCE_COLOR="1")
    assert done.stdout == run("diagnose", NAN, "-q").stdout
    assert report.read_text(encoding="utf-8") == run("diagnose", NAN, "--json").stdout
    assert page.read_text(encoding="utf-8") == run("diagnose", NAN).stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.txt", "report.json"]


def test_a_healthy_run_lies_behind_the_curves(tmp_path: Path) -> None:
    """`--against` draws it on the page and in the picture; of one run alone, and never the run itself."""
    good = str(FIXTURES / "phase19" / "spike-bad-batch")
    run("diagnose", NAN, "--against", good, "-o", f"{tmp_path}/r.html", "-o", f"{tmp_path}/r.svg")
    assert all('class="behind"' in path.read_text("utf-8") for path in tmp_path.iterdir())
    assert "is the run itself" in failed("diagnose", NAN, "--against", NAN)
    assert "goes with one run" in failed("diagnose", NAN, str(FIXTURES / "healthy" / "smooth"), "--against", good)


def test_the_ending_of_a_file_says_which_output_it_is(tmp_path: Path) -> None:
    """As where the output is named, whatever the folder is called; standard output stays empty."""
    folder = tmp_path / "lr=0.1"
    folder.mkdir()
    endings = {"html": "html", "json": "json", "md": "markdown", "svg": "svg", "xml": "junit", "sarif": "sarif"}
    words = [
        ["-o", f"{folder}/r.{ending}", "--output", f"{name}={tmp_path}/{ending}"] for ending, name in endings.items()
    ]
    assert not run("diagnose", NAN, *(word for pair in words for word in pair)).stdout
    for ending in endings:
        assert (folder / f"r.{ending}").read_bytes() == (tmp_path / ending).read_bytes()


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--json", "--quiet"], "--output headline=FILE"),
        (["--output", "screen", "--json"], "--output json=FILE"),
        (["--json", "--output", "json"], "--output json=FILE"),
        (["--output", "json=same", "--output", "screen=./same"], "--output screen=another FILE"),
        (["--output", "jsn"], "did you mean 'json'?"),
        (["--output", "xyz=r.txt"], "`--help` lists the outputs"),
        (["-o", "run.gif"], "`--help` lists the outputs"),
    ],
)
def test_a_mistake_is_told_with_what_to_type(options: list[str], hint: str) -> None:
    """Two outputs on one stream, and names that are none, before anything is read."""
    assert hint in failed("diagnose", "no/such/run", *options)


def test_what_can_not_be_written_is_told(tmp_path: Path) -> None:
    """A folder that does not exist, a folder in the file's place; nothing is left behind."""
    assert "No such file or directory" in failed("diagnose", NAN, "--output", f"json={tmp_path}/no/r.json")
    assert "Is a directory" in failed("diagnose", NAN, "--output", f"json={tmp_path}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["metrics.csv", "manifest.json"])
def test_the_run_is_never_written_over(tmp_path: Path, name: str) -> None:
    """Neither the log nor the manifest beside it."""
    folder = shutil.copytree(NAN, tmp_path / "run")
    before = (folder / name).read_bytes()
    assert "is a file of the run itself" in failed("diagnose", str(folder), "--output", f"json={folder / name}")
    assert (folder / name).read_bytes() == before


def test_a_device_is_written_to_and_not_replaced() -> None:
    """`/dev/null` stays a device, and so does `nul`."""
    assert run("diagnose", NAN, "--output", f"json={os.devnull}").returncode == 1
    with open(os.devnull, "rb") as device:  # noqa: PTH123 - it must open as what it was
        assert device.read() == b""


def shout(diagnosis: Diagnosis, look: RenderOptions) -> str:
    """Write the verdict, as an output of somebody else's would."""
    return f"{diagnosis.verdict.upper()} {look.width} {look.color}"


def test_a_new_output_is_a_function_and_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is put into the table can be printed, written, and is named where an output is unknown."""
    monkeypatch.setitem(OUTPUTS[RUN], "shout", f"{__name__}:shout")
    assert run("diagnose", NAN, "--output", "shout").stdout == "CRITICAL 100 False\n"
    run("diagnose", NAN, "--output", f"shout={tmp_path / 'shout.txt'}")
    assert (tmp_path / "shout.txt").read_text(encoding="utf-8") == "CRITICAL 100 False\n"
    assert "did you mean 'shout'?" in failed("diagnose", NAN, "--output", "shoutt")


def test_the_report_has_three_lengths() -> None:
    """A line that names the file, a screen, and all of it; `--no-plots` takes the figures out of both."""
    line, screen, full = (run("diagnose", NAN, *options, COLUMNS="80").stdout for options in (["-q"], [], ["--full"]))
    assert line.startswith(f"CRITICAL  {NAN}/metrics.csv: ")
    assert line.count("\n") == 1
    assert screen.count("\n") <= 40 < full.count("\n")
    assert screen.splitlines()[-2].endswith("exit 1")
    for options in ([], ["--full"]):
        assert not re.search("[\u2801-\u28ff]", run("diagnose", NAN, *options, "--no-plots").stdout)
