"""The options that commands share, each declared once, and what they come to with the settings of a project.

A command takes a frozen struct, its user types the fields as options:

    def inspect(paths: Paths, read: Annotated[ReadOptions, Only("column", "dtype")]) -> None: ...

has the options `--column` and `--dtype`; all other fields of `ReadOptions` keep their defaults.
"""

from __future__ import annotations

import inspect
from functools import partial, wraps
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from msgspec import Struct
from msgspec.structs import asdict, fields

from stabtree.cli.terminal import notify
from stabtree.common.errors import StabtreeError
from stabtree.common.text import first_few, hide
from stabtree.report.outputs import RUN, SCREEN, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stabtree.judging.judge import Judging
    from stabtree.judging.settings import Settings
    from stabtree.judging.verdict import KnownFindings
    from stabtree.loaders import Loaded

INPUT, JUDGING, OUTPUT, EXPERT = "Input", "Judging", "Output", "Expert"
"""The groups of options in the help."""
COLUMNS = ("column", "step_column", "dtype", "format", "settings", "follow_links")
"""The options that all commands which read logs have."""
TREES = ("tree", "trees", "set", "ignore")
"""The options that all commands which walk a tree have."""
JUDGED = (*TREES, "fail_on", "on_unknown")
"""Those, and what fails."""
ON_UNKNOWN = {None: (), "fail": ("unknown",), "pass": ("not-partial",)}
"""What `--on-unknown` adds to the levels of `--fail-on`."""


def option(panel: str, spelling: str, about: str) -> Any:
    """Declare an option.

    Args:
        panel: the group of the help that lists it.
        spelling: its names and what its value is called, as the help shows them: `-j, --jobs N`.
        about: its line of the help.
    """
    words = spelling.replace(",", "").split()
    flags = [word for word in words if word.startswith("-")]
    metavar = None if words[-1] in flags else words[-1]
    return typer.Option(*flags, help=about, metavar=metavar, rich_help_panel=panel)


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Metrics files, manifests, run folders or patterns, each a run of its own; - reads standard input.",
    ),
]


_read, _judge, _print, _expert = (partial(option, panel) for panel in (INPUT, JUDGING, OUTPUT, EXPERT))


class ReadOptions(Struct, frozen=True):
    """How a log is read, as typed."""

    steps: Annotated[
        str | None, _read("--steps A:B", "Judge only steps A to B; either may be left out, as in 500:.")
    ] = None
    column: Annotated[
        tuple[str, ...], _read("--column METRIC=NAME", "Read METRIC from column NAME, as in loss=train/nll.")
    ] = ()
    step_column: Annotated[str | None, _read("--step-column NAME", "The column that holds the steps.")] = None
    dtype: Annotated[str | None, _read("--dtype TYPE", "Training precision: fp32, fp16, bf16 or fp8.")] = None
    checkpoint_every: Annotated[int | None, _read("--checkpoint-every STEPS", "Steps between checkpoints.")] = None
    checkpoints: Annotated[Path | None, _read("--checkpoints DIR", "The folder of the run's checkpoints.")] = None
    format: Annotated[
        str | None,
        _read("--format NAME", "The log's format, if it is detected wrongly: csv, jsonl, text, tfevents, ..."),
    ] = None
    run_name: Annotated[str | None, _read("--run NAME", "Which run, if a file or folder holds several.")] = None
    ranks: Annotated[bool, _read("--ranks", "Read the paths as ranks or parts of one run.")] = False
    rerun: Annotated[
        str | None, _read("--rerun PATH", "Another run of the same training, to compare this one with.")
    ] = None
    follow_links: Annotated[bool, _read("--follow-links", "Follow links that lead out of a folder.")] = False
    settings: Annotated[
        str | None,
        _read("--settings FILE", "Settings to use instead of stabtree.toml or pyproject.toml in the working folder."),
    ] = None


class JudgeOptions(Struct, frozen=True):
    """How runs are judged, as typed."""

    tree: Annotated[str | None, _judge("--tree NAME|FILE", "Walk this tree alone: a shipped one, or a YAML file.")] = (
        None
    )
    trees: Annotated[str | None, _expert("--trees DIR", "Walk the trees in this folder beside ours.")] = None
    fail_on: Annotated[
        tuple[str, ...],
        _judge("--fail-on LEVEL", "Exit 1 at or above note, warning (default) or critical; never: exit 0."),
    ] = ()
    on_unknown: Annotated[
        str | None, _judge("--on-unknown fail|pass", "Exit 1 if not judged (fail), or 0 if all checked passed (pass).")
    ] = None
    expect_complete: Annotated[
        bool, _judge("--expect-complete", "Exit 3 for a log that stops before its planned end, and nothing says why.")
    ] = False
    literal: Annotated[bool, _expert("--literal", "Apply the bare thresholds, without guards against noise.")] = False
    set: Annotated[tuple[str, ...], _expert("--set ID.PARAM=VALUE", "Override a parameter, as in Q2.1.sigma=4.")] = ()
    answer: Annotated[tuple[str, ...], _expert("--answer ID=VERDICT", "Answer a question, as in Q1.2=fp16.")] = ()
    applied: Annotated[tuple[str, ...], _expert("--applied ID", "This node's fixes were tried and did not help.")] = ()
    ignore: Annotated[tuple[str, ...], _judge("--ignore LEAF", "Ignore this finding, as in spike-minor.")] = ()
    baseline: Annotated[
        str | None, _judge("--baseline FILE", "Ignore the findings accepted in FILE, which `stabtree baseline` writes.")
    ] = None
    interactive: Annotated[
        bool, _judge("--interactive", "Ask for what the log can't answer; type ? for an explanation.")
    ] = False


def output_option(kind: str) -> Any:
    """Declare `--output` for a kind of result."""
    others = ", ".join(name for name in names(kind) if name != SCREEN)
    text = f"Write FILE as its ending says (report.html), or NAME=FILE, or print NAME: {SCREEN} (default), {others}."
    return _print("-o, --output NAME|FILE", text)


def full_option(about: str) -> Any:
    """Declare `--full` for a command that leaves out other things than `diagnose` does."""
    return _print("--full", about)


class OutputOptions(Struct, frozen=True):
    """What is printed, as typed; the short forms are of `--output`."""

    output: Annotated[tuple[str, ...], output_option(RUN)] = ()
    json: Annotated[bool, _print("--json", "Short for --output json.")] = False
    quiet: Annotated[bool, _print("-q, --quiet", "Print one line: short for --output headline.")] = False
    full: Annotated[bool, full_option("Print everything: all numbers, and the log's rows around the onset.")] = False
    no_plots: Annotated[bool, _print("--no-plots", "Draw no figures.")] = False
    against: Annotated[
        str | None, _print("--against PATH", "A healthy run to draw behind the curves of html and svg.")
    ] = None


class WorkOptions(Struct, frozen=True):
    """How many runs are worked on at once and listed, as typed."""

    jobs: Annotated[int | None, _read("-j, --jobs N", "Processes for many runs (default: one per core).")] = None
    worst: Annotated[int | None, _print("--worst N", "List only the N worst of many runs (default: 20).")] = None


def reading(read: ReadOptions, settings: Settings) -> dict[str, Any]:
    """Return how a log is read, as `stabtree.loaders.load_run` takes it: as typed, else as the project's settings say.

    Raises:
        StabtreeError: where `--column` is malformed.
    """
    from stabtree.judging.settings import pairs

    columns = pairs(read.column, "--column", "loss=train/nll")
    return {
        **settings.reading(columns, read.step_column, read.checkpoint_every),
        "dtype": read.dtype,
        "format": read.format,
        "run": read.run_name,
        "checkpoints": read.checkpoints,
        "follow_links": read.follow_links,
    }


def loaded_runs(paths: Sequence[str], read: ReadOptions, settings: Settings) -> list[Loaded]:
    """Return the runs that paths hold, cut to the steps that are judged; tell of links that were not followed.

    Raises:
        StabtreeError: where an option is malformed, or nothing can be read.
    """
    from stabtree.loaders import find_runs
    from stabtree.loaders.paths.joined import cut, stretch_of

    ends = stretch_of(read.steps)
    found = find_runs(*paths, ranks=read.ranks, **reading(read, settings))
    if found.ignored:
        tell_of_links(found.outside)
    return [cut(item, ends) for item in found.loaded]


def tell_of_links(outside: Sequence[str]) -> None:
    """Tell which links lead out of the folders that were read, and were not followed."""
    if outside:
        count = f"{len(outside):,} links lead" if len(outside) > 1 else "1 link leads"
        notify(f"note: {count} outside the folder ({first_few(outside, 3)}), not followed: --follow-links follows")


class EffectiveSettings(Struct, frozen=True):
    """What the command line and the project's settings say together."""

    settings: Settings  # those of the project that the command line does not override
    levels: frozenset[str]  # from which a run fails: those of `--fail-on`, else the project's
    accept_partial: bool  # whether a run passes if every check that could run passed
    expect_complete: bool = False  # whether a run whose end is not known is not judged

    def exit_code(self, judged: Iterable[Any]) -> int:
        """Return the exit code for runs that were judged: whatever has a `verdict`, and is `partial` or not."""
        from stabtree.common.answer import UNKNOWN
        from stabtree.judging.verdict import exit_code
        from stabtree.tree.model import Severity

        def verdict(item: Any) -> str:
            if self.expect_complete and item.unended and item.verdict in (Severity.OK, Severity.NOTE):
                return UNKNOWN
            return Severity.OK if self.accept_partial and item.partial else item.verdict

        return exit_code(map(verdict, judged), self.levels)


def effective_settings(read: ReadOptions, judge: JudgeOptions = JudgeOptions()) -> EffectiveSettings:  # noqa: B008
    """Return the project's settings as the command line leaves them.

    Raises:
        StabtreeError: where the settings can't be read, or a word of `--fail-on` or `--on-unknown` is none.
    """
    from stabtree.judging.settings import read_settings
    from stabtree.judging.verdict import accepts_partial, levels_of

    project = read_settings(read.settings)
    hide(map(str, asdict(project).values()))
    typed = {**asdict(read), **asdict(judge)}
    overridden = ("column", "step_column", "checkpoint_every", "tree", "trees", "fail_on", "set", "baseline")
    settings = project.without({key: typed[key] for key in overridden})
    if judge.on_unknown not in ON_UNKNOWN:
        raise StabtreeError(f"{judge.on_unknown!r} is neither", where="--on-unknown", hint="type fail or pass")
    words = (*(judge.fail_on or settings.fail_on), *ON_UNKNOWN[judge.on_unknown])
    partial = project.accept_partial or accepts_partial(words)
    return EffectiveSettings(settings, levels_of(words), partial, judge.expect_complete)


def judging_by(settings: Settings, judge: JudgeOptions, known: KnownFindings | None = None) -> Judging:
    """Return how runs are judged, as the command line and the project say.

    Args:
        settings: those in effect.
        judge: the options.
        known: findings that are accepted; those of the settings are added.

    Raises:
        StabtreeError: where an option is malformed.
    """
    from stabtree.judging.judge import Judging
    from stabtree.judging.settings import pairs

    return Judging(
        settings,
        judge.tree,
        judge.trees,
        judge.literal,
        set=judge.set,
        answers=pairs(judge.answer, "--answer", "Q1.2=fp16"),
        applied=judge.applied,
        ignore=judge.ignore,
        baseline=known,
    )


def judging_with_baseline(settings: Settings, judge: JudgeOptions) -> Judging:
    """Return how runs are judged, the findings accepted in a baseline ignored.

    Raises:
        StabtreeError: where an option is malformed, or the baseline can't be read.
    """
    from stabtree.judging.judge import accepted_by

    return judging_by(settings, judge, accepted_by(judge.baseline, settings))


class Only:
    """The fields of an options class that a command offers.

    Args:
        names: fields, as their class declares them.
        declared: fields that this command declares in its own way.
    """

    def __init__(self, *names: str, **declared: Any) -> None:
        self.names = (*names, *declared)
        self.declared = declared


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as Typer is to see it, each options class in its signature replaced by that class's fields."""
    hints = get_type_hints(command, include_extras=True)
    classes = {name: getattr(hint, "__origin__", hint) for name, hint in hints.items()}
    options = {name: cls for name, cls in classes.items() if hasattr(cls, "__struct_fields__")}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in options:
            parameters += _parameters(options[parameter.name], hints[parameter.name])
        else:
            hinted = parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
            parameters.append(hinted)

    @wraps(command)
    def call(**given: Any) -> None:
        made = {}
        for name, cls in options.items():
            typed = [(field, given.pop(field.name)) for field in fields(cls) if field.name in given]
            values = {field.name: tuple(value or ()) if field.default == () else value for field, value in typed}
            made[name] = cls(**values)
        command(**given, **made)

    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    setattr(call, "__signature__", inspect.Signature(parameters))  # noqa: B010 - mypy knows no such attribute
    return call


def _parameters(cls: Any, hint: Any) -> Iterator[inspect.Parameter]:
    """Yield the fields of an options class that a command offers, as parameters."""
    only = next((item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Only)), None)
    hints = get_type_hints(cls, include_extras=True)
    if only and not hints.keys() >= set(only.names):
        raise TypeError(f"{cls.__name__} has no {sorted({*only.names} - hints.keys())}")
    for field in fields(cls):
        if only and field.name not in only.names:
            continue
        plain, declared = get_args(hints[field.name])
        if only and field.name in only.declared:
            declared = only.declared[field.name]
        default = field.default
        if get_origin(plain) is tuple:  # Typer's word for an option that may be given several times is a list
            plain, default = list[get_args(plain)[0]] | None, None  # type: ignore[misc]
        kind, annotation = inspect.Parameter.KEYWORD_ONLY, Annotated[plain, declared]
        yield inspect.Parameter(field.name, kind, default=default, annotation=annotation)
