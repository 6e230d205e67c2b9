"""The failed run that comes with stabtree."""

from __future__ import annotations

import tomllib
from pathlib import Path

from stabtree.tree.shipped import shipped_runs
from tests.cli.command import run

ROOT = Path(__file__).resolve().parents[2]
RUN = shipped_runs() / "phase19" / "fp16-overflow"


def test_the_demo_shows_a_failed_run() -> None:
    """It ends with 0, as nothing of the user's is wrong, and says where the run lies on standard error."""
    done = run("demo")
    assert done.returncode == 0
    assert "The run overflowed in fp16" in done.stdout
    assert str(RUN) in done.stderr
    assert run("demo", "-q").stderr == ""


def test_the_wheel_holds_the_runs() -> None:
    """They are packed from the fixtures to where the commands look first."""
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    places = {to: ROOT / path for path, to in packed["force-include"].items()}
    assert places["stabtree/_runs/phase19"].samefile(shipped_runs() / "phase19")
    assert {"manifest.json", "metrics.csv"} <= {path.name for path in RUN.iterdir()}
