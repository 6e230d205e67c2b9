"""Build the site: `python -m docs.site FOLDER`, its pages in `FOLDER/html`, what Sphinx read in `FOLDER/source`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from docs.site.pages import lay_out


def main(folder: Path) -> int:
    """Lay out, build; 0 where no warning was told."""
    began = time.perf_counter()
    pages = lay_out(folder / "source")
    laid_out = time.perf_counter()
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto", "--doctree-dir", str(folder / "read")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(folder / "source"), str(folder / "html")], check=False
    ).returncode
    ended = time.perf_counter()
    print(f"{pages} pages: {laid_out - began:.0f} s to write, {ended - laid_out:.0f} s to build")
    print(folder / "html" / "index.html")
    return built


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
