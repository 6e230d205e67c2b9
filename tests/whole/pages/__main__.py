"""Run the blocks of all written pages, or of some: `python -m tests.whole.pages [--write] [PAGE ...]`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.whole.pages.blocks import pages
from tests.whole.pages.running import Report, run_page


def count(reports: list[Report]) -> str:
    """How many blocks were run, by this or by tests of their own, and how many can't be."""
    left = [line for report in reports for line in report.left]
    elsewhere = sum(": run by " in line for line in left)
    here = sum(report.ran for report in reports)
    return f"{here + elsewhere} blocks run ({elsewhere} by tests of their own), {len(left) - elsewhere} not"


def main(arguments: list[str]) -> int:
    """Run them; 1 where a page is wrong, and with `--write` only where writing does not fix it."""
    write = "--write" in arguments
    named = [Path(name).resolve() for name in arguments if name != "--write"]
    reports = [run_page(page) for page in named or pages()]
    for report in reports:
        if write and report.text != report.page.read_text(encoding="utf-8"):
            report.page.write_text(report.text, encoding="utf-8")
            sys.stdout.write(f"{report.page}: written anew\n")
        for picture, drawn in report.pictures.items() if write else ():
            picture.write_bytes(drawn)
            sys.stdout.write(f"{picture}: drawn anew\n")
        for line in (*report.wrong, *report.left):
            sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{count(reports)}\n")
    return int(any(report.wrong for report in reports))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
