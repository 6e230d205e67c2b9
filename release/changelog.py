"""CHANGELOG.md: what is not released yet, what each release brought, and how the one becomes the other.

`python -m release.changelog VERSION` prints the notes of a release, as its page shows them.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = ROOT / "CHANGELOG.md"
UNRELEASED = "## Unreleased"
VERDICTS = "### Verdicts that changed"


class ChangelogError(ValueError):
    """The changelog does not hold what is asked of it."""


def section(text: str, title: str) -> str:
    """What stands below the heading that begins so, up to the next release's.

    Raises:
        ChangelogError: There is no such heading.
    """
    found = re.search(rf"^## {re.escape(title)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        msg = f"CHANGELOG.md has no section {title}"
        raise ChangelogError(msg)
    return found[1].strip()


def upcoming(text: str, version: str) -> str:
    """What a release brings: what is unreleased, and what its own candidates brought, heading by heading.

    Raises:
        ChangelogError: That is nothing, or the version has been released.
    """
    if re.search(rf"^## {re.escape(version)}(?: |$)", text, re.MULTILINE):
        msg = f"CHANGELOG.md has a section {version} already"
        raise ChangelogError(msg)
    new = section(text, "Unreleased")
    candidates = re.findall(rf"^## ({re.escape(version)}rc\d+)(?: |$)", text, re.MULTILINE)
    if candidates:
        new = _merged([new, *(section(text, candidate) for candidate in candidates)])
    if not new:
        msg = "nothing stands under Unreleased in CHANGELOG.md"
        raise ChangelogError(msg)
    return new


def _merged(notes: list[str]) -> str:
    """Notes as one, without the verdicts of each: these are told against the last release."""
    below: dict[str, list[str]] = {}
    for part in re.split(r"^(?=### )", "\n".join(notes), flags=re.MULTILINE):
        head, _, body = part.partition("\n") if part.startswith("### ") else ("", "", part)
        if head != VERDICTS and body.strip():
            below.setdefault(head, []).append(body.strip())
    return "\n\n".join("\n".join([head, *bodies]).strip() for head, bodies in below.items())


def released(text: str, version: str, date: str, verdicts: str) -> str:
    """The changelog with a release: what it brings stands under its version, with the verdicts that changed.

    Args:
        text: the changelog before.
        version: of the release; the sections of its candidates go into its own.
        date: its day, as YYYY-MM-DD.
        verdicts: Markdown of the verdicts that it gives otherwise than the release before.

    Raises:
        ChangelogError: It brings nothing, or the version has been released.
    """
    new = upcoming(text, version)
    head = text.partition(f"{UNRELEASED}\n")[0]
    older = "".join(
        part
        for part in re.split(r"^(?=## )", text.removeprefix(head), flags=re.MULTILINE)[1:]
        if not re.match(rf"## (?:Unreleased|{re.escape(version)}rc\d+)(?: |$)", part, re.MULTILINE)
    )
    parts = [UNRELEASED, f"## {version} - {date}", new, VERDICTS, verdicts.strip()]
    return head + "\n\n".join([*parts, older] if older else parts).rstrip("\n") + "\n"


def main() -> int:
    """Print the notes of a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="as 1.2.3")
    version = parser.parse_args().version
    try:
        print(section(CHANGELOG.read_text(encoding="utf-8"), version))
    except ChangelogError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
