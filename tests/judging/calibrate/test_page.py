"""The commands of docs/how-to/calibrate.md do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.conftest import ROOT, falling

PAGE = ROOT / "docs" / "how-to" / "calibrate.md"
SPIKES = {"monday": 0.5, "tuesday": 0.8, "thursday": 0.0}


@pytest.mark.usefixtures("few_faults")
def test_the_commands_of_the_page_silence_healthy_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with a spike that is usual here alarm before; after all commands in order they do not."""
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    for seed, (name, height) in enumerate(SPIKES.items()):
        loss = falling(600, seed=seed)
        loss[300 + 20 * seed] += height
        rows = [f"{step},{value:.6f},0.001" for step, value in enumerate(loss)]
        Path(f"runs/{name}.csv").write_text("\n".join(["step,loss,lr", *rows, ""]), encoding="utf-8")
    assert run("diagnose", "runs", "-q").returncode == 1
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = [run(*shlex.split(line.removeprefix("$ stabtree "))) for line in block.splitlines()]
    assert [one.returncode for one in done] == [0, 0, 0]
    assert "3 healthy runs: 2 alarm now, none with what is set below." in done[0].stdout
