"""The outputs of `diagnose`: a new one is a function in a file of its own, and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.comparing.result import Comparison
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.calibrate.result import Calibration
    from stabtree.judging.outcome import Outcome
    from stabtree.judging.record import Record
    from stabtree.render.look import Look


class Output(Protocol):
    """Writes a diagnosis."""

    def __call__(self, diagnosis: Diagnosis, look: Look, /) -> str:
        """The whole text."""


class OneOutput(Protocol):
    """Writes what became of one run, by the name under which it was given."""

    def __call__(self, outcome: Outcome, look: Look, /) -> str:
        """The whole text, as of an `Output`."""


class TableOutput(Protocol):
    """Writes what became of several runs."""

    def __call__(self, outcomes: Sequence[Outcome], look: Look, /) -> str:
        """The whole text, as of an `Output`."""


class FleetOutput(Protocol):
    """Writes what became of many runs."""

    def __call__(self, records: Iterable[Record], look: Look, /, **options: Any) -> Iterator[str]:
        """The text in pieces; no more of the records is held than the output tells."""


class ComparisonOutput(Protocol):
    """Writes where runs part."""

    def __call__(self, comparison: Comparison, look: Look, /) -> str:
        """The whole text, as of an `Output`."""


class CalibrationOutput(Protocol):
    """Writes which thresholds healthy runs call for."""

    def __call__(self, calibration: Calibration, look: Look, /) -> str:
        """The whole text, as of an `Output`."""


def _in(module: str, name: str) -> Any:
    """The function of that name, imported at its first use: `--help` names the outputs and needs none of them."""

    def output(told: Any, look: Look, /, **options: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(module), name)(told, look, **options)

    return output


def _one(name: str) -> Output:
    """An output of many runs for one alone."""

    def written(diagnosis: Diagnosis, look: Look, /) -> str:
        from stabtree.judging.outcome import Outcome

        sources = diagnosis.run.sources
        return tables()[name]([Outcome(sources[0].path if sources else diagnosis.run.name, diagnosis)], look)

    return written


def _several(name: str, output: FleetOutput) -> TableOutput:
    """An output of many runs for those that are at hand: for people worst first, for machines in their order."""

    def written(outcomes: Sequence[Outcome], look: Look, /) -> str:
        from stabtree.judging.outcome import ORDER
        from stabtree.render.data.record import records

        told = records(outcomes, whole=name in (JSON, JSONL))
        worst_first = name in (SCREEN, MARKDOWN, HTML)
        return "".join(output(sorted(told, key=lambda one: ORDER.index(one.badge)) if worst_first else told, look))

    return written


SCREEN, HEADLINE, JSON, SVG, HTML = "screen", "headline", "json", "svg", "html"
MARKDOWN, POSTMORTEM, JSONL, CSV = "markdown", "postmortem", "jsonl", "csv"
GITHUB, GITLAB, JUNIT, SARIF = "github", "gitlab", "junit", "sarif"
SERVICES = (GITHUB, GITLAB, JUNIT, SARIF)
"""Those that a service reads: they say of a log that can't be read too, and name the line where a finding begins."""
FLEET: dict[str, FleetOutput] = {
    SCREEN: _in("stabtree.render.fleet.table", "table"),
    HEADLINE: _in("stabtree.render.fleet.lines", "headlines"),
    JSON: _in("stabtree.render.fleet.lines", "to_json"),
    JSONL: _in("stabtree.render.fleet.lines", "jsonl"),
    CSV: _in("stabtree.render.fleet.csv", "csv_lines"),
    MARKDOWN: _in("stabtree.render.fleet.markdown", "markdown"),
    HTML: _in("stabtree.render.fleet.page", "page"),
}
"""The outputs of many runs, which are handed them one by one, worst first, and yield their text in pieces."""
OUTPUTS: dict[str, Output] = {
    SCREEN: _in("stabtree.render.screen", "screen"),
    HEADLINE: _in("stabtree.render.screen", "headline"),
    JSON: _in("stabtree.render.data.machine", "to_json"),
    HTML: _in("stabtree.render.html.page", "html"),
    SVG: _in("stabtree.render.figure.svg", "output"),
    MARKDOWN: _in("stabtree.render.markdown.page", "markdown"),
    POSTMORTEM: _in("stabtree.render.markdown.postmortem", "postmortem"),
    JSONL: _one(JSONL),
    CSV: _one(CSV),
    **{name: _in(f"stabtree.render.ci.{name}", name) for name in SERVICES},
}
COMPARISONS: dict[str, ComparisonOutput] = {
    SCREEN: _in("stabtree.render.sections.comparison", "screen"),
    HEADLINE: _in("stabtree.render.sections.comparison", "headline"),
    JSON: _in("stabtree.render.sections.comparison", "to_json"),
    MARKDOWN: _in("stabtree.render.markdown.comparison", "markdown"),
}
"""The outputs of `compare`."""
CALIBRATIONS: dict[str, CalibrationOutput] = {
    SCREEN: _in("stabtree.render.sections.calibration", "screen"),
    "toml": _in("stabtree.render.sections.calibration", "toml"),
    JSON: _in("stabtree.render.sections.calibration", "data"),
}
"""The outputs of `calibrate`."""
WATCHES = (SCREEN, HEADLINE, JSONL)
"""The outputs of `watch`, which are written as things are found."""


def checks() -> dict[str, TableOutput]:
    """The outputs of `check`, which are handed one configuration or several."""
    known = tables()
    return {
        SCREEN: _in("stabtree.render.sections.preflight", "screen"),
        MARKDOWN: _in("stabtree.render.markdown.preflight", "markdown"),
        HEADLINE: _either(_in("stabtree.render.sections.preflight", "headline"), known[HEADLINE]),
        **{name: _either(_judged(OUTPUTS[name]), known[name]) for name in (JSON, JSONL, *SERVICES)},
    }


def _judged(output: Output) -> OneOutput:
    """An output of a diagnosis for an outcome that holds one."""
    return lambda outcome, look: output(cast("Diagnosis", outcome.found), look)


def _either(one: OneOutput, several: TableOutput) -> TableOutput:
    """An output of one outcome, or of several; one alone was read, else its error is told."""

    def written(outcomes: Sequence[Outcome], look: Look, /) -> str:
        return several(outcomes, look) if len(outcomes) > 1 else one(outcomes[0], look)

    return written


def tables() -> dict[str, TableOutput]:
    """The same outputs for several runs."""
    shown = {**FLEET, SCREEN: _in("stabtree.render.fleet.table", "whole")}
    told = {name: _several(name, output) for name, output in shown.items()}
    return {**told, **{name: _in(f"stabtree.render.ci.{name}", "several") for name in SERVICES}}
