"""A run for each failure, from the fixtures or the made runs of the tests, with its curves and its report as HTML."""

from __future__ import annotations

import io
import re
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from docs.pictures import COLUMNS, ROOT, THEME
from docs.site.markup import shipped
from stabtree.diagnosis.walk import diagnose
from stabtree.judging.verdict import exit_code, levels_of
from stabtree.loaders import load_run
from stabtree.report import svg
from stabtree.report.outputs import RenderOptions
from stabtree.report.plot import figure
from stabtree.report.screen import screen
from stabtree.tree.load import load_trees
from tests.leaves import NEAR, RUNS, errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.diagnosis.result import Diagnosis, Incident, Visit
    from stabtree.report.plot import Figure
    from stabtree.tree.model import Leaf
    from tests.leaves.make import Maker

APPLIED = {"nan-structural": ("Q1.4",)}  # it is what is left once the fixes of the others were applied
FINE, COARSE = 200, 96  # points of a curve: on a page of its own, and smaller
ON_PAGE, ON_CARD = 3, 2  # curves
HASHES = "batch_id"  # numbers without a course
WORDS = re.compile(r'<(text|title|desc)\b.*?</\1>|<(?:path class="(?:grid|cross)"|rect class="back")[^>]*/>', re.DOTALL)
STYLE = re.compile("<style>.*?</style>", re.DOTALL)


class Example(Struct, frozen=True):
    """A run that ends at a failure.

    Attributes:
        leaf: the failure.
        diagnosis: what is found in the run.
        command: what prints the report; empty if the run is in no file.
        is_log: whether it is a text log, of which a message tells and no curve.
    """

    leaf: Leaf
    diagnosis: Diagnosis
    command: str = ""
    is_log: bool = False

    @property
    def main(self) -> Incident | None:
        """The finding under which the report describes the failure."""
        findings = self.diagnosis.findings
        return next((item for item in findings if self.leaf.id in (part.leaf.id for part in item.parts)), None)

    @property
    def finding(self) -> Incident | None:
        """The failure's own finding, which may be a part of another one; None if all is well."""
        return next((part for part in self.main.parts if part.leaf.id == self.leaf.id), None) if self.main else None

    @property
    def visits(self) -> tuple[Visit, ...]:
        """The walk that ends there; the path if none does, as after fixes that did not help."""
        walks = (self.diagnosis.path, *self.diagnosis.further)
        return next((visits for visits in walks if visits[-1].target == self.leaf.id), self.diagnosis.path)


@cache
def examples() -> Mapping[str, Example]:
    """Return the run of every failure that has one, by the failure's id."""
    folders = {path.parent.name: path.parent for path in sorted((ROOT / "fixtures").glob("*/*/manifest.json"))}
    made: dict[str, Example] = {}
    for leaf in (leaf for leaf in shipped().leaves.values() if leaf.page):
        if leaf.id in RUNS:
            is_log = leaf.id in errors.RUNS
            made[leaf.id] = Example(leaf, _diagnosed(RUNS[leaf.id], "train" if is_log else leaf.id), is_log=is_log)
        elif leaf.id in folders:
            path, applied, run = folders[leaf.id], APPLIED.get(leaf.id, ()), load_run(folders[leaf.id])
            options = "".join(f" --applied {id_}" for id_ in applied)
            command = f"stabtree diagnose {path.relative_to(ROOT).as_posix()}{options}"
            made[leaf.id] = Example(leaf, diagnose(run, load_trees(run), applied=applied), command)
    return made


def _diagnosed(maker: Maker, name: str = "") -> Diagnosis:
    made = maker()
    run, options = made if isinstance(made, tuple) else (made, {})
    return diagnose(replace(run, name=name or run.name), load_trees(run), **options)


def near(leaf: Leaf) -> Mapping[str, Diagnosis]:
    """Return what is found in the runs that lack one thing of a failure, by what they lack."""
    makers = {name.partition(": ")[2]: maker for name, maker in NEAR.items() if name.partition(":")[0] == leaf.id}
    return {bar: _diagnosed(maker) for bar, maker in makers.items()}


def curves(example: Example, columns: int = FINE) -> str:
    """Return the curves of a run as a picture; an empty string if there is nothing to draw."""
    drawn = _figure(example, columns, ON_PAGE)
    return STYLE.sub("", svg.svg(drawn)) if drawn else ""


def thumbnail(example: Example) -> str:
    """Return the loss and what tells of the failure, without words and margins, to be stretched to any shape."""
    drawn = _figure(example, COARSE, ON_CARD)
    if drawn is None:
        return ""
    picture = STYLE.sub("", WORDS.sub("", svg.svg(drawn))).replace("\n", "")
    tops = [float(y) for y in re.findall(r'class="frame" x="[^"]*" y="([^"]*)"', picture)]
    size = f'viewBox="{svg.LEFT} {tops[0]:g} {svg.PLOT} {tops[-1] + svg.STRIP - tops[0]:g}" preserveAspectRatio="none"'
    picture = re.sub(r'role="img" viewBox="[^"]*" width="\d+" height="\d+"', f'aria-hidden="true" {size}', picture)
    return f'{picture}<span class="names">{" · ".join(strip.metric for strip in drawn.strips)}</span>'


def _figure(example: Example, columns: int, most: int) -> Figure | None:
    """Return the figure of the report that describes the failure: the loss, what tells of it, the restart."""
    finding = example.finding
    if finding and example.main:
        finding = replace(finding, restart=example.main.restart)
    drawn = None if example.is_log else figure(example.diagnosis, finding, columns)
    telling = ["loss", *(item.metric for item in example.visits[-1].answer.evidence)]
    ranks = {name: place for place, name in reversed([*enumerate(telling)])}
    shown = (strip for strip in (drawn.strips if drawn else ()) if strip.metric != HASHES)
    strips = sorted(shown, key=lambda strip: ranks.get(strip.metric, len(ranks)))[:most]
    return replace(drawn, strips=tuple(strips)) if drawn else None


def terminal(example: Example) -> str:
    """Return the report of a run as a terminal shows it; dots get the width they need, which not every font has."""
    console = Console(record=True, width=1000, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    exits_with = exit_code([example.diagnosis.verdict], levels_of(()))
    printed = screen(example.diagnosis, RenderOptions(width=COLUMNS, color=True, exit_code=exits_with))
    console.print(Text.from_ansi(printed.strip("\n")), soft_wrap=True)
    shown = console.export_html(theme=THEME, inline_styles=True, code_format="{code}").rstrip()
    shown = re.sub("[\u2800-\u28ff]+", lambda dots: f'<b style="width:{len(dots[0])}ch">{dots[0]}</b>', shown)
    command = f"$ {example.command}\n" if example.command else ""
    return f'<div class="terminal dark"><pre tabindex="0">{command}{shown}</pre></div>'
