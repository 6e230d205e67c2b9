"""Which screens are kept, and how each is made."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tests.cli.command import run

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PHASE19 = (
    "healthy", "not-shown", "near-limit", "nan-layer", "nan-unlocated", "fp16-overflow", "scale-collapse",
    "normal-backoff", "spike-persistent", "spike-minor", "spike-lr-jump", "slow-rise", "plateau", "lr-rising",
    "grad-norm-rising",
)  # fmt: skip
CONVERGENCE = ("flat-from-start", "overfitting", "eval-nonfinite")
COMMANDS = {
    **{name: ("diagnose", f"fixtures/phase19/{name}") for name in PHASE19},
    **{name: ("diagnose", f"fixtures/convergence/{name}") for name in CONVERGENCE},
    "several-runs": ("diagnose", "fixtures/phase19/healthy", "fixtures/phase19/spike-persistent"),
    "no-such-file": ("diagnose", "fixtures/phase19/helthy"),
    "explain-node": ("explain", "Q2.3"),
    "inspect": ("inspect", "fixtures/phase19/fp16-overflow"),
}
"""The words of each command, by the name of the file that holds its screen."""


def screen(name: str) -> str:
    """Return what a command prints in a terminal of 100 columns: standard output, standard error, exit code."""
    with contextlib.chdir(ROOT):
        done = run(*COMMANDS[name])
    return f"$ stabtree {' '.join(COMMANDS[name])}\n{done.stdout}{done.stderr}exit {done.returncode}\n"
