"""Tiny writers of event files and `.wandb` files, written after the formats and sharing no code with the readers.

`BINARIES` are binary logs of any size, ordinary and odd ones, to measure how what they cost grows.
"""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import zlib
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.loaders.trackers.test_mlflow import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path


def varint(number: int) -> bytes:
    """A varint; negative numbers as their two's complement of 64 bits."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def part(number: int, content: bytes | str | int | float) -> bytes:
    """A field: bytes and text with their length, a whole number as varint, a float as double."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    if isinstance(content, float):
        return varint(number << 3 | 1) + struct.pack("<d", content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def single(number: int, value: float) -> bytes:
    """A field of four bytes that holds a float."""
    return varint(number << 3 | 5) + struct.pack("<f", value)


@cache
def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 if crc & 1 else crc >> 1
        table.append(crc)
    return table


def masked_crc(data: bytes) -> bytes:
    """The checksum of the TFRecord format."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """A record of the TFRecord format."""
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length) + data + masked_crc(data)


def event(step: int, values: Iterable[bytes], time: float = 1.7e9) -> bytes:
    """An event with a summary; step 0 is left out, as protocol buffers do."""
    summary = b"".join(part(1, value) for value in values)
    return record(part(1, time) + (part(2, step) if step else b"") + part(5, summary))


def scalar(tag: str, value: float) -> bytes:
    """A value of a summary in the old style."""
    return part(1, tag) + single(2, value)


def tensor(tag: str, dtype: int, content: bytes) -> bytes:
    """A value of a summary as a tensor, with the metadata of the plugin `scalars`."""
    return part(1, tag) + part(9, part(1, part(1, "scalars"))) + part(8, part(1, dtype) + part(2, b"") + content)


def events(rows: Iterable[tuple[int, Mapping[str, float]]], start: float = 1.7e9) -> bytes:
    """An event file: one event for each value, a second after the other."""
    out = [record(part(1, start) + part(3, "brain.Event:2"))]
    time = start
    for step, values in rows:
        for tag, value in values.items():
            time += 1
            out.append(event(step, [scalar(tag, value)], time))
    return b"".join(out)


def write_events(
    folder: Path, rows: Iterable[tuple[int, Mapping[str, float]]], start: float = 1.7e9, name: str = ""
) -> Path:
    """An event file in a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (name or f"events.out.tfevents.{int(start)}.host.1.0")
    file.write_bytes(events(rows, start))
    return file


def wandb_items(number: int, values: Mapping[str, object]) -> bytes:
    """The items of a history (1) or configuration (1) record; a key with `/` as it is, nested keys as a tuple."""
    return b"".join(part(number, part(2, key) + part(16, json.dumps(value))) for key, value in values.items())


def wandb_records(rows: Iterable[Mapping[str, object]], config: Mapping[str, object], name: str) -> list[bytes]:
    """The records of a run: the run with its configuration, then its history."""
    run = part(1, "id0") + part(4, wandb_items(1, config)) + part(8, name)
    history = [part(1, place) + part(2, wandb_items(1, row)) for place, row in enumerate(rows, 2)]
    return [part(1, 1) + part(17, run), *history]


def wandb_file(records: Iterable[bytes]) -> bytes:
    """A `.wandb` file: LevelDB's log blocks of 32 KiB behind a header of seven bytes."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for data in records:
        rest, first = data, True
        while rest or first:
            room = 32768 - len(out) % 32768
            if room < 7:
                out += bytes(room)
                room = 32768
            piece, rest = rest[: room - 7], rest[room - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[first, not rest]
            crc = zlib.crc32(piece, zlib.crc32(bytes([kind])))
            out += struct.pack("<IHB", crc, len(piece), kind) + piece
            first = False
    return bytes(out)


FEW = 50
RUN = events((k, {"loss": 2.5}) for k in range(FEW))


def wandb(rows: Iterable[Mapping[str, object]], config: Mapping[str, object] | None = None) -> bytes:
    """A `.wandb` file of a run."""
    return wandb_file(wandb_records(rows, config or {}, "r"))


def parquet(columns: Mapping[str, list[Any]], group: int | None = None) -> bytes:
    """A Parquet file, of groups of so many rows."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), out, row_group_size=group)
    return out.getvalue()


def mlflow(points: Iterable[tuple[str, float, int]], runs: int = 1) -> bytes:
    """An SQLite database of MLflow: (key, value, step), a millisecond after each other, and more runs without any."""
    with closing(sqlite3.connect(":memory:")) as store:
        store.executescript(SCHEMA)
        store.executemany("INSERT INTO runs VALUES (?, ?, 0)", ((f"r{n}", f"run {n}") for n in range(runs)))
        rows = ((key, value, at, "r0", step, False) for at, (key, value, step) in enumerate(points))
        store.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        store.commit()
        return store.serialize()


BINARIES: dict[str, Callable[[int], bytes]] = {
    "events": lambda n: events((k, {"loss": 1 / (k + 1)}) for k in range(n)),
    "events that go back": lambda n: events((n - k, {"loss": 2.5}) for k in range(n)),
    "events with a new tag each": lambda n: RUN + events((k, {"loss": 2.5, f"k{k}": 1}) for k in range(n // 5)),
    "events of many values": lambda n: b"".join(
        event(k, [scalar("loss", 2.5), *(scalar(f"k{j}", 1) for j in range(n // 10))]) for k in range(10)
    ),
    "events that are cut": lambda n: RUN + record(b"x")[:-1] * n + RUN,
    "wandb": lambda n: wandb({"_step": k, "loss": 2.5} for k in range(n // 2)),
    "wandb with a new key each": lambda n: wandb({"_step": k, "loss": 2.5, f"k{k}": 1} for k in range(n // 5)),
    "wandb with many settings": lambda n: wandb(
        [{"_step": k, "loss": 2.5} for k in range(FEW)], {f"k{k}": k for k in range(n)}
    ),
    "parquet of text": lambda n: parquet({"step": [*range(n)], "loss": [str(1 / (k + 1)) for k in range(n)]}),
    "parquet of many columns": lambda n: parquet(
        {"step": [1, 2, 3], "loss": [3.0, 2.0, 1.0], **{f"k{k}": [1, 1, 1] for k in range(n // 5)}}
    ),
    "parquet of many groups": lambda n: parquet({"step": [*range(n // 10)], "loss": [2.5] * (n // 10)}, 1),
    "mlflow": lambda n: mlflow(("loss", 1 / (k + 1), k) for k in range(n)),
    "mlflow with a new key each": lambda n: mlflow(
        point for k in range(n // 5) for point in (("loss", 2.5, k), (f"k{k}", 1.0, k))
    ),
    "mlflow with many runs": lambda n: mlflow((("loss", 2.5, k) for k in range(FEW)), n),
}
