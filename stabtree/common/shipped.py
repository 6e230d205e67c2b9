"""Where the files that come with stabtree are."""

from __future__ import annotations

from pathlib import Path


def shipped_runs() -> Path:
    """Return the folder of the runs that come with stabtree: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parents[1]
    folder = package / "_runs"
    if folder.is_dir():
        return folder
    return package.parent / "fixtures"
