"""A release in one command: `make release VERSION=1.2.3`, or `python -m release 1.2.3`.

In a clean checkout of main it writes the version where it stands, measures all figures, records the verdicts, dates the
changelog with those that changed, runs the checks, builds, commits and tags. It pushes nothing: the last lines say what
to push. Where a step fails, the files are as they were before.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import verdicts
from release.changelog import CHANGELOG, ChangelogError, released, upcoming

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:rc[1-9]\d*)?")
HOME = ROOT / "stabtree" / "_version.py"
CITATION = ROOT / "CITATION.cff"
BRANCH = "main"
# What must hold before a release is tagged; each is a command of the checkout.
CHECKS = (("make", "test"), ("make", "test-floors"), ("make", "docs"))


class ReleaseError(Exception):
    """A release can't be made as asked."""


def ready(version: str) -> None:
    """See that this version can be released from what is checked out.

    Raises:
        ReleaseError: It is no version, not a later one, or the checkout is not as it is committed on main.
        ChangelogError: The changelog says nothing of it, or has it already.
    """
    if not VERSION.fullmatch(version):
        msg = f"{version!r} is no version: 1.2.3, or 1.2.3rc1 for a candidate"
        raise ReleaseError(msg)
    tagged = [tag[1:] for tag in _git("tag", "--list", "v*").split() if VERSION.fullmatch(tag[1:])]
    later = [tag for tag in tagged if verdicts.order(tag) >= verdicts.order(version)]
    if later:
        msg = f"{version} does not come after {max(later, key=verdicts.order)}, which is tagged"
        raise ReleaseError(msg)
    branch = _git("branch", "--show-current").strip()
    if branch != BRANCH:
        msg = f"this is {branch or 'no branch'}: releases are made on {BRANCH}"
        raise ReleaseError(msg)
    if _git("status", "--porcelain"):
        msg = "there are changes that are not committed"
        raise ReleaseError(msg)
    upcoming(CHANGELOG.read_text(encoding="utf-8"), version)


def bumped(version: str, date: str) -> dict[Path, str]:
    """The files that state the version, as they are from now on."""
    home = re.sub(r'(?m)^__version__ = ".*"$', f'__version__ = "{version}"', HOME.read_text(encoding="utf-8"))
    cited = re.sub(r"(?m)^version: .*$", f"version: {version}", CITATION.read_text(encoding="utf-8"))
    cited = re.sub(r"(?m)^date-released: .*\n", "", cited).rstrip("\n") + f"\ndate-released: {date}\n"
    return {HOME: home, CITATION: cited}


def make(version: str, date: str) -> None:
    """Make the release; where a step fails, undo what was written.

    Raises:
        ReleaseError: It can't be made, or a step failed.
        ChangelogError: The changelog says nothing of it, or has it already.
    """
    ready(version)
    record, before = verdicts.RECORDS / f"{version}.json", _git("rev-parse", "HEAD").strip()
    try:
        for file, text in bumped(version, date).items():
            _write(file, text)
        _run(sys.executable, "-m", "benchmarks.gates", "--record", version)
        changed = verdicts.changes(verdicts.last(before=version), verdicts.read(record))
        _write(CHANGELOG, released(CHANGELOG.read_text(encoding="utf-8"), version, date, changed))
        for check in CHECKS:
            _run(*check)
        with tempfile.TemporaryDirectory() as scratch:
            _run(sys.executable, "-m", "release.dist", str(Path(scratch) / "dist"), "--install")
        _git("add", "--", *(str(file) for file in (HOME, CITATION, CHANGELOG, record)))
        _git("commit", "--quiet", "--message", f"stabtree {version}")
        _git("tag", "--annotate", f"v{version}", "--message", f"stabtree {version}")
    except BaseException:
        # The checkout was clean: what is different now was written here.
        _git("reset", "--quiet", "--hard", before)
        _git("clean", "--quiet", "--force", "--", str(verdicts.RECORDS))
        raise


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="\n")


def _run(*command: str) -> None:
    """Run a step of the release, whose output is seen."""
    print(f"\n$ {' '.join(command)}", flush=True)
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        msg = f"{' '.join(command)} failed: nothing is released"
        raise ReleaseError(msg)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        msg = f"git {words[0]} failed: {done.stderr.strip()}"
        raise ReleaseError(msg)
    return done.stdout


def main() -> int:
    """Make a release; 1 where it could not be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="as 1.2.3, or 1.2.3rc1")
    version = parser.parse_args().version
    try:
        make(version, datetime.now(UTC).date().isoformat())
    except (ReleaseError, ChangelogError) as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"\nstabtree {version} is committed and tagged. To publish it:\n  git push --atomic origin {BRANCH} v{version}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
