"""Run the blocks of a page in a folder made for it, and tell what is not as the page says."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from stabtree.cli import main
from tests.whole.pages.blocks import HIDDEN, ROOT, RUN, SHOWN, Block, blocks_of, replaced

# What a page may read of the checkout, under the same name.
READ = ("AGENTS.md", "README.md", "benchmarks", "docs", "faultbench", "fixtures", "skills", "trees")
# Times and durations are the moment's, not the page's; what stands there is kept where nothing else has changed.
VARIES = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?|\b\d+(\.\d+)? m?s\b")
LONGEST_S = 300
# Nothing that a shell reads otherwise, and no command that starts processes of its own.
PLAIN = re.compile(r"stabtree (?!watch|scan|calibrate)[^|&;<>$`*?~(){}#\n\\]*")
# Pages for agents are to be short: what runs their blocks is told here, not on them.
ELSEWHERE = {"AGENTS.md": "tests/whole/test_docs.py", "SKILL.md": "tests/whole/test_docs.py"}


@dataclass(slots=True)
class Report:
    """What came of a page.

    Args:
        page: its file.
        text: the page with what its commands print now.
        ran: how many blocks were run here.
        left: why the others were not, one line a block.
        pictures: those that have changed, with their bytes.
        wrong: what is not as the page says, one entry a block.
    """

    page: Path
    text: str
    ran: int = 0
    left: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    pictures: dict[Path, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Place:
    """The folder of a page, the names that its python blocks share, and what the last of them printed."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def environment(self) -> dict[str, str]:
        """What commands find: 80 columns, this very stabtree, and no service that would be written to."""
        gone = ("FORCE_COLOR", "NO_COLOR", "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS", "CI")
        env = {name: value for name, value in os.environ.items() if name not in gone}
        env |= {"COLUMNS": "80", "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(self.folder / ".cache"), "TZ": "UTC"}
        return env | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"}

    def inside(self, line: str) -> tuple[int, str]:
        """Exit code and output of a command of stabtree that asks nothing of a shell, run in this process."""
        out = io.StringIO()
        there = mock.patch.dict(os.environ, self.environment(), clear=True)
        with chdir(self.folder), redirect_stdout(out), redirect_stderr(out), there:
            if sys.platform != "win32":
                time.tzset()
            code = main(shlex.split(line)[1:])
        if sys.platform != "win32":
            time.tzset()
        return code, out.getvalue()

    def shell(self, script: str) -> tuple[int, str]:
        """Exit code and output of a script; it ends where a command fails."""
        if all(map(PLAIN.fullmatch, script.splitlines())):
            code, printed = 0, ""
            for line in script.splitlines():
                code, more = self.inside(line)
                printed += more
                if code:
                    break
            return code, printed
        env = self.environment()
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]

        # In a session of its own, so that all that it started can be ended with it.
        with subprocess.Popen(
            words, cwd=self.folder, env=env, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                told, _ = process.communicate(timeout=LONGEST_S)
            except subprocess.TimeoutExpired:
                if sys.platform != "win32":  # the blocks are for a POSIX shell
                    os.killpg(process.pid, signal.SIGKILL)
                told = process.communicate()[0] + f"ended after {LONGEST_S} s".encode()
        return process.returncode, told.decode()

    def session(self, block: str) -> str:
        """A console block with the output that its commands print now."""
        told: list[str] = []
        lines = iter(block.splitlines())
        for line in lines:
            if line.startswith("$ "):
                command = line[2:]
                told.append(line)
                while command.endswith("\\"):
                    told.append(next(lines))
                    command = f"{command[:-1]}{told[-1].removeprefix('> ')}"
                # As typed one by one: a code that is not 0 ends nothing, nor does a pipe that is closed early.
                plain = PLAIN.fullmatch(command)
                told += (self.inside(command) if plain else self.shell(f"set +eo pipefail\n{command}"))[1].splitlines()
        return "".join(f"{line}\n" for line in told)

    def python(self, code: str, where: str) -> str:
        """Run a python block with the names of those before it, warnings as errors; the traceback, if one came."""
        out = io.StringIO()
        try:
            with chdir(self.folder), redirect_stdout(out), redirect_stderr(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(compile(code, where, "exec"), self.names)  # noqa: S102 - our own pages
        except Exception:
            return traceback.format_exc()
        finally:
            self.printed = out.getvalue()
        return ""


def run_page(page: Path) -> Report:
    """Run all blocks of a page."""
    text = page.read_text(encoding="utf-8")
    report = Report(page, text)
    with tempfile.TemporaryDirectory(prefix="page-") as folder:
        place = Place(Path(folder))
        for name in READ:
            if (ROOT / name).exists():
                (place.folder / name).symlink_to(ROOT / name)
        for block, now in reversed(played(list(blocks_of(text)), place, report)):
            report.text = replaced(report.text, block, now)
    return report


def played(blocks: list[Block], place: Place, report: Report) -> list[tuple[Block, str]]:
    """Run blocks one by one; those that show something else now, with what they would have to show."""
    others: list[tuple[Block, str]] = []
    for block in blocks:
        where = f"{report.page.relative_to(ROOT) if report.page.is_relative_to(ROOT) else report.page}:{block.line}"
        if problem := unfit(block, report.page):
            report.wrong.append(f"{where}: {problem}")
            continue
        if why := left_out(block, report.page):
            report.left.append(f"{where}: {why}")
            continue
        if name := block.marks.get("file"):
            (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (place.folder / name).write_text(block.text, encoding="utf-8")
            continue
        if block.language == "picture":
            report.wrong += [f"{where}: {problem}" for problem in drawn(block, place, report)]
            continue
        report.ran += block.is_to_run
        now, problem = outcome(block, place, where)
        if problem:
            report.wrong.append(f"{where}: {problem}")
        if now != block.text:
            others.append((block, now))
    return others


def drawn(block: Block, place: Place, report: Report) -> list[str]:
    """Hold a picture against what was made of it."""
    made, _, kept = (name.strip() for name in block.text.partition("="))
    file, told = place.folder / made, report.page.parent / kept
    if not file.is_file():
        return [f"{made} was not made"]
    if told.is_file() and told.read_bytes() == file.read_bytes():
        return []
    report.pictures[told] = file.read_bytes()
    return [f"{kept} is another picture"]


def unfit(block: Block, page: Path) -> str | None:
    """What is wrong with how a block is written, if anything."""
    if block.language.startswith("{code"):
        return f"a plain fence instead of {block.language}, so that it can be run"
    if not block.language.startswith("{") and block.language not in (*RUN, *SHOWN, *HIDDEN):
        return f"language {block.language!r}: one of {', '.join((*RUN, *SHOWN))}"
    if block.marks.get("not run") == "":
        return "not run, but why?"
    if block.marks.get("exits", "0") != "0" and len(block.text.replace("\\\n", "").splitlines()) != 1:
        return "`exits` is for a block of one command"
    if test := block.marks.get("run by"):
        file = ROOT / test
        if not file.is_file() or page.stem not in file.read_text(encoding="utf-8"):
            return f"{test} runs nothing of this page"
    return None


def left_out(block: Block, page: Path) -> str | None:
    """Why a block that would be run is not run here, if so."""
    if not block.is_to_run:
        return None
    test = block.marks.get("run by", ELSEWHERE.get(page.name))
    return f"run by {test}" if test else block.marks.get("not run")


def outcome(block: Block, place: Place, where: str) -> tuple[str, str]:
    """What a block would have to show, and what is wrong with it."""
    if block.language == "console":
        now = place.session(block.text)
    elif "prints" in block.marks:
        now = place.printed
    elif block.language == "python":
        return block.text, place.python(block.text, where)
    elif block.language in (*RUN, "before"):
        code, told = place.shell(block.text)
        return block.text, "" if code == int(block.marks.get("exits", "0")) else f"exit code {code}\n{told}"
    else:
        return block.text, ""
    if VARIES.sub("·", now) == VARIES.sub("·", block.text):
        return block.text, ""
    return now, f"it prints\n{now}"
