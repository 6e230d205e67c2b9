"""The table of stabtree and the competitors on `faultbench/`, with 95% intervals, and its record.

    python -m benchmarks.peers_table                                    print it as it was recorded
    python -m benchmarks.peers_table --readme                           as the README has it
    python -m benchmarks.peers_table --record FOLDER --runs RUNS [--public DIR]

`--record` takes a folder with a folder of predictions for each set and for the probes, keeps those of the sets in
`faultbench/predictions/`, scores them and writes `docs/figures/peers.json`, of which README and site are made. RUNS is
where the archives were unpacked; DIR holds INDEX.csv: its names for public logs are replaced by where they are from.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import json
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import probes
from benchmarks.peers import VERSIONS
from faultbench import archives, scoring
from faultbench.rates import Pair, Rate, pair

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures" / "peers.json"
PREDICTIONS = archives.HERE / "predictions"
SHORT = (scoring.FALSE_ALARMS, scoring.MISSED, scoring.SECTION)
"""The rates on `dev` that the README's table shows."""


@cache
def figures() -> dict[str, Any]:
    """What was recorded: date, versions of the tools (ours first), and of each set the counts of every tool."""
    found: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return found


def own() -> str:
    """The name of our tool in the record."""
    return str(next(iter(figures()["versions"])))


def rates_of(name: str, tool: str) -> dict[str, Rate]:
    """The rates of a tool on a set."""
    return {rate: Rate(*counts) for rate, counts in figures()["sets"][name]["rates"][tool].items()}


def against(name: str, tool: str) -> Pair:
    """Us and another tool on the same runs of a set."""
    return Pair(*figures()["sets"][name]["pairs"][tool])


def cell(found: Rate) -> str:
    """A rate in a table: share, interval and counts."""
    if not found.of:
        return "none"
    low, high = (round(100 * end) for end in found.interval())
    return f"{found.share:.0%} ({low} to {high}), {found.hits}/{found.of}"


def titled(tool: str, name: str = "dev") -> str:
    """A tool with the version that was run on a set; ours is the checkout's own."""
    return tool if tool == own() else f"{tool} {figures()['sets'][name]['versions'][tool]}"


def markdown(name: str, wanted: tuple[str, ...] = (), shown: Callable[[Rate], str] = cell) -> list[str]:
    """A set's table as lines of Markdown: the tools below each other, the rates beside each other."""
    tools = figures()["sets"][name]["rates"]
    columns = wanted or tuple(rates_of(name, own()))
    rows = [[titled(tool, name), *(shown(rates_of(name, tool)[column]) for column in columns)] for tool in tools]
    lines = [("tool", *columns), ("---",) * (len(columns) + 1), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def readme() -> list[str]:
    """The lines of the README's table."""
    return markdown("dev", SHORT)


def compact(told: dict[str, Any]) -> str:
    """Predictions as JSON with one run a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(told.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def keep(name: str, folder: Path, public: Path | None) -> None:
    """Keep the predictions on a set in `faultbench/predictions/`."""
    target = PREDICTIONS / name
    target.mkdir(parents=True, exist_ok=True)
    renamed = {}
    if name == "public" and public:
        with (public / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
            renamed = {row["file"]: f"{row['repo']}/{row['path']}" for row in csv.DictReader(stream)}
    for file in sorted(folder.glob("*.json")):
        if file.name != VERSIONS:
            told = json.loads(file.read_text(encoding="utf-8"))
            named = {renamed.get(key, key): value for key, value in told.items()}
            (target / file.name).write_text(compact(named), encoding="utf-8", newline="\n")


def predictions(name: str, tool: str) -> dict[str, Any]:
    """What was kept of a tool's predictions on a set."""
    found: dict[str, Any] = json.loads((PREDICTIONS / name / f"{tool}.json").read_text(encoding="utf-8"))
    return found


def scored(name: str, runs: Path, versions: dict[str, str]) -> dict[str, Any]:
    """The counts of all tools on a set, from the predictions that were kept; the first tool is ours."""
    tools = list(versions)
    scores = {tool: scoring.score(name, runs, predictions(name, tool)) for tool in tools}
    ours = scores[tools[0]].right
    return {
        "versions": versions,
        "rates": {tool: {rate: list(found) for rate, found in score.rates.items()} for tool, score in scores.items()},
        "pairs": {tool: list(pair(ours, scores[tool].right)) for tool in tools[1:]},
    }


def probed(folder: Path, tools: list[str]) -> dict[str, dict[str, str]]:
    """What every tool made of every format, from their verdicts on the two runs of `benchmarks.probes`."""
    told = {tool: json.loads((folder / f"{tool}.json").read_text(encoding="utf-8")) for tool in tools}

    def verdict(tool: str, path: str) -> str:
        said = told[tool][path]
        return str(said if isinstance(said, str) else said["verdict"])

    return {
        what: {tool: probes.outcome({twin: verdict(tool, path) for twin, path in twins.items()}) for tool in tools}
        for what, twins in probes.paths().items()
    }


def record(folder: Path, runs: Path, public: Path | None) -> None:
    """Keep predictions, score them, write the record; a set that nobody was asked about stays as it was recorded."""
    from benchmarks.peers_own import OWN

    before = figures()["sets"] if FIGURES.exists() else {}
    sets = {}
    for name in scoring.SETS:
        if (folder / name / f"{OWN}.json").exists():
            keep(name, folder / name, public)
            peers = json.loads((folder / name / VERSIONS).read_text(encoding="utf-8"))
            sets[name] = scored(name, runs, {OWN: metadata.version(OWN), **peers})
        elif name in before:
            sets[name] = before[name]
    versions = sets["dev"]["versions"]
    found = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "versions": versions,
        "sets": sets,
        "formats": probed(folder / "probes", list(versions)),
    }
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8", newline="\n")
    figures.cache_clear()


def main() -> int:
    """Record if that is asked for, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, metavar="FOLDER")
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--public", type=Path)
    options = parser.parse_args()
    if options.record:
        if not options.runs:
            parser.error("--record needs --runs RUNS")
        record(options.record, options.runs, options.public)
    if options.readme:
        print("\n".join(readme()))
    else:
        _show()
    return 0


def _show() -> None:
    print(f"Recorded on {figures()['date']}; 95% intervals (Wilson)")
    for name, of in figures()["sets"].items():
        print(f"\n{name}")
        for tool in of["rates"]:
            print(f"  {titled(tool, name)}")
            for rate, found in rates_of(name, tool).items():
                print(f"    {rate:34s} {found}")
            if tool != own():
                print(f"    {own()} first: {against(name, tool)}")
    print("\nwhat is made of a lost run and its healthy twin")
    for what, told in figures()["formats"].items():
        print(f"  {what:36s} " + ", ".join(f"{tool} {outcome}" for tool, outcome in told.items()))


if __name__ == "__main__":
    sys.exit(main())
