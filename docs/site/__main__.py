"""Build the site: `python -m docs.site FOLDER`, its pages in `FOLDER/html`, what Sphinx reads in `FOLDER/source`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from docs.site import comparison, failures, lookup, nodes, reference
from docs.site.links import check
from docs.site.markup import address, shipped

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
LINK = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)")
WRITTEN = ("*.md", "*.html", "*.py", "*.css", "*.js", "*.svg", "*.png", "*.yaml", "*.sh")
MAKERS = (failures, nodes, lookup, comparison, reference)


def lay_out(folder: Path) -> None:
    """Write all pages into a folder, which is emptied before: the written ones, then those made of trees and code.

    Raises:
        FileExistsError: if two pages have one path.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for file in sorted(path for pattern in WRITTEN for path in DOCS.rglob(pattern)):
        path = file.relative_to(DOCS)
        if path.parts[0] not in ("site", "figures"):
            _write(folder / path, outward(file).encode() if file.suffix == ".md" else file.read_bytes())
    for maker in MAKERS:
        for name, content in maker.pages().items():
            _write(folder / name, content.encode())


def outward(page: Path) -> str:
    """Return a page in which links to files outside of `docs/`, which are no pages, lead to the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def target(link: re.Match[str]) -> str:
        file = (page.parent / link[1]).resolve()
        outside = file.exists() and not file.is_relative_to(DOCS) and file.is_relative_to(ROOT)
        return f"{project['urls']['Source']}/blob/main/{file.relative_to(ROOT).as_posix()}" if outside else link[1]

    return LINK.sub(target, page.read_text(encoding="utf-8"))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as stream:
        stream.write(content)


def main(folder: Path) -> int:
    """Lay out, build, follow the links; return 0 if there was no warning and every link leads somewhere."""
    began = time.perf_counter()
    lay_out(folder / "source")
    shutil.rmtree(folder / "html", ignore_errors=True)  # a page that is no more would be followed as well
    written = time.perf_counter()
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto", "--doctree-dir", str(folder / "read")]
    command = [sys.executable, "-m", "sphinx", *options, str(folder / "source"), str(folder / "html")]
    built = subprocess.run(command, check=False).returncode
    ended = time.perf_counter()
    leaves = tuple(address(leaf) for leaf in shipped().leaves.values() if leaf.page)
    pages, links, broken = check(folder / "html", leaves)
    for line in broken:
        print(f"error: {line}", file=sys.stderr)
    seconds = f"{written - began:.0f} s to write, {ended - written:.0f} s to build, {time.perf_counter() - ended:.0f} s"
    print(f"{pages} pages, {links} links, {len(broken)} broken: {seconds} to follow")
    print(folder / "html" / "index.html")
    return built or int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
