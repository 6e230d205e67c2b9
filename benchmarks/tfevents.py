"""Speed on a TensorBoard event file of 1,000,000 scalars, as a ratio to TensorBoard's own EventAccumulator.

    pip install tensorboard
    python benchmarks/tfevents.py [--scalars 1000000] [--repeat 3]

Both read the same file in turns, each in a process of its own that imports before it starts its clock, and both
must find the same values.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from stabtree.loaders.tensorboard.records import checksums

LIMIT = 5.0
TAGS = (b"train/loss", b"train/grad_norm", b"train/lr", b"train/tokens")
OURS = """
import json, sys, time
import numpy, stabtree.loaders
start = time.perf_counter()
run = stabtree.loaders.load_run(sys.argv[1])
seconds = time.perf_counter() - start
loss = run.series["loss"]
print(json.dumps({"seconds": seconds, "points": len(loss), "sum": float(loss.values.sum())}))
"""
THEIRS = """
import json, sys, time
import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
start = time.perf_counter()
accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
accumulator.Reload()
loss = accumulator.Scalars("train/loss")
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "points": len(loss), "sum": float(numpy.sum([e.value for e in loss]))}))
"""


def write_events(path: Path, scalars: int) -> None:
    """Four tags in turn, as `SummaryWriter.add_scalar` writes them; steps from 16,384 on, which take three bytes."""
    rng = np.random.default_rng(0)
    steps = np.arange(scalars // len(TAGS)) + (1 << 14)
    rows = []
    for place, tag in enumerate(TAGS):
        value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + bytes(4)
        summary = b"\x2a" + bytes([len(value) + 2]) + b"\x0a" + bytes([len(value)]) + value
        body = b"\x09" + bytes(8) + b"\x10" + bytes(3) + summary
        data = np.tile(np.frombuffer(body, dtype=np.uint8), (len(steps), 1))
        data[:, 1:9] = (1.7e9 + steps + place / 10).astype("<f8")[:, None].view(np.uint8)
        for byte in range(3):
            data[:, 10 + byte] = (steps >> (7 * byte) & 127) | (128 if byte < 2 else 0)
        data[:, -4:] = (2 + rng.normal(0, 0.1, len(steps))).astype("<f4")[:, None].view(np.uint8)
        head = np.frombuffer(len(body).to_bytes(8, "little"), dtype=np.uint8)[None]
        head = np.repeat(np.hstack([head, checksums(head).astype("<u4")[:, None].view(np.uint8)]), len(steps), axis=0)
        rows.append(np.hstack([head, data, checksums(data).astype("<u4")[:, None].view(np.uint8)]))
    path.write_bytes(b"".join(part.tobytes() for group in zip(*rows, strict=True) for part in group))


def measure(code: str, path: Path) -> dict[str, float]:
    """Seconds, number of points and their sum, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Print both times and their ratio; 1 where it misses its limit or the readers disagree."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scalars", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.out.tfevents.1700000000.host.1.0"
        write_events(path, options.scalars)
        size = path.stat().st_size / 1e6
        pairs = [(measure(OURS, path), measure(THEIRS, path)) for _ in range(options.repeat)]
    same = all(ours["points"] == theirs["points"] and ours["sum"] == theirs["sum"] for ours, theirs in pairs)
    ours, theirs = (statistics.median(pair[side]["seconds"] for pair in pairs) for side in (0, 1))
    print(f"{options.scalars:,} scalars, {size:.0f} MB: stabtree {ours:.2f} s, EventAccumulator {theirs:.2f} s")
    print(f"ratio {theirs / ours:.1f} (at least {LIMIT:g}); same points: {'yes' if same else 'NO'}")
    return 0 if same and theirs / ours >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
