"""Draw the diagrams of the explanation pages: `python -m docs.diagrams`.

Narrow, so that they are read on a phone as well; each brings its own background and follows light and dark. The same
code gives the same bytes, and a test holds the files in `docs/pictures/` to it.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.literal import simulated
from stabtree.report.svg import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).with_name("pictures")
WIDTH = 480
SEED = 23  # chance makes two steps so high, which is as many as are to be expected
COLOURS = ("ink", "soft", "grid", "curve", "bad", "good")
FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif"


def _colours(theme: dict[str, str]) -> str:
    fills = "".join(f".{name}{{fill:{theme[name]}}}.s-{name}{{stroke:{theme[name]}}}" for name in COLOURS)
    return f".back{{fill:{theme['frame']}}}.box{{fill:{theme['back']};stroke:{theme['grid']}}}{fills}"


STYLE = (
    f"text{{font:14px {FONTS}}}.b{{font-weight:600}}.small{{font-size:12.5px}}.line{{fill:none;stroke-width:1.6}}"
    f".thin{{fill:none;stroke-width:1}}.dash{{stroke-dasharray:4 3}}{_colours(LIGHT)}"
    f"@media(prefers-color-scheme:dark){{{_colours(DARK)}}}"
)


def drawing(height: int, title: str, parts: Iterable[str]) -> str:
    """A picture on a card of its own."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img"><title>{escape(title)}</title><style>{STYLE}</style>\n'
        f'<rect class="back" width="{WIDTH}" height="{height}" rx="10"/>\n{body}\n</svg>\n'
    )


def text(x: float, y: float, words: str, style: str = "ink", anchor: str = "start") -> str:
    """A line of text, its baseline at y."""
    return f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, *lines: str, style: str = "ink") -> str:
    """A box with centred lines, the first of them strong."""
    first = y + height / 2 + 5 - 9 * (len(lines) - 1)
    styles = [f"{style} b", *["soft small"] * (len(lines) - 1)]
    rows = [text(x + width / 2, first + 18 * at, words, styles[at], "middle") for at, words in enumerate(lines)]
    return f'<rect class="box" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7"/>' + "".join(rows)


def line(*points: tuple[float, float], style: str = "s-soft line") -> str:
    """A line through points."""
    return f'<polyline class="{style}" points="{" ".join(f"{x:g},{y:g}" for x, y in points)}"/>'


def arrow(*points: tuple[float, float], colour: str = "soft") -> str:
    """A line that ends in a head; its last stretch is level or upright."""
    (x0, y0), (x, y) = points[-2:]
    way = (np.sign(x - x0), np.sign(y - y0))
    back = (x - 8 * way[0], y - 8 * way[1])
    wings = [(back[0] + sign * 4.5 * way[1], back[1] + sign * 4.5 * way[0]) for sign in (1, -1)]
    head = " ".join(f"{a:g},{b:g}" for a, b in ((x, y), *wings))
    return line(*points[:-1], back, style=f"s-{colour} line") + f'<polygon class="{colour}" points="{head}"/>'


def dot(x: float, y: float, colour: str, radius: float = 4) -> str:
    """A filled circle."""
    return f'<circle class="{colour}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>'


def three_values() -> str:
    """What becomes of yes, no and unknown."""
    parts = [box(140, 18, 200, 48, "a question", "loss NaN or inf?")]
    for x, answer, colour, what in (
        (16, "yes", "bad", ("a finding", "with evidence")),
        (174, "no", "good", ("the next one", "with evidence")),
        (332, "unknown", "soft", ("not checked", "with what to log")),
    ):
        parts += [arrow((x + 66, 118), (x + 66, 150), colour=colour), box(x, 150, 132, 54, *what)]
        parts += [text(x + 66, 112, answer, f"{colour} b", "middle")]
    parts += [line((240, 66), (240, 96)), line((82, 96), (82, 82), (398, 82), (398, 96))]
    parts += [arrow((82, 204), (82, 250), colour="bad"), box(16, 250, 132, 54, "critical", "exit 1", style="bad")]
    parts += [arrow((240, 204), (240, 250), colour="good"), box(174, 250, 132, 54, "ok", "exit 0", style="good")]
    parts += [arrow((398, 204), (398, 250)), box(332, 250, 132, 54, "NOT JUDGED", "exit 3")]
    parts += [text(240, 330, "No question left, and every section had an answer: ok.", "soft small", "middle")]
    parts += [text(240, 348, "A section without one, and nothing found elsewhere: not judged.", "soft small", "middle")]
    return drawing(364, "Three answers and what becomes of them", parts)


def guarded() -> str:
    """A healthy loss with the steps that the rule marks by its letter."""
    loss = simulated(SEED, 2000).series["loss"].values
    before = np.lib.stride_tricks.sliding_window_view(loss[:-1], 100)
    high = 100 + np.flatnonzero(loss[100:] > before.mean(axis=1) + 3 * before.std(axis=1))
    left, right, top, bottom = 44, 464, 54, 236
    at = left + (right - left) * np.arange(len(loss)) / len(loss)
    level = bottom - (bottom - top) * (loss - 0.3) / 2.9
    strips = [(at[i], level[i : i + 5].min(), level[i : i + 5].max()) for i in range(0, len(loss), 5)]
    path = "".join(f"M{x:.1f} {up:.1f}V{down + 0.6:.1f}" for x, up, down in strips)
    parts = [text(16, 28, "A healthy loss with ordinary noise", "ink b")]
    parts += [line((left, top), (left, bottom), (right, bottom), style="s-grid line")]
    parts += [text(left - 6, top + 6, "3", "soft small", "end"), text(left - 6, bottom, "0.3", "soft small", "end")]
    parts += [f'<path class="s-curve line" d="{path}"/>', *(dot(at[i], level[i], "bad", 4.5) for i in high)]
    parts += [text(right, bottom + 18, "step 2,000", "soft small", "end"), text(left, bottom + 18, "0", "soft small")]
    parts += [dot(150, 82, "bad", 4.5), text(162, 87, f"by the letter: {len(high)} spikes above μ + 3σ", "ink small")]
    parts += [text(162, 108, "with guards: none; chance expects as many", "ink small")]
    return drawing(268, "What the letter of the rule marks in a healthy loss", parts)


def one_event() -> str:
    """Four signs of one overflow on one axis, and the one finding that is told."""
    signs = ((676, "grad_norm not finite"), (677, "loss_scale falls"), (730, "loss NaN"), (750, "eval_loss NaN"))
    left, right = 40, 440

    def at(step: float) -> float:
        return left + (right - left) * (step - 590) / 200

    parts = [text(16, 28, "What the log shows", "ink b")]
    for row, (step, words) in enumerate(signs):
        y = 58 + 30 * row
        parts += [line((left, y), (right, y), style="s-grid thin"), line((at(step), y), (right, y), style="s-bad line")]
        parts += [dot(at(step), y, "bad"), text(at(step) - 9, y - 5, f"{step}  {words}", "ink small", "end")]
    parts += [line((at(676), 48), (at(676), 182), style="s-bad thin dash")]
    parts += [line((left, 182), (right, 182)), dot(at(600), 182, "good", 5)]
    parts += [text(at(600) - 6, 204, "600: take this one", "good small b")]
    parts += [text(at(676) - 10, 204, "676: it begins", "bad small b")]
    told = ("one finding: the run overflowed in fp16", "restart from 600, before step 676")
    parts += [text(16, 246, "What is told", "ink b"), box(16, 258, 448, 54, *told, style="bad")]
    return drawing(330, "Four signs of one event", parts)


def restart() -> str:
    """Which of a row of checkpoints is taken."""
    left, right, y = 30, 450, 118

    def at(step: float) -> float:
        return left + (right - left) * (step - 350) / 500

    lost = f'x="{at(706):g}" y="58" width="{right - at(706):g}" height="84"'
    parts = [text(16, 28, "A checkpoint every 100 steps; the loss goes NaN at 706", "ink b")]
    parts += [f'<rect class="bad" opacity="0.14" {lost} rx="4"/>', line((left, y), (right, y))]
    parts += [
        line((at(706), 52), (at(706), 142), style="s-bad line"),
        text(at(706) + 6, 52, "706: onset", "bad small b"),
    ]
    for step, colour in ((400, "soft"), (500, "soft"), (600, "good"), (700, "bad"), (800, "bad")):
        aside = 10 if step == 700 else 0
        parts += [dot(at(step), y, colour, 6), text(at(step) - aside, y + 24, f"{step}", "ink small", "middle")]
    parts += [arrow((at(600), 76), (at(600), 108), colour="good"), text(at(600), 70, "taken", "good b", "middle")]
    for row, (which, colour, why) in enumerate(
        (
            ("400, 500", "ink", "sound, and older than need be"),
            ("600", "good", "the newest that is sound: restart here"),
            ("700", "bad", "six steps before the NaN: passed over"),
            ("800", "bad", "written during the failure: spoilt"),
        )
    ):
        parts += [text(16, 178 + 22 * row, which, f"{colour} small b"), text(100, 178 + 22 * row, why, "soft small")]
    return drawing(262, "Which checkpoint is taken", parts)


def resume() -> str:
    """The steps of a resumed log by its rows."""
    left, right, top, bottom = 52, 452, 50, 206

    def at(row: float, step: float) -> tuple[float, float]:
        return left + (right - left) * row / 1100, bottom - (bottom - top) * step / 900

    parts = [text(16, 28, "Steps in the order of the rows", "ink b")]
    parts += [line((left, top - 6), (left, bottom), (right, bottom), style="s-grid line")]
    parts += [line(at(0, 0), at(400, 400), style="s-curve line")]
    parts += [line(at(400, 400), at(600, 600), style="s-bad line dash")]
    parts += [line(at(600, 600), at(600, 400), style="s-soft thin dash")]
    parts += [line(at(600, 400), at(1100, 900), style="s-curve line"), dot(*at(600, 400), "curve")]
    parts += [text(left - 6, at(0, step)[1] + 5, str(step), "soft small", "end") for step in (0, 400, 600, 900)]
    parts += [text(at(360, 0)[0], at(0, 600)[1] - 12, "written again, counts no more", "bad small", "middle")]
    parts += [text(at(625, 0)[0], at(0, 370)[1] + 8, "resumed at 400", "ink small")]
    parts += [text(right, bottom + 18, "row 1,100", "soft small", "end"), text(left, bottom + 18, "0", "soft small")]
    return drawing(236, "A resume", parts)


DIAGRAMS = {
    "three-values": three_values,
    "guarded": guarded,
    "one-event": one_event,
    "restart": restart,
    "resume": resume,
}


def main() -> None:
    """Write all of them."""
    for name, draw in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
