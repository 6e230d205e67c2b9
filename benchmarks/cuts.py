"""Cut logs at bytes, as a full disk or a killed process does: what is said of what is left.

    python -m benchmarks.cuts PATH [PATH ...] --cuts 200

PATHS are logs, or folders of them. No cut may crash; and what is said of a cut log of lines must be what is said of
the complete lines before the cut, or of these and the line that was cut as it was. Prints what is neither.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_runs
from stabtree.tree.load import load_trees

if TYPE_CHECKING:
    from collections.abc import Iterator

Told = tuple[object, ...]
ONE_PIECE = ("{", "[")  # a document of JSON that is cut is none at all


class Cut(NamedTuple):
    """What became of a log that was cut.

    Attributes:
        at: bytes that are left.
        outcome: `same` as of the lines before, as of those and the `whole` line that was cut, `differs` from both,
            `crashed`; `binary` for what has no lines and did not crash.
        said: what is said of it, and of its complete rows.
    """

    at: int
    outcome: str
    said: str = ""


def cuts(log: Path, count: int, folder: Path) -> Iterator[Cut]:
    """A log cut at so many bytes, evenly over its length."""
    data = log.read_bytes()
    lines = of_lines(data)
    for place in range(1, count + 1):
        at = place * len(data) // (count + 1)
        left, before = data[:at], data[: data.rfind(b"\n", 0, at) + 1]
        whole = data[: data.find(b"\n", at) + 1 or len(data)]
        try:
            found = told(left, folder / log.name)
        except Exception as error:
            yield Cut(at, "crashed", f"{type(error).__name__}: {error}")
            continue
        if not lines:
            yield Cut(at, "binary")
            continue
        rows = told(before, folder / log.name)
        as_whole = found != rows and found == told(whole, folder / log.name)
        yield Cut(at, "same" if found == rows else "whole" if as_whole else "differs", f"{found} not {rows}")


def of_lines(data: bytes) -> bool:
    """Whether each line of a log stands for itself."""
    head = data[:4096]
    if b"\0" in head or head.startswith((b"PAR1", b"\x1f\x8b", b":W&B")):
        return False
    text = head.decode("utf-8", "replace").lstrip()
    if not text.startswith(ONE_PIECE):
        return True
    line = text.split("\n", 1)[0].rstrip()
    return line.endswith("}") and line.startswith("{")


def told(data: bytes, file: Path) -> Told:
    """What is said of a log: each run's verdict, with its findings and where they begin; or that it can't be read."""
    file.write_bytes(data)
    try:
        return tuple(_told(loaded.run) for loaded in load_runs(str(file)))
    except StabtreeError:
        return ("unread",)


def _told(run: object) -> Told:
    if isinstance(run, StabtreeError):
        return ("unread",)
    found = diagnose(run, load_trees(run))  # type: ignore[arg-type]
    return (str(found.verdict), *((finding.leaf.id, finding.onset_step) for finding in found.findings))


def main() -> int:
    """Print every cut whose verdict differs, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--logs", type=int, default=0, help="so many of the logs, evenly over all")
    options = parser.parse_args()
    files = [path for given in options.paths for path in ([given] if given.is_file() else sorted(given.rglob("*")))]
    logs = [path for path in files if path.is_file() and path.stat().st_size]
    if options.logs:
        logs = logs[:: max(1, len(logs) // options.logs)][: options.logs]
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for log in logs:
            for cut in cuts(log, options.cuts, Path(folder)):
                outcomes[cut.outcome] += 1
                if cut.outcome in ("differs", "crashed"):
                    print(f"{cut.outcome} {log} at byte {cut.at}: {cut.said}", flush=True)
    print(f"{len(logs)} logs, {outcomes.total():,} cuts: {dict(outcomes)}")
    return 1 if outcomes["crashed"] or outcomes["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
