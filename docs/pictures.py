"""Draw the pictures of the README: `python docs/pictures.py`.

The same log gives the same bytes, so a picture changes only where the screen does.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import stabtree
from stabtree.report.outputs import RenderOptions
from stabtree.report.screen import screen

ROOT = Path(__file__).resolve().parents[1]
SCREEN = ROOT / "docs" / "pictures" / "screen.svg"
RUN = ROOT / "fixtures" / "phase19" / "fp16-overflow"
COLUMNS = 80
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono"
NORMAL = [(30, 30, 46), (243, 97, 105), (63, 198, 138), (229, 192, 90)]
NORMAL += [(97, 160, 245), (200, 140, 230), (70, 190, 210), (214, 217, 224)]
THEME = TerminalTheme((23, 25, 30), (222, 225, 230), NORMAL)


def screen_svg() -> str:
    """The default screen of a failed run, in a terminal window that brings its own background."""
    told = screen(stabtree.diagnose(RUN), RenderOptions(width=COLUMNS, color=True, exit_code=1))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text.from_ansi(told.rstrip("\n")), soft_wrap=False)
    drawn = console.export_svg(title="stabtree fixtures/phase19/fp16-overflow", theme=THEME, unique_id="s")
    # A picture in a page loads no fonts; each stretch of letters has its length anyway.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL).replace("Fira Code", FONTS)
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines() if line.strip())


if __name__ == "__main__":
    SCREEN.parent.mkdir(exist_ok=True)
    SCREEN.write_text(screen_svg(), encoding="utf-8")
