"""CHANGELOG.md: what is not released yet, what each release brought, and how the one becomes the other.

`python -m release.changelog VERSION` prints the notes of a release, as its page shows them.
"""

from __future__ import annotations

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


def released(text: str, version: str, date: str, verdicts: str) -> str:
    """The changelog with a release: what was unreleased stands under its version, with the verdicts that changed.

    Args:
        text: the changelog before.
        version: of the release.
        date: its day, as YYYY-MM-DD.
        verdicts: Markdown of the verdicts that it gives otherwise than the release before.

    Raises:
        ChangelogError: Nothing is unreleased, or the version has been released.
    """
    if re.search(rf"^## {re.escape(version)}\b", text, re.MULTILINE):
        msg = f"CHANGELOG.md has a section {version} already"
        raise ChangelogError(msg)
    new = section(text, "Unreleased")
    if not new:
        msg = "nothing stands under Unreleased in CHANGELOG.md"
        raise ChangelogError(msg)
    head, _, rest = text.partition(f"{UNRELEASED}\n")
    older = rest[rest.index(new) + len(new) :].lstrip("\n")
    parts = [UNRELEASED, f"## {version} - {date}", new, VERDICTS, verdicts.strip()]
    return head + "\n\n".join([*parts, older] if older else parts).rstrip("\n") + "\n"


def main() -> int:
    """Print the notes of a release."""
    try:
        print(section(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1]))
    except ChangelogError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
