"""The screen of a report as markup: what stabtree prints, in the colours of a terminal that brings its background."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from stabtree.judging.verdict import Outcome, exit_code, levels_of
from stabtree.report.outputs import CHECK, SCREEN, RenderOptions, output
from stabtree.report.page import STYLES
from stabtree.report.screen import screen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.color import Color

    from stabtree.diagnosis.result import Diagnosis

WIDE, NARROW = 80, 46  # columns: of a terminal, and of what a phone shows in letters that can be read
NORMAL = [(30, 30, 46), (243, 97, 105), (63, 198, 138), (229, 192, 90)]
NORMAL += [(97, 160, 245), (200, 140, 230), (70, 190, 210), (214, 217, 224)]
THEME = TerminalTheme((23, 25, 30), (222, 225, 230), NORMAL)
_DOTS = re.compile("[\u2800-\u28ff]+")


def terminal(found: Diagnosis, command: str, title: str) -> str:
    """A report in a terminal window, once for a wide and once for a narrow screen.

    Args:
        found: what is reported.
        command: what prints it; empty where no file holds the run.
        title: what the window is called where there is no command.
    """
    bar = f"<code>$ {escape(command)}</code>" if command else f"<span>{escape(title)}</span>"
    shown = [_pre(printed(found, width), width) for width in (WIDE, NARROW)]
    return f'<div class="term"><div class="term-bar"><i></i><i></i><i></i>{bar}</div>{"".join(shown)}</div>'


def printed(found: Diagnosis, width: int, *, color: bool = True) -> str:
    """What a command prints of it on a screen so many columns wide."""
    code = exit_code([found.verdict], levels_of(()))
    look = RenderOptions(width=width, color=color, exit_code=code)
    if found.before_run:
        return str(output(CHECK, SCREEN)([Outcome(found.run.sources[0].path, found)], look))
    return screen(found, look)


def _pre(ansi: str, width: int) -> str:
    lines = "\n".join("".join(_spans(line)) for line in Text.from_ansi(ansi.strip("\n")).split("\n", allow_blank=True))
    kind = "wide" if width == WIDE else "narrow"
    return f'<pre class="term-{kind}" tabindex="0" style="--columns:{width}">{lines}</pre>'


def _spans(line: Text) -> Iterator[str]:
    for text, style, _ in line.render(Console(width=1000)):
        told = _DOTS.sub(_aligned, escape(text, quote=False))
        names = " ".join(_names(style)) if style else ""
        yield f'<span class="{names}">{told}</span>' if names else told


def _aligned(dots: re.Match[str]) -> str:
    """Braille in a box as wide as it must be: where the font has none, another one's is of another width."""
    return f'<b class="dots" style="width:{len(dots[0])}ch">{dots[0]}</b>'


def _names(style: Style) -> Iterator[str]:
    if style.bold:
        yield "t-b"
    for color, kind in ((style.color, "t"), (style.bgcolor, "t-on")):
        if color is not None and color.number is not None:
            yield f"{kind}{color.number}"


def styles() -> str:
    """The rules of all colours that a screen has."""
    found: dict[str, str] = {}
    for style in map(Style.parse, STYLES.values()):
        for color, kind, what in ((style.color, "t", "color"), (style.bgcolor, "t-on", "background")):
            if color is not None and color.number is not None:
                found[f".term .{kind}{color.number}"] = f"{what}:{_shade(color)}"
    return "".join(f"{name}{{{rule}}}\n" for name, rule in sorted(found.items()))


def _shade(color: Color) -> str:
    return color.get_truecolor(THEME).hex
