"""The packed runs: pack them reproducibly, unpack them, and check that none was changed.

An archive is a tar file in which order, times, owners and modes are fixed, compressed with xz. `SHA256SUMS` beside the
archives is in the format of `sha256sum`.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
SUMS = HERE / "SHA256SUMS"
PACKED = ("dev", "trainers")
"""The sets that are handed out as archives; each unpacks into a folder of its name with runs/ and truth/."""


class ChangedError(Exception):
    """An archive, or a file that came out of it, is not what it was."""


def archive_of(name: str) -> Path:
    """Where a set's archive lies."""
    return HERE / f"{name}.tar.xz"


def sha256(path: Path) -> str:
    """A file's SHA-256 in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def tar_of(folder: Path, name: str) -> bytes:
    """A set's folder as a tar file: the same files give the same bytes, whenever and wherever."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
        files = [path for path in folder.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: path.relative_to(folder).as_posix()):
            entry = tarfile.TarInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                tar.addfile(entry, content)
    return held.getvalue()


def pack(folder: Path, name: str) -> Path:
    """Pack a set's folder into its archive."""
    target = archive_of(name)
    target.write_bytes(lzma.compress(tar_of(folder, name), preset=9 | lzma.PRESET_EXTREME))
    return target


def write_sums() -> None:
    """Write the sums of the archives and of the index of the public logs."""
    files = [*(archive_of(name) for name in PACKED), HERE / "public.csv"]
    SUMS.write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files), encoding="utf-8", newline="\n")


def check_sums() -> list[str]:
    """The names of all files that have a sum, each of which is right.

    Raises:
        ChangedError: One is not what it was, or not here.
    """
    names = []
    for line in SUMS.read_text(encoding="utf-8").splitlines():
        told, name = line.split()
        if not (HERE / name).is_file():
            msg = f"{name} is not here: it lies in the repository, not in an sdist"
            raise ChangedError(msg)
        if sha256(HERE / name) != told:
            msg = f"{name} is not what SHA256SUMS says: fetch it again"
            raise ChangedError(msg)
        names.append(name)
    return names


def unpack(name: str, target: Path) -> Path:
    """Unpack a set below a folder; where it lies now, as a folder with runs/ and truth/.

    Raises:
        ChangedError: The archive is not what it was.
    """
    check_sums()
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive_of(name), "r:xz") as tar:
        tar.extractall(target, filter="data")
    return target / name


def contents(name: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of a set, by the names under which they are unpacked."""
    with tarfile.open(archive_of(name), "r:xz") as tar:
        for entry in tar:
            stream = tar.extractfile(entry)
            if stream is not None:
                yield entry.name, stream.read()


def verify(name: str, target: Path) -> int:
    """Compare an unpacked set with its archive; how many files were compared.

    Raises:
        ChangedError: A file is missing or is not what it was.
    """
    check_sums()
    count = 0
    for path, content in contents(name):
        there = target / path
        if not there.is_file() or there.read_bytes() != content:
            msg = f"{there} is {'not what it was' if there.exists() else 'missing'}"
            raise ChangedError(msg)
        count += 1
    return count
