"""What a competitor's tool says of real logs, one verdict a log, for `benchmarks.wild` and `benchmarks.trainers`.

    python -m benchmarks.peers_logs DIR --out FOLDER [--tool NAME]
    python -m benchmarks.wild DIR --verdicts FOLDER/NAME.json

DIR holds INDEX.csv with a column `file`, or truth/*.json with targets. Run it with the interpreter in which the tools
are installed, as `benchmarks/peers.py`, whose rules hold here too: each tool gets the file as it is, and a finding at
any level above information is an alarm. `refused` is a log on which the tool failed, `unknown` one of which it says
that nothing in it could be judged.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.peers import INFORMATION, PASSED, TOOLS, UNJUDGED, Tool, run_tool, versions

WORKERS = 2


def logs(folder: Path) -> list[str]:
    """The paths of all logs that a folder's index names, relative to it."""
    index = folder / "INDEX.csv"
    if index.exists():
        with index.open(encoding="utf-8", newline="") as stream:
            return [row["file"] for row in csv.DictReader(stream)]
    truths = [json.loads(file.read_text(encoding="utf-8")) for file in sorted((folder / "truth").glob("*.json"))]
    return [target["path"] for truth in truths for target in truth["targets"]]


def verdict(tool: Tool, log: Path) -> str:
    """What a tool says of a log, in our words."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found, _ = run_tool(tool, log, Path(scratch))
        except (ValueError, OSError, csv.Error, subprocess.TimeoutExpired):
            return "refused"
    said = [finding for finding in found if finding.id not in UNJUDGED - {PASSED}]
    if any(finding.level not in INFORMATION for finding in said if finding.id != PASSED):
        return "warning"
    return "unknown" if found and not said else "ok"


def main() -> int:
    """Write the verdicts of one tool or of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the folder that gets TOOL.json")
    parser.add_argument("--tool", choices=TOOLS, action="append", help="all when not given")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    paths = logs(options.folder)
    for name in options.tool or TOOLS:
        if not importlib.util.find_spec(name):
            print(f"{name} is not installed", file=sys.stderr)
            continue
        with ThreadPoolExecutor(WORKERS) as pool:
            found = list(pool.map(lambda path, tool=TOOLS[name]: verdict(tool, options.folder / path), paths))
        said = dict(zip(paths, found, strict=True))
        (options.out / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {len(said)} logs, " + ", ".join(f"{found.count(word)} {word}" for word in sorted(set(found))))
    versions(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
