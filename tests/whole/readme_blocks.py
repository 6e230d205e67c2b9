"""The command blocks of the README: run them, compare them, write their output back.

`python -m tests.whole.readme_blocks` rewrites the output of every console block with what the commands print now, and
draws the picture of the first one again.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """The texts of all fenced blocks of a language."""
    return [text for name, text in BLOCK.findall(README.read_text(encoding="utf-8")) if name == language]


def rerun(block: str) -> str:
    """A console block with the output that its commands print now, 80 columns wide."""
    lines: list[str] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            lines.append(line)
            lines += shell(line[2:]).splitlines()
    return "\n".join(lines) + "\n"


def shell(command: str) -> str:
    """What a command prints, run in the project's folder with this interpreter's scripts first on the path."""
    env = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    env |= {"COLUMNS": "80", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=env, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    return done.stdout + done.stderr


def main() -> None:
    """Rewrite the README's console blocks, and its picture."""
    text = README.read_text(encoding="utf-8")
    for block in blocks("console"):
        text = text.replace(block, rerun(block))
    README.write_text(text, encoding="utf-8")
    runpy.run_path(str(ROOT / "docs" / "pictures.py"), run_name="__main__")


if __name__ == "__main__":
    main()
