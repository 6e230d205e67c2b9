"""Speed and memory of the command line, as ratios to named references measured in the same run.

    python benchmarks/speed.py [--repeat 5]

Every figure is the median of whole processes, taken in turns so that a slow spell of the machine hits
both sides alike. The package is compiled first, as an installer does it.
"""

from __future__ import annotations

import argparse
import compileall
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS = ("step", "loss", "grad_norm", "lr", "loss_scale")
MEMORY = """
import json, resource, sys
import pandas
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
frame = None
if sys.argv[1] == "frame":
    frame = pandas.read_csv(sys.argv[2])
    size = int(frame.memory_usage(index=False).sum())
else:
    import stabtree, rich.console, typer, yaml
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stabtree.diagnose(stabtree.load_run(sys.argv[2]))
    size = 0
print(json.dumps({"base": base, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "frame": size}))
"""


def write_csv(path: Path, rows: int) -> None:
    """A healthy-looking run of `rows` rows."""
    import numpy as np

    rng = np.random.default_rng(0)
    step = np.arange(rows)
    loss = 1 + 3 * np.exp(-5 * step / rows) + rng.normal(0, 0.05, rows)
    grad_norm = np.exp(rng.normal(0, 0.2, rows))
    lr = 1e-3 * np.cos(step / rows * 1.5)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(COLUMNS) + "\n")
        for row in zip(step, loss, grad_norm, lr, strict=True):
            file.write(f"{row[0]},{row[1]:.6g},{row[2]:.6g},{row[3]:.6g},65536\n")


def seconds(command: list[str]) -> float:
    """Wall time of one process; its output is thrown away."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(name: str, ours: list[str], reference: list[str], limit: float, repeat: int) -> bool:
    """Time two commands in turns; print their medians and ratio."""
    seconds(ours), seconds(reference)
    pairs = [(seconds(ours), seconds(reference)) for _ in range(repeat)]
    mine = statistics.median(pair[0] for pair in pairs)
    theirs = statistics.median(pair[1] for pair in pairs)
    ratio = mine / theirs
    print(
        f"{name:34s} {mine:7.3f} s   reference {theirs:7.3f} s   ratio {ratio:5.2f}   limit {limit:.1f}   "
        f"{'ok' if ratio <= limit else 'OVER'}"
    )
    return ratio <= limit


def memory(kind: str, path: Path) -> dict[str, int]:
    """Peak memory of one process in KiB, and the frame's size in bytes."""
    done = subprocess.run([sys.executable, "-c", MEMORY, kind, str(path)], check=True, capture_output=True, text=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def main() -> int:
    """Run all comparisons; exit with 1 when one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    stabtree = str(Path(sys.executable).with_name("stabtree"))
    python = [sys.executable, "-c"]
    compileall.compile_dir(Path(__file__).resolve().parent.parent / "stabtree", quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        big, small = Path(folder, "million.csv"), Path(folder, "small.csv")
        write_csv(big, 1_000_000)
        write_csv(small, 2_000)
        imports = [*python, "import typer, rich, yaml"]
        results = [
            compare(
                "diagnose, 1,000,000 rows",
                [stabtree, "diagnose", str(big)],
                [*python, f"import pandas; pandas.read_csv({str(big)!r})"],
                1.5,
                repeat,
            ),
            compare(
                "diagnose, 2,000 rows",
                [stabtree, "diagnose", str(small)],
                [*python, "import typer, rich, yaml, pandas"],
                1.4,
                repeat,
            ),
            compare("--help", [stabtree, "--help"], imports, 2.5, repeat),
            compare("explain Q2.3", [stabtree, "explain", "Q2.3"], imports, 2.5, repeat),
        ]
        frame, ours = memory("frame", big), memory("stabtree", big)
        size = frame["frame"] / 1024
        ratio = (ours["peak"] - ours["base"]) / size
        print(
            f"peak memory at 1,000,000 rows: {(ours['peak'] - ours['base']) / 1024:.0f} MiB over the imports, frame "
            f"{size / 1024:.0f} MiB, ratio {ratio:.2f} (limit 3.0); pandas.read_csv alone: "
            f"{(frame['peak'] - frame['base']) / size:.2f}"
        )
        results.append(ratio <= 3.0)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
