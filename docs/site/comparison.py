"""The comparison with other tools: figures as `make peers` recorded them, facts as `docs/figures/tools.yaml` has them.

The words are in `comparison.txt`, without any tool's name: these come from the record, ours first.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from benchmarks import peers_table
from benchmarks.peers_table import against, figures, markdown, own, rates_of, titled
from benchmarks.probes import ALWAYS, NAMED, REFUSED, SILENT
from docs.site.markup import listed, part, table, text
from faultbench import archives, scoring
from faultbench.rates import chance_in_words
from stabtree.common.yaml12 import parse

if TYPE_CHECKING:
    from faultbench.rates import Rate

WORDS = Path(__file__).with_name("comparison.txt")
FACTS = peers_table.FIGURES.with_name("tools.yaml")
SIGNS = {"y": "●", "p": "◐", "n": "–"}
SEEN = {NAMED: "seen", SILENT: "silent", REFUSED: "–", ALWAYS: "alarm on both"}
TRAINERS = (scoring.FALSE_ALARMS, scoring.FOUND, scoring.FOUND_FIRST, scoring.NOT_READ)
PUBLIC = (scoring.COVERED, scoring.FALSE_ALARMS, scoring.RIGHT_ALARMS, scoring.FAILURES)


def facts() -> dict[str, Any]:
    """Return the facts about the tools, and the points.

    Raises:
        ValueError: if they are not about the tools that were measured.
    """
    facts: dict[str, Any] = parse(FACTS.read_text(encoding="utf-8"), FACTS.name).value
    if list(facts["tools"]) != list(figures()["versions"]):
        msg = f"{FACTS.name} has other tools than {peers_table.FIGURES.name}"
        raise ValueError(msg)
    return facts


def pages() -> dict[str, str]:
    """Return the content of each page by its path; the second is the benchmark's own README."""
    rates, tools = rates_of("dev", own()), facts()["tools"]
    healthy, faulty = rates[scoring.FALSE_ALARMS].of, rates[scoring.MISSED].of
    about = (
        [f"[{text(titled(name))}]({fact['home']})", text(fact["about"]), fact["licence"]]
        for name, fact in tools.items()
    )
    formats = ([text(what), *(SEEN[seen[tool]] for tool in tools)] for what, seen in figures()["formats"].items())
    points = (
        part(
            text(heading),
            table(("point", *tools), ([text(what), *(SIGNS[sign] for sign in signs)] for what, signs in rows.items())),
            level=3,
        )
        for heading, rows in facts()["points"].items()
    )
    better = (
        part(name, listed(map(text, fact["better"])), level=0) for name, fact in tools.items() if "better" in fact
    )
    words = Template(WORDS.read_text(encoding="utf-8")).substitute(
        own=own(),
        date=figures()["date"],
        tools=table(("tool", "what it is", "licence"), about),
        healthy=healthy,
        faulty=faulty,
        runs=healthy + faulty,
        dev=_rates("dev"),
        dev_pairs=_pairs("dev"),
        trainers=_rates("trainers", TRAINERS),
        trainers_pairs=_pairs("trainers"),
        public=_rates("public", PUBLIC),
        formats=table(("the log", *tools), formats),
        points="\n\n".join(points),
        better="\n\n".join(better),
    )
    readme = (archives.HERE / "README.md").read_text(encoding="utf-8")
    return {"comparison.md": words, "faultbench.md": re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", readme)}


def in_two_lines(rate: Rate) -> str:
    """Return a rate in a table: share and counts, the interval below."""
    low, high = (round(100 * end) for end in rate.interval())
    return f"{rate.share:.0%} · {rate.hits}/{rate.of}<br><small>{low} to {high}</small>" if rate.of else "none"


def _rates(name: str, wanted: tuple[str, ...] = ()) -> str:
    return "\n".join(markdown(name, wanted, in_two_lines))


def _pairs(name: str) -> str:
    pairs = {tool: against(name, tool) for tool in figures()["sets"][name]["pairs"]}
    rows = ([titled(tool, name), *map(str, pair), chance_in_words(pair.chance)] for tool, pair in pairs.items())
    return table(("against", "both right", f"only {own()}", "only the other", "neither", "p (McNemar)"), rows)
