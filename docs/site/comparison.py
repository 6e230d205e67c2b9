"""The comparison with other tools: figures as `make peers` recorded them, facts as `docs/figures/tools.yaml` has them.

The words stand in `comparison.txt`; no tool's name does, nor here: they come from the record, ours first.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from benchmarks import peers_table
from benchmarks.peers_table import against, cell, figures, markdown, own, rates_of, titled
from benchmarks.probes import ALWAYS, NAMED, REFUSED, SILENT
from docs.site.markup import text
from faultbench import archives, scoring
from faultbench.rates import chance_in_words
from stabtree.common.yaml12 import parse
from stabtree.report.markdown import table

if TYPE_CHECKING:
    from faultbench.rates import Rate

WORDS = Path(__file__).with_name("comparison.txt")
FACTS = peers_table.FIGURES.with_name("tools.yaml")
SIGNS = {"y": "●", "p": "◐", "n": "–"}
SEEN = {NAMED: "seen", SILENT: "silent", REFUSED: "–", ALWAYS: "alarm on both"}
TRAINERS = (scoring.FALSE_ALARMS, scoring.FOUND, scoring.FOUND_FIRST, scoring.NOT_READ)
PUBLIC = (scoring.COVERED, scoring.FALSE_ALARMS, scoring.RIGHT_ALARMS, scoring.FAILURES)
# The picture of a rate: a row a tool, the interval as a bar, in units of its own 420 columns.
WIDTH, LEFT, RIGHT, ROW, HEAD = 420, 120, 12, 32, 8


def facts() -> dict[str, Any]:
    """The facts about the tools, and the points.

    Raises:
        ValueError: They are not about the tools that were measured.
    """
    found: dict[str, Any] = parse(FACTS.read_text(encoding="utf-8"), FACTS.name).value
    if list(found["tools"]) != list(figures()["versions"]):
        msg = f"{FACTS.name} tells of other tools than {peers_table.FIGURES.name}"
        raise ValueError(msg)
    return found


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    rates, told = rates_of("dev", own()), facts()
    healthy, faulty = rates[scoring.FALSE_ALARMS].of, rates[scoring.MISSED].of
    words = Template(WORDS.read_text(encoding="utf-8")).substitute(
        own=own(),
        date=figures()["date"],
        tools=_tools(told),
        healthy=healthy,
        faulty=faulty,
        runs=healthy + faulty,
        pictures=_pictures(),
        dev=_rates("dev"),
        dev_pairs=_pairs("dev"),
        trainers=_rates("trainers", TRAINERS),
        trainers_pairs=_pairs("trainers"),
        public=_rates("public", PUBLIC),
        formats=_formats(),
        points=_points(told),
        better=_better(told),
    )
    return {"comparison.md": words, "faultbench.md": benchmark()}


def benchmark() -> str:
    """The benchmark's own README, in which the site has no page for what lies elsewhere in the repository."""
    words = (archives.HERE / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", words)


def _tools(told: dict[str, Any]) -> str:
    tools = told["tools"].items()
    rows = ([f"[{text(titled(name))}]({fact['home']})", text(fact["about"]), fact["licence"]] for name, fact in tools)
    return table(("tool", "what it is", "licence"), rows)


def _pictures() -> str:
    shown = (picture("dev", rate) for rate in (scoring.FALSE_ALARMS, scoring.MISSED))
    items = "\n".join(f":::{{grid-item}}\n{one}\n:::" for one in shown)
    return f"::::{{grid}} 1 1 2 2\n:gutter: 3\n\n{items}\n::::"


def in_two_lines(found: Rate) -> str:
    """A rate in a table: share and counts, the interval below."""
    low, high = (round(100 * end) for end in found.interval())
    return f"{found.share:.0%} · {found.hits}/{found.of}<br><small>{low} to {high}</small>" if found.of else "none"


def _rates(name: str, wanted: tuple[str, ...] = ()) -> str:
    return "\n".join(markdown(name, wanted, in_two_lines))


def _pairs(name: str) -> str:
    pairs = {tool: against(name, tool) for tool in figures()["sets"][name]["pairs"]}
    rows = ([titled(tool, name), *map(str, pair), chance_in_words(pair.chance)] for tool, pair in pairs.items())
    return table(("against", "both right", f"only {own()}", "only the other", "neither", "p (McNemar)"), rows)


def _formats() -> str:
    tools = list(figures()["versions"])
    rows = ([text(what), *(SEEN[told[tool]] for tool in tools)] for what, told in figures()["formats"].items())
    return table(("the log", *tools), rows)


def _points(told: dict[str, Any]) -> str:
    parts = []
    for heading, points in told["points"].items():
        rows = ([text(what), *(SIGNS[sign] for sign in signs)] for what, signs in points.items())
        parts.append(f"### {text(heading)}\n\n{table(('', *told['tools']), rows)}")
    return "\n\n".join(parts)


def _better(told: dict[str, Any]) -> str:
    parts = []
    for name, fact in told["tools"].items():
        if "better" in fact:
            parts.append(f"**{name}**\n\n" + "\n".join(f"- {text(item)}" for item in fact["better"]))
    return "\n\n".join(parts)


def picture(name: str, rate: str) -> str:
    """A rate of all tools as an inline picture, which takes the page's colours: a dot, and its 95% interval."""
    found = {tool: rates_of(name, tool)[rate] for tool in figures()["versions"]}
    top = max(high for _, high in (one.interval() for one in found.values()))
    height = HEAD + ROW * len(found) + 24

    def at(share: float) -> str:
        return f"{LEFT + share / top * (WIDTH - LEFT - RIGHT):.1f}"

    grid = [
        f'<line class="grid" x1="{at(share)}" x2="{at(share)}" y1="{HEAD}" y2="{height - 22}"/>'
        f'<text class="axis" x="{at(share)}" y="{height - 6}" text-anchor="middle">{share:.0%}</text>'
        for share in (0.0, 0.2, 0.4, 0.6, 0.8)
        if share <= top
    ]
    bars = []
    for place, (tool, one) in enumerate(found.items()):
        y, (low, high) = HEAD + ROW * place + ROW // 2, one.interval()
        kind = "own" if tool == own() else "other"
        bars.append(
            f'<text class="{kind}" x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{tool}</text>'
            f'<line class="bar {kind}" x1="{at(low)}" x2="{at(high)}" y1="{y}" y2="{y}"/>'
            f'<circle class="{kind}" cx="{at(one.share)}" cy="{y}" r="5"><title>{cell(one)}</title></circle>'
        )
    title = f"{rate.capitalize()}, with 95% intervals"
    return (
        f'<figure class="rates"><figcaption>{title}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}: the table below has the numbers">'
        f"{''.join(grid)}{''.join(bars)}</svg></figure>"
    )
