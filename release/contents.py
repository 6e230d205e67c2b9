"""What a wheel and an sdist must hold, and what must be in neither."""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import stabtree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
# Where the wheel has what the repository keeps elsewhere.
INTO_WHEEL = {
    "stabtree": "stabtree",
    "trees": "stabtree/_trees",
    "skills": "stabtree/_skills",
    "fixtures/phase19": "stabtree/_runs/phase19",
}
FOLDERS = ".github benchmarks docs faultbench fixtures release skills stabtree tests trees"
PAGES = "AGENTS.md CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE README.md SECURITY.md"
INTO_SDIST = (*FOLDERS.split(), *PAGES.split(), "Makefile", "action.yml", "pyproject.toml")
LEFT_BY_TOOLS = {
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".venv",
    ".git",
    "build",
    "dist",
}
UPLOAD_LIMIT = 100 * 10**6  # bytes that a registry takes as one file


def in_wheel(file: Path) -> dict[str, bytes]:
    """Content by path of a wheel."""
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def in_sdist(file: Path) -> dict[str, bytes]:
    """Content by path of an sdist, without the folder that all of it lies in."""
    found = {}
    with tarfile.open(file) as archive:
        for member in archive:
            opened = archive.extractfile(member)
            if opened is not None:
                found[member.name.partition("/")[2]] = opened.read()
    return found


def sources(folder: str) -> Iterator[str]:
    """The files of the repository below a folder, or the one file, without what tools leave and git ignores."""
    place = ROOT / folder
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        name = path.relative_to(ROOT)
        if path.is_file() and not LEFT_BY_TOOLS & set(name.parts) and name.as_posix() not in _ignored():
            yield name.as_posix()


@cache
def _ignored() -> frozenset[str]:
    """The files that git ignores, which the build leaves out; none where this is no checkout, as in an sdist."""
    listing = ["git", "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *INTO_SDIST]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    return frozenset(done.stdout.split("\0")) if done.returncode == 0 else frozenset()


def wrong_in_wheel(held: Mapping[str, bytes]) -> list[str]:
    """What a wheel lacks, holds otherwise than the repository, or must not hold; empty where it is right."""
    info = f"stabtree-{stabtree.__version__}.dist-info"
    wanted = {
        home + name.removeprefix(folder): (ROOT / name).read_bytes()
        for folder, home in INTO_WHEEL.items()
        for name in sources(folder)
    }
    known = {*wanted, *(name for name in held if name.startswith(f"{info}/"))}
    metadata = held.get(f"{info}/METADATA", b"").decode()
    return [
        *(f"{name} is not in it" for name in wanted if name not in held),
        *(f"{name} is not that of the repository" for name in wanted if held.get(name, wanted[name]) != wanted[name]),
        *(f"{name} must not be in it" for name in held if name not in known),
        *(f"METADATA lacks {line}" for line in _metadata() if line not in metadata.splitlines()),
        *_local(held),
    ]


def wrong_in_sdist(held: Mapping[str, bytes]) -> list[str]:
    """As for a wheel: an sdist holds what its parts of the repository hold and pyproject.toml does not exclude."""
    left_out = tuple(_excluded())
    parts = {name for part in INTO_SDIST for name in sources(part)}
    wanted = {name for name in parts if not any(fnmatch(name, pattern) for pattern in left_out)}
    made = {"PKG-INFO", ".gitignore"}
    return [
        *(f"{name} is not in it" for name in sorted(wanted - held.keys())),
        *(f"{name} must not be in it" for name in sorted(held.keys() - wanted - made)),
        *(
            f"{name} is not that of the repository"
            for name in sorted(wanted & held.keys())
            if _differs(name, held[name])
        ),
        *_local(held),
    ]


def _excluded() -> Iterator[str]:
    """What pyproject.toml keeps out of the sdist, as patterns of files and of what lies below folders."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    for pattern in config["sdist"].get("exclude", ()):
        yield from (pattern.lstrip("/"), f"{pattern.strip('/')}/*")


def _differs(name: str, content: bytes) -> bool:
    return (ROOT / name).read_bytes() != content


def _metadata() -> Iterator[str]:
    """Lines that the metadata must have, as pyproject.toml says elsewhere."""
    yield f"Version: {stabtree.__version__}"
    yield "License-Expression: MIT"
    yield "License-File: LICENSE"
    yield "Requires-Python: >=3.11"


def _local(held: Mapping[str, bytes]) -> Iterator[str]:
    """Files that name this machine, that tools left, or that are too large."""
    here = str(ROOT).encode()
    for name, content in held.items():
        if here in content:
            yield f"{name} names the folder that it was built in"
        if LEFT_BY_TOOLS & set(PurePosixPath(name).parts) or name.endswith((".pyc", ".orig", ".rej")):
            yield f"{name} is what a tool left"
        if len(content) > UPLOAD_LIMIT:
            yield f"{name} is larger than a registry takes"
