"""Build the site: `python -m docs.site FOLDER`, its pages in `FOLDER/html`, what Sphinx read in `FOLDER/source`.

Its links are followed afterwards; the addresses of other hosts that it names are listed in `FOLDER/elsewhere.txt`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from docs.site.links import check
from docs.site.pages import lay_out


def main(folder: Path) -> int:
    """Lay out, build, follow the links; 0 where no warning was told and each leads somewhere."""
    began = time.perf_counter()
    lay_out(folder / "source")
    shutil.rmtree(folder / "html", ignore_errors=True)  # a page that is no more would be followed as well
    laid_out = time.perf_counter()
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto", "--doctree-dir", str(folder / "read")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(folder / "source"), str(folder / "html")], check=False
    ).returncode
    ended = time.perf_counter()
    told = check(folder / "html")
    (folder / "elsewhere.txt").write_text("".join(f"{address}\n" for address in told.elsewhere), encoding="utf-8")
    for line in told.broken:
        print(f"error: {line}", file=sys.stderr)
    print(f"{told.pages} pages: {laid_out - began:.0f} s to write, {ended - laid_out:.0f} s to build")
    print(
        f"{told.links} links: {len(told.broken)} broken, {len(told.elsewhere)} addresses of other hosts; "
        f"{time.perf_counter() - ended:.0f} s to follow"
    )
    print(folder / "html" / "index.html")
    return built or int(bool(told.broken))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
