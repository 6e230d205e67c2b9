"""The outputs of `diagnose`: a new one is a function in a file of its own, and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.comparing.result import Comparison
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.outcome import Outcome
    from stabtree.render.look import Look


class Output(Protocol):
    """Writes a diagnosis."""

    def __call__(self, diagnosis: Diagnosis, look: Look, /) -> str:
        """The whole text."""


class TableOutput(Protocol):
    """Writes what became of several runs."""

    def __call__(self, outcomes: Sequence[Outcome], look: Look, /) -> str:
        """The whole text, as of an `Output`."""


class ComparisonOutput(Protocol):
    """Writes where runs part."""

    def __call__(self, comparison: Comparison, look: Look, /) -> str:
        """The whole text, as of an `Output`."""


def _in(module: str, name: str) -> Any:
    """The function of that name, imported at its first use: `--help` names the outputs and needs none of them."""

    def output(told: Any, look: Look, /) -> str:
        from importlib import import_module

        written: str = getattr(import_module(module), name)(told, look)
        return written

    return output


SCREEN, HEADLINE, JSON, SVG = "screen", "headline", "json", "svg"
MARKDOWN, POSTMORTEM = "markdown", "postmortem"
OUTPUTS: dict[str, Output] = {
    SCREEN: _in("stabtree.render.screen", "screen"),
    HEADLINE: _in("stabtree.render.screen", "headline"),
    JSON: _in("stabtree.render.data.machine", "to_json"),
    "html": _in("stabtree.render.html.page", "html"),
    SVG: _in("stabtree.render.figure.svg", "output"),
    MARKDOWN: _in("stabtree.render.markdown.page", "markdown"),
    POSTMORTEM: _in("stabtree.render.markdown.postmortem", "postmortem"),
}
COMPARISONS: dict[str, ComparisonOutput] = {
    SCREEN: _in("stabtree.render.sections.comparison", "screen"),
    HEADLINE: _in("stabtree.render.sections.comparison", "headline"),
    JSON: _in("stabtree.render.sections.comparison", "to_json"),
    MARKDOWN: _in("stabtree.render.markdown.comparison", "markdown"),
}
"""The outputs of `compare`."""


def tables() -> dict[str, TableOutput]:
    """The same outputs for several runs."""
    from stabtree.render import several

    return {
        SCREEN: several.table,
        HEADLINE: several.headlines,
        JSON: several.to_json,
        MARKDOWN: _in("stabtree.render.markdown.page", "several"),
    }
