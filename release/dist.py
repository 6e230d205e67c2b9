"""Wheel and sdist, built and checked: `python -m release.dist FOLDER [--install]`.

The sdist is built from the repository, the wheel from the repository and once more from the sdist: both wheels must be
the same to the byte. Metadata (`twine check --strict`) and contents (`release/contents.py`) are checked, and with
`--install` the wheel is installed into a bare environment, where `stabtree demo` must run. Sizes are printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

from release import contents

ROOT = contents.ROOT


class DistError(Exception):
    """What was built is not what is to be shipped."""


def built(folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist into an empty folder; their paths.

    Raises:
        DistError: The wheel of the sdist is another than that of the repository, or something lies in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        msg = f"{folder} is not empty"
        raise DistError(msg)
    _build(ROOT, folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(sdist) as archive:
        archive.extractall(scratch, filter="data")
        (source,) = Path(scratch).iterdir()
        _build(source, Path(scratch) / "again", "--wheel")
        if (Path(scratch) / "again" / wheel.name).read_bytes() != wheel.read_bytes():
            msg = "the sdist builds another wheel than the repository"
            raise DistError(msg)
    return wheel, sdist


def _build(source: Path, folder: Path, *only: str) -> None:
    # Without isolation: hatchling is that of the extra `release`, and nothing is fetched.
    each = only or ("--sdist", "--wheel")
    options = ["--no-isolation", "--skip-dependency-check", *each, "--outdir", str(folder)]
    _run(sys.executable, "-m", "build", *options, str(source))


def checked(wheel: Path, sdist: Path) -> None:
    """Check metadata and contents.

    Raises:
        DistError: with all that is wrong, a line each.
    """
    _run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    wrong = [
        *(f"{wheel.name}: {what}" for what in contents.wrong_in_wheel(contents.in_wheel(wheel))),
        *(f"{sdist.name}: {what}" for what in contents.wrong_in_sdist(contents.in_sdist(sdist))),
    ]
    if wrong:
        raise DistError("\n".join(wrong))


def installed(wheel: Path) -> str:
    """What `stabtree demo` concludes where only the wheel and what it depends on are installed.

    Raises:
        DistError: It concludes nothing.
    """
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        programs = Path(place) / ("Scripts" if sys.platform == "win32" else "bin")
        _run(str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
        # -I: neither this folder nor PYTHONPATH is where it looks for stabtree.
        said = _run(str(programs / "python"), "-I", "-m", "stabtree", "demo")
    for line in said.splitlines():
        if line.startswith("critical: "):
            return line
    msg = f"stabtree demo finds nothing where the wheel is installed:\n{said}"
    raise DistError(msg)


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        msg = f"{' '.join(command[1:4])} failed:\n{done.stdout}{done.stderr}"
        raise DistError(msg)
    return done.stdout


def main() -> int:
    """Build, check, print sizes; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where they are written: empty, or not there yet")
    parser.add_argument("--install", action="store_true", help="install the wheel into a bare environment, and run it")
    options = parser.parse_args()
    try:
        wheel, sdist = built(options.folder)
        checked(wheel, sdist)
        demo = installed(wheel) if options.install else ""
    except DistError as error:
        print(error, file=sys.stderr)
        return 1
    for file, held in ((wheel, contents.in_wheel(wheel)), (sdist, contents.in_sdist(sdist))):
        size = file.stat().st_size / 2**20
        unpacked = sum(map(len, held.values())) / 2**20
        print(f"{file.name:40s} {size:6.2f} MiB, {unpacked:6.2f} MiB unpacked, {len(held):,} files")
    if demo:
        print(f"in a bare environment: {demo}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
