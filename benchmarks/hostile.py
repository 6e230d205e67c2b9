"""What `stabtree diagnose` says of inputs made to break it: `python benchmarks/hostile.py DIR`.

Prints a line for each file: its exit code, the CPU seconds of the whole process and the first line that it prints.
A tree (`NAME.yaml`) is used on the log of the same name; shell scripts and notes are left out.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

TIMEOUT = 60.0  # seconds of CPU, after which the process is killed
NO_INPUTS = (".md", ".sh", ".yaml", ".yml")


def main() -> None:
    """Print the table."""
    if len(sys.argv) != 2 or not (folder := Path(sys.argv[1])).is_dir():
        sys.exit("usage: python benchmarks/hostile.py DIR")
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix not in NO_INPUTS)
    width = max(len(path.name) for path in files)
    print(f"{'input':{width}}  exit  CPU s  what it says")
    for path in files:
        tree = path.with_suffix(".yaml")
        code, seconds, said = run([str(path), *(("--tree", str(tree)) if tree.is_file() else ())])
        print(f"{path.name:{width}}  {code:4}  {seconds:5.2f}  {said[:120]}", flush=True)


def run(arguments: list[str]) -> tuple[int, float, str]:
    """The exit code of `stabtree diagnose`, its CPU seconds and the line of it that says most."""
    before = os.times()
    process = subprocess.run(
        [sys.executable, "-m", "stabtree", "diagnose", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(TIMEOUT), int(TIMEOUT))),
    )
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    error = process.stderr.strip().splitlines()
    told = [line for line in process.stdout.splitlines() if line.strip()]
    if "Traceback" in process.stderr:
        return process.returncode, seconds, f"TRACEBACK {error[-1]}"
    if process.returncode < 0:
        return process.returncode, seconds, f"KILLED by signal {-process.returncode}"
    said = " ".join(" ".join(told[:2]).split()) if told else " ".join(error)
    return process.returncode, seconds, said + (f"  [stderr: {error[0]}]" if told and error else "")


if __name__ == "__main__":
    main()
