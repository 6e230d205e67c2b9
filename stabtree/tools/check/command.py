"""`stabtree check`: judge a configuration before its run."""

from __future__ import annotations

from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from stabtree.cli.options import (
    INPUT,
    JUDGED,
    OUTPUT,
    JudgeOptions,
    Only,
    OutputOptions,
    ReadOptions,
    effective_settings,
    full_option,
    judging_by,
    option,
    output_option,
)
from stabtree.cli.output import deliver, protect_log, protect_rules, protect_run, summarize, wanted, write
from stabtree.cli.terminal import emit, notify
from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words, masked
from stabtree.report.outputs import CHECK, JSON, JSONL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.judge import Judging
    from stabtree.judging.verdict import Outcome
    from stabtree.run import Run
    from stabtree.tools.check.fix import Edit

ENOUGH = 5  # rules: an OK that rests on fewer says nothing
Configs = Annotated[
    list[str],
    typer.Argument(
        metavar="CONFIG",
        help="Configurations, each of a run of its own: YAML, JSON, TOML, or a folder.",
    ),
]
Merge = Annotated[
    bool, option(INPUT, "--merge", "Read the files as one configuration; later files override earlier ones.")
]
Fix = Annotated[
    bool,
    option(OUTPUT, "--fix", "Write each value that has one right one, as in `fix ... (0.0 → 1.0)`, into its file."),
]
Diff = Annotated[bool, option(OUTPUT, "--diff", "Show what --fix would change, as a unified diff, and write nothing.")]
CheckOutput = Annotated[
    OutputOptions,
    Only(
        "json",
        "quiet",
        output=output_option(CHECK),
        full=full_option("Print everything: every fix, each rule that could not be judged."),
    ),
]

EPILOG = """\b
Examples:
  stabtree check config.yaml                    before a GPU is touched
  stabtree check train.yaml zero3.json --merge  one configuration in two files
  stabtree check 'configs/*.yaml' -q            one line each
  stabtree check config.yaml --trees rules      with your team's rules
  stabtree check config.yaml --fix              write what has one right value

\b
Exit codes:
  0  judged, nothing at or above --fail-on
  1  something is
  2  a mistake in what was typed, or a file that is not a configuration
  3  nothing is wrong, in too few rules for an OK
  4  stabtree itself failed; --debug shows where
"""


def check(
    paths: Configs,
    read: Annotated[ReadOptions, Only("settings")],
    judge: Annotated[JudgeOptions, Only(*JUDGED)],
    out: CheckOutput,
    merge: Merge = False,
    fix: Fix = False,
    diff: Diff = False,
) -> None:
    """Find what is wrong with a run before it begins, as far as its configuration shows.

    What it does not mention has the default of its trainer; where that is not known, it is not judged.
    """
    from stabtree.report.outputs import RenderOptions

    effective = effective_settings(read, judge)
    targets = wanted(out, CHECK)
    judging = judging_by(effective.settings, judge)
    protect_rules(targets, *judging.rules)
    files = _files(paths)
    for file in files:
        protect_log(targets, file)
    groups = [files] * merge or [[file] for file in files]
    hashed = not {JSON, JSONL}.isdisjoint(targets.values())
    outcomes = [_judged(group, judging, hashed=hashed) for group in groups]
    if diff:
        targets.pop(None, None)
    if (fix or diff) and _repair(outcomes, show=diff):
        outcomes = [_judged(group, judging, hashed=hashed) for group in groups]
    for outcome in outcomes:
        if not isinstance(outcome.found, StabtreeError):
            protect_run(targets, outcome.found.run)
    if len(outcomes) == 1 and isinstance(outcomes[0].found, StabtreeError):
        raise outcomes[0].found
    code = effective.exit_code(outcomes)
    look = RenderOptions(full=out.full, exit_code=code, fail_on=effective.levels)
    deliver(CHECK, outcomes, targets, look)
    summarize(outcomes, targets, look)
    if code:
        raise typer.Exit(code)


def _files(paths: list[str]) -> list[str]:
    """Return the files that paths and patterns name, each once.

    Raises:
        StabtreeError: for an empty path, as of an unset variable of the shell; it does not mean the working directory.
    """
    from stabtree.loaders.paths.find import deduplicated, expanded

    if not all(paths):
        raise StabtreeError("an empty path names no configuration", hint="name a file, or . for this folder")
    return [str(path) for path in deduplicated(list(chain.from_iterable(map(expanded, paths))))]


def _repair(outcomes: Sequence[Outcome], *, show: bool) -> bool:
    """Write the one right value of each finding into its file, or show the diffs; return whether any was written."""
    from stabtree.tools.check.fix import diff, edits, repaired, told

    found = [one.found for one in outcomes if not isinstance(one.found, StabtreeError)]
    wanted = sorted(dict.fromkeys(chain.from_iterable(map(edits, found))), key=lambda edit: edit[2].path)
    done: list[Edit] = []
    for file, group in groupby(wanted, lambda edit: Path(edit[2].path)):
        try:
            before, after, changed = repaired(file, [*group])
            if changed and not show:
                write(file, after)
        except (OSError, StabtreeError) as error:
            notify(f"note: {masked(clean(file))} was not changed: {clean(error)}")
            continue
        if changed and show:
            emit(diff(file, before, after))
        done += changed
    verb = "would fix" if show else "fixed"
    what = ", ".join(map(told, done)) or "no value is the one right one"
    if found:
        notify(f"{verb} {len(done)} of {sum(len(one.findings) for one in found)}: {what}")
    return bool(done) and not show


def _judged(files: list[str], judging: Judging, *, hashed: bool) -> Outcome:
    """Return the outcome of a configuration; for machines with the hashes of its files."""
    from stabtree.judging.verdict import Outcome
    from stabtree.loaders.paths.stored import with_inputs
    from stabtree.tools.check.load import load_config

    name = ", ".join(map(masked, files))
    try:
        run = load_config(*files)
    except StabtreeError as error:
        return Outcome(name, error)
    return Outcome(name, checked(with_inputs(run) if hashed else run, judging))


def checked(run: Run, judging: Judging) -> Diagnosis:
    """Diagnose a run before it begins, as far as its configuration shows.

    The tree is the one that is named, else ours with those of the folder. The verdict is unknown if nothing is wrong in
    fewer than five rules that could be judged. A setting that is missing has the value that its trainer gives it; if
    that is not known, it is not judged.

    Raises:
        StabtreeError: if a tree can't be read, or something is set or ignored that does not exist.
    """
    from stabtree.run import CONFIG
    from stabtree.tree.load import load_preflight, load_tree
    from stabtree.tree.model import Severity

    if judging.tree:
        tree = load_tree(judging.tree)
        tree = replace(tree, when=tuple(dict.fromkeys((*tree.when, CONFIG))))
    else:  # the project's own single tree is one for logs
        tree = load_preflight(judging.trees or judging.settings.trees or None)
    diagnosis = judging.judged(run, tree)
    missing = tuple(replace(item, log=_how_to_say(item.metrics)) for item in diagnosis.missing)
    log_next = tuple(replace(item, log=_how_to_say(item.names)) for item in diagnosis.log_next)
    verdict = diagnosis.verdict
    if verdict in (Severity.OK, Severity.NOTE) and diagnosis.judged < min(ENOUGH, len(diagnosis.tree.questions)):
        verdict = UNKNOWN
    return replace(diagnosis, missing=missing, log_next=log_next, verdict=verdict)


def _how_to_say(keys: tuple[str, ...]) -> str:
    return f"say {in_words(keys)} in the configuration" if keys else ""
