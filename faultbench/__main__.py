"""Unpack, verify, score, compare.

python -m faultbench unpack FOLDER                     the labelled runs, below FOLDER
python -m faultbench verify [FOLDER]                   nothing was changed, neither here nor there
python -m faultbench score SET PREDICTIONS [FOLDER]    SET is dev, trainers or public
python -m faultbench compare SET ONE OTHER [FOLDER]    two tools on the same runs
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from faultbench import archives, scoring
from faultbench.rates import pair


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; 1 where a file was changed or is missing."""
    parser = argparse.ArgumentParser(
        prog="faultbench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("unpack").add_argument("folder", type=Path)
    commands.add_parser("verify").add_argument("folder", type=Path, nargs="?")
    for name, files in (("score", 1), ("compare", 2)):
        command = commands.add_parser(name)
        command.add_argument("set", choices=scoring.SETS)
        command.add_argument("predictions", type=Path, nargs=files)
        command.add_argument("folder", type=Path, nargs="?", default=Path(), help="where the runs were unpacked")
        if name == "score":
            command.add_argument("--list", action="store_true", help="every run that was answered wrongly")
    options = parser.parse_args(arguments)
    try:
        return _do(options)
    except (archives.ChangedError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _do(options: argparse.Namespace) -> int:
    if options.command == "unpack":
        for name in archives.PACKED:
            print(archives.unpack(name, options.folder))
    elif options.command == "verify":
        print("as they were:", ", ".join(archives.check_sums()))
        for name in archives.PACKED if options.folder else ():
            print(f"{options.folder / name}: {archives.verify(name, options.folder)} files as they were")
    else:
        told = [json.loads(path.read_text(encoding="utf-8")) for path in options.predictions]
        scores = [scoring.score(options.set, options.folder, one) for one in told]
        if options.command == "compare":
            print(pair(scores[0].right, scores[1].right))
        else:
            _show(scores[0], listed=options.list)
    return 0


def _show(score: scoring.Score, *, listed: bool) -> None:
    print("95% intervals in per cent (Wilson)")
    for name, found in score.rates.items():
        print(f"{name:34s} {found}")
    for line in score.wrong if listed else ():
        print(line)


if __name__ == "__main__":
    sys.exit(main())
