"""Make `faultbench/` of the labelled runs: choose the files, take out where they were made, pack them.

    python -m benchmarks.publish SHARED [--staged FOLDER]

SHARED holds faultbench/, trainers/ and wild/INDEX.csv. What is taken out of a log is replaced by as many bytes, so that
columns and offsets stay, and the checksums that event files and W&B files carry are worked out again. Files that no
reader of logs opens (model cards, templates, lists of packages, debug logs) stay out.
"""

from __future__ import annotations

import argparse
import csv
import re
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from faultbench import archives
from tests.loaders.make_binary import masked_crc

REPLACED = {
    b"/home/user/ex": b"/faultbench/t",
    b"-fc-v669": b"-generic",
    b"user_id: root": b"user_id: user",
}
LEFT_OUT = ("README.md", "*.jinja", "tokenizer_config.json", "requirements.txt", "debug*.log")
INDEXED = ("repo", "path", "commit", "family", "label", "confidence", "onset", "why")
CORRECTED = "[corrected after 2nd look] "
# A path of a machine, a user's home, an address: none may be left.
PRIVATE = re.compile(rb"/(?:home|root|Users|work|mnt)/|[\w.]+@[\w-]+\.\w|-fc-v\d")
BLOCK_BYTES, HEADER_BYTES, WANDB_MAGIC_BYTES = 32768, 7, 7


def event_file(data: bytes) -> bytes:
    """TensorBoard's records with the checksums of what they hold now: length, its sum, content, its sum."""
    out, at = bytearray(data), 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        start, end = at + 12, at + 12 + length
        out[end : end + 4] = masked_crc(data[start:end])
        at = end + 4
    return bytes(out)


def wandb_file(data: bytes) -> bytes:
    """W&B's records with the checksums of what they hold now: sum, length, type, content, in blocks.

    Its checksum is zlib's over type and content.
    """
    out, at = bytearray(data), WANDB_MAGIC_BYTES
    while at + HEADER_BYTES <= len(data):
        if BLOCK_BYTES - at % BLOCK_BYTES < HEADER_BYTES:
            at += BLOCK_BYTES - at % BLOCK_BYTES
            continue
        (length,) = struct.unpack_from("<H", data, at + 4)
        end = at + HEADER_BYTES + length
        struct.pack_into("<I", out, at, zlib.crc32(data[at + 6 : end]))
        at = end
    return bytes(out)


def scrubbed(path: Path) -> bytes:
    """A file without the names of the machine on which it was made.

    Raises:
        ValueError: Something private is left.
    """
    before = data = path.read_bytes()
    for old, new in REPLACED.items():
        data = data.replace(old, new)
    if path.name == "mlflow.user":
        data = b"user"
    if data != before and "tfevents" in path.name:
        data = event_file(data)
    if data != before and path.suffix == ".wandb":
        data = wandb_file(data)
    if left := PRIVATE.search(data):
        msg = f"{path}: {data[max(left.start() - 40, 0) : left.end() + 40]!r} is left"
        raise ValueError(msg)
    return data


def stage(source: Path, target: Path) -> None:
    """Copy a set's runs and truth, scrubbed."""
    for part in ("runs", "truth"):
        for path in sorted((source / part).rglob("*")):
            if path.is_file() and not any(path.match(pattern) for pattern in LEFT_OUT):
                there = target / path.relative_to(source)
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(scrubbed(path))


def write_index(source: Path, target: Path) -> None:
    """The index of the public logs, without our names for the files."""
    with source.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with target.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, INDEXED, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in sorted(rows, key=lambda row: (row["repo"].lower(), row["path"])):
            why = row["why"].removeprefix(CORRECTED)
            writer.writerow({**row, "commit": row["commit"].removesuffix(" (history)"), "why": why})


def main() -> int:
    """Write the archives, the index and their sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shared", type=Path)
    parser.add_argument("--staged", type=Path, help="where the scrubbed files go; else into a folder that is removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        staged = options.staged or Path(scratch)
        for name, source in (("dev", options.shared / "faultbench" / "dev"), ("trainers", options.shared / "trainers")):
            stage(source, staged / name)
            packed = archives.pack(staged / name, name)
            print(f"{packed.name}: {packed.stat().st_size / 1e6:.2f} MB")
    write_index(options.shared / "wild" / "INDEX.csv", archives.HERE / "public.csv")
    archives.write_sums()
    return 0


if __name__ == "__main__":
    sys.exit(main())
