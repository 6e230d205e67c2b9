"""A page for each metric: what it is, how to log it, under which names it is found, who reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site.logging_lines import LINES, TRAINERS
from docs.site.markup import METRIC_PAGES, code, known, text, to
from docs.site.prose import badge, console, listed, page, part, prose, table
from docs.site.reading import asking, read_by, told
from stabtree.common.answer import NO, UNKNOWN
from stabtree.metrics.table import all_metrics
from stabtree.tree.load import file_of
from stabtree.tree.model import NOTHING, Question

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docs.site.reading import Asked
    from stabtree.metrics.metric import Metric
    from stabtree.tree.model import Leaf

ABOUT = (
    "A metric is a series that stabtree knows by name. A log is read under whatever names its trainer uses; each page "
    "lists them, says how to log the metric, and which questions and findings want it. Log the first six, and most "
    "questions have an answer."
)


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    readers = _readers()
    made = {metric.name: _page(metric, readers[metric.name]) for metric in all_metrics()}
    rows = [
        (
            f"[{code(metric.name)}]({file_of(metric.name)}.md)",
            prose(metric.meaning),
            str(len(readers[metric.name])),
        )
        for metric in all_metrics()
    ]
    index = page("The metrics", ABOUT, table(("metric", "what it is", "read by"), rows), listed_elsewhere=False)
    return {f"{METRIC_PAGES}/{file_of(name)}.md": content for name, content in {**made, "index": index}.items()}


def _readers() -> dict[str, list[tuple[Asked, bool]]]:
    """Who reads a metric, and whether it can't answer without, by the metric's name."""
    found: dict[str, list[tuple[Asked, bool]]] = {metric.name: [] for metric in all_metrics()}
    for asked in asking():
        for name, needed in read_by(asked.node).items():
            found[name.split("/", maxsplit=1)[0]].append((asked, needed))
    return found


def _page(metric: Metric, readers: list[tuple[Asked, bool]]) -> str:
    questions = [(asked, needed) for asked, needed in readers if isinstance(asked.node, Question)]
    causes = [(asked, needed) for asked, needed in readers if not isinstance(asked.node, Question)]
    needing = [asked.node for asked, needed in questions if needed and isinstance(asked.node, Question)]
    return page(
        f"{code(metric.name)}: {text(metric.meaning)}",
        "[The metrics](index.md)",
        part("How to log it", *_log(metric)),
        part("Names under which it is found", *_names(metric)),
        part("Findings that need it", _needing(needing)),
        part("Questions that read it", _who(questions)),
        part("Causes that it tells apart", _who(causes)),
        part("On the command line", console(f"stabtree explain {metric.name}")),
    )


def _log(metric: Metric) -> list[str]:
    groups = f"Each group is a series of its own: {code(f'{metric.name}/NAME')}." if metric.grouped else ""
    lines = LINES.get(metric.name, {})
    ways = table(("in", "by"), [(TRAINERS[where], prose(how)) for where, how in lines.items()])
    name, _, rest = metric.log.partition(": ")
    log = f"{code(name)}: {prose(rest)}" if rest else prose(metric.log)
    return [f"Log {log}.", groups, ways]


def _names(metric: Metric) -> list[str]:
    add = f"Another name is given with `--column {metric.name}=NAME`."
    if not metric.aliases:
        return [f"{code(metric.name)}. {add}"]
    same = "Capitals count for nothing, and `/`, `.`, `-` and blanks are as good as `_`."
    return [
        f"{same} Of several columns the one that stands first here is read. {add}",
        " · ".join(map(code, metric.names)),
    ]


def _needing(questions: list[Question]) -> str:
    """The findings that these questions lead to at once, and not without an answer."""
    tree = known()
    ends = [
        tree.leaves[end]
        for node in questions
        for end in node.go.values()
        if end in tree.leaves and end != node.go.get(UNKNOWN, node.go.get(NO))
    ]
    return _leaves({leaf.id: leaf for leaf in ends}.values())


def _leaves(leaves: Iterable[Leaf]) -> str:
    kept = sorted((leaf for leaf in leaves if leaf.title != NOTHING), key=lambda leaf: -leaf.severity.rank)
    return listed(f"{badge(leaf.severity)} {to(leaf.id)} {text(leaf.title)}" for leaf in kept)


def _who(readers: list[tuple[Asked, bool]]) -> str:
    """Those that can't answer without it first."""
    ordered = sorted(readers, key=lambda item: not item[1])
    return listed(f"{told(asked)}{'' if needed else ' · where logged'}" for asked, needed in ordered)
