"""The options that commands share, and what their texts mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from stabtree.cli.shell.help import INPUT, JUDGING, OUTPUT

if TYPE_CHECKING:
    from stabtree.judging.judge import Judging
    from stabtree.judging.settings import Settings

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Metrics files, manifests, folders of runs, patterns; each is a run of its own; - reads standard input.",
    ),
]
ColumnOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="METRIC=NAME",
        help="Read METRIC from column NAME, as in loss=train/nll.",
        rich_help_panel=INPUT,
    ),
]
StepColumn = Annotated[
    str | None,
    typer.Option("--step-column", metavar="NAME", help="The column that holds the steps.", rich_help_panel=INPUT),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        help="What the run trained in: fp32, fp16, bf16 or fp8.",
        rich_help_panel=INPUT,
    ),
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option("--checkpoint-every", metavar="STEPS", help="Steps between two checkpoints.", rich_help_panel=INPUT),
]
Checkpoints = Annotated[
    Path | None,
    typer.Option("--checkpoints", metavar="DIR", help="Where the run's checkpoints lie.", rich_help_panel=INPUT),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="The file's format, if it is recognised wrongly: csv, jsonl, text, tfevents, ...",
        rich_help_panel=INPUT,
    ),
]
RunName = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help="Which run, if a file or folder holds several.", rich_help_panel=INPUT),
]
Ranks = Annotated[
    bool,
    typer.Option(
        "--ranks",
        help="The paths are ranks or parts of one run, even if nothing in them shows it.",
        rich_help_panel=INPUT,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.", rich_help_panel=OUTPUT)]
TreeOpt = Annotated[
    str | None,
    typer.Option(
        "--tree",
        metavar="NAME|FILE",
        help="A tree that ships with stabtree, or a YAML file.",
        rich_help_panel=JUDGING,
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="LEVEL",
        help="Exit with 1 from this severity on: note, warning (default), critical or never; with unknown also "
        "for a run that could not be judged, which is 3 otherwise.",
        rich_help_panel=JUDGING,
    ),
]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 whatever is found.", rich_help_panel=JUDGING)]
AcceptPartial = Annotated[
    bool,
    typer.Option(
        "--accept-partial",
        help="Exit with 0, not 3, if nothing is wrong in what the log allowed to judge.",
        rich_help_panel=JUDGING,
    ),
]
Literally = Annotated[
    bool,
    typer.Option(
        "--literal",
        help="Judge by the bare thresholds, without the guards against noise.",
        rich_help_panel=JUDGING,
    ),
]
SetOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="ID.PARAM=VALUE",
        help="Override a parameter, as in Q2.1.sigma=4.",
        rich_help_panel=JUDGING,
    ),
]
AnswerOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="ID=VERDICT",
        help="Answer a question yourself, as in Q1.2=fp16.",
        rich_help_panel=JUDGING,
    ),
]
Applied = Annotated[
    list[str] | None,
    typer.Option(
        "--applied",
        metavar="ID",
        help="The fixes of this node were applied and did not help.",
        rich_help_panel=JUDGING,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="LEAF",
        help="Let this finding count for nothing, as in spike-minor; may be given several times.",
        rich_help_panel=JUDGING,
    ),
]
BaselineOpt = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="Let the findings that FILE accepts count for nothing; `stabtree baseline` writes it.",
        rich_help_panel=JUDGING,
    ),
]
Interactive = Annotated[
    bool,
    typer.Option(
        "--interactive",
        help="Ask for what the log can't answer and a person can; ? explains.",
        rich_help_panel=JUDGING,
    ),
]
WhyNotOpt = Annotated[
    str | None,
    typer.Option(
        "--why-not",
        metavar="NODE",
        help="Tell what led away from a question or a leaf, as in spike-minor, and by how much.",
        rich_help_panel=OUTPUT,
    ),
]
Steps = Annotated[
    str | None,
    typer.Option(
        "--steps",
        metavar="A:B",
        help="Judge steps A to B of the log only; either may be left out, as in 500:.",
        rich_help_panel=INPUT,
    ),
]
RerunOpt = Annotated[
    str | None,
    typer.Option(
        "--rerun",
        metavar="PATH",
        help="Another run of the same training, to compare this one with.",
        rich_help_panel=INPUT,
    ),
]
TreesOpt = Annotated[
    str | None,
    typer.Option(
        "--trees",
        metavar="DIR",
        help="A folder of further trees to walk beside the shipped ones.",
        rich_help_panel=JUDGING,
    ),
]
ConfigOpt = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A file of settings, instead of stabtree.toml or pyproject.toml of the working directory.",
        rich_help_panel=INPUT,
    ),
]


class InForce(NamedTuple):
    """What the command line and the project's settings say together.

    Attributes:
        settings: those of the project that the command line leaves in force.
        passed: whether a run passes if nothing is wrong in what its log allowed to judge.
        levels: those that `--fail-on` names, else the project's.
    """

    settings: Settings
    passed: bool
    levels: frozenset[str]


def in_force(config: str | None, *, accept_partial: bool = False, **said: Any) -> InForce:
    """What is in force, given a command's options by the names of the settings' keys.

    Raises:
        StabtreeError: where the settings can't be read, or a level is none.
    """
    from stabtree.judging.levels import levels_of
    from stabtree.judging.settings import read_settings

    project = read_settings(config)
    settings = project.without(said)
    levels = levels_of(said.get("fail_on") or list(settings.fail_on))
    return InForce(settings, accept_partial or project.accept_partial, levels)


def judging_by(
    settings: Settings,
    tree: str | None,
    trees: str | None,
    *,
    literal: bool,
    set_: list[str] | None,
    answer: list[str] | None,
    ignore: list[str] | None,
    baseline: str | None,
    applied: list[str] | None = None,
    why_not: str | None = None,
) -> Judging:
    """How runs are judged, as the command line and the project say.

    Raises:
        StabtreeError: where an option is not of its form, or the baseline can't be read.
    """
    from stabtree.judging.judge import Judging, accepted_by
    from stabtree.judging.overrides import pairs

    return Judging(
        *(settings, tree, trees, literal),
        set=tuple(set_ or ()),
        answers=pairs(answer, "--answer", "Q1.2=fp16"),
        applied=tuple(applied or ()),
        ignore=tuple(ignore or ()),
        baseline=accepted_by(baseline, settings),
        why_not=why_not or "",
    )


def reading(
    column: list[str] | None,
    step_column: str | None,
    dtype: str | None,
    checkpoint_every: int | None,
    format_: str | None,
    run: str | None,
    settings: Settings,
    checkpoints: Path | None = None,
) -> dict[str, Any]:
    """How a log is read, as the command line says and else the project: the options of `stabtree.loaders.load_run`.

    Raises:
        StabtreeError: where one is not of its form.
    """
    from stabtree.judging.overrides import pairs

    return {
        **settings.reading(pairs(column, "--column", "loss=train/nll"), step_column, checkpoint_every),
        "dtype": dtype,
        "format": format_,
        "run": run,
        "checkpoints": checkpoints,
    }
