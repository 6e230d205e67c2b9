"""The licences of what is shipped, and of what it depends on: `python -m release.licences`.

What the wheel holds that we did not write stands in `SHIPPED`; `tests/whole/release` looks for anything else. Licences
of dependencies are read from their own metadata, where they are installed.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CLASSIFIER = "License :: OSI Approved :: "
MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy"
NOT_HERE = "not installed here"


@dataclass(frozen=True, slots=True)
class Shipped:
    """A work that lies in the wheel.

    Attributes:
        name: what it is.
        licence: its SPDX expression.
        text: the file that holds the licence's text.
        files: where it lies, as prefixes of paths in the repository; the longest that fits decides.
    """

    name: str
    licence: str
    text: str
    files: tuple[str, ...]


SHIPPED = (
    Shipped("stabtree", "MIT", "LICENSE", ("stabtree/", "trees/", "skills/", "fixtures/")),
    Shipped("uPlot", "MIT", "stabtree/report/uplot/LICENSE", ("stabtree/report/uplot/",)),
)


def work_of(file: str) -> Shipped | None:
    """The work that a file of the repository belongs to; None where it is none of those that are shipped."""
    fits = [(len(prefix), work) for work in SHIPPED for prefix in work.files if file.startswith(prefix)]
    return max(fits, key=lambda item: item[0])[1] if fits else None


def requirements() -> dict[str, list[str]]:
    """The names that stabtree itself and each of its extras depend on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = {"stabtree": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [_name(item) for item in items] for extra, items in lists.items()}


def licence_of(name: str) -> str:
    """The licence that a package states of itself.

    By its expression, its classifiers, its field, or the text that lies in it.
    """
    try:
        stated = distribution(name)
    except PackageNotFoundError:
        return NOT_HERE
    return " · ".join(_stated(stated)) or "not stated"


def _stated(package: Distribution) -> list[str]:
    classifiers = package.metadata.get_all("Classifier") or []
    approved = [item.removeprefix(CLASSIFIER) for item in classifiers if item.startswith(CLASSIFIER)]
    field = (package.metadata.get_all("License") or [_enclosed(package)])[0]
    return package.metadata.get_all("License-Expression") or approved or field.strip().splitlines()[:1]


def _enclosed(package: Distribution) -> str:
    """What the text of the licence that lies in the package is; empty where there is none."""
    for file in package.files or ():
        if file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING")):
            return "MIT, by its text" if MIT in file.read_text(encoding="utf-8") else f"see its {file.name}"
    return ""


def below(names: list[str]) -> list[str]:
    """The names, and all that they depend on without extras, as far as they are installed."""
    found, waiting = set[str](), set(names)
    while waiting:
        found |= waiting
        waiting = {needed for name in waiting for needed in _needs(name)} - found
    return sorted(found)


def _needs(name: str) -> list[str]:
    try:
        needed = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    return [_name(item) for item in needed if "extra ==" not in item]


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def lines() -> Iterator[str]:
    """All of it, as Markdown."""
    yield from ("| shipped | licence | text |", "|---|---|---|")
    yield from (f"| {work.name} | {work.licence} | `{work.text}` |" for work in SHIPPED)
    for extra, names in requirements().items():
        head, needed = f"with [{extra}]", names
        if extra == "stabtree":
            head, needed = "needed by stabtree", below(names)
        yield from ("", f"| {head} | licence |", "|---|---|")
        yield from (f"| {name} | {licence_of(name)} |" for name in needed)


if __name__ == "__main__":
    print("\n".join(lines()))
