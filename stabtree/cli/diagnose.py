"""`stabtree diagnose`: read runs, walk the tree, print what was found."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from stabtree.cli.options import (
    JudgeOptions,
    Only,
    OutputOptions,
    Paths,
    ReadOptions,
    WorkOptions,
    effective_settings,
    judging_with_baseline,
    reading,
    tell_of_links,
)
from stabtree.cli.output import deliver, protect_log, protect_rules, protect_run, summarize, wanted
from stabtree.cli.terminal import Busy, notify, screen
from stabtree.common import extensions
from stabtree.common.answer import NO, UNKNOWN, YES
from stabtree.common.errors import StabtreeError
from stabtree.report.outputs import (
    CSV,
    HEADLINE,
    HTML,
    JSON,
    JSONL,
    MARKDOWN,
    POSTMORTEM,
    RUN,
    RUNS,
    SCREEN,
    SERVICES,
    RenderOptions,
    names,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stabtree.judging.settings import Settings
    from stabtree.judging.verdict import Outcome
    from stabtree.loaders import Loaded
    from stabtree.run import Run
    from stabtree.tree.model import Question, Tree

EPILOG = """\b
Examples:
  stabtree run.csv                       one run; `diagnose` may be left out
  stabtree runs -o runs.html             all runs below a folder, worst first
  stabtree runs --output jsonl           a line a run, once it is judged
  tail -n 5000 train.log | stabtree -    standard input
  stabtree bad.csv -o bad.html --against good.csv
  stabtree run.csv --dtype fp16 --json   for machines

\b
Exit codes:
  0  all runs judged, nothing at or above --fail-on
  1  something is
  2  a mistake in what was typed, or a log that can't be read
  3  too little was logged to judge
  4  stabtree itself failed; --debug shows where
"""
SHOW_OUTDATED = {SCREEN, JSON, JSONL, MARKDOWN, HTML, POSTMORTEM}
"""Outputs that say themselves which accepted findings no longer occur."""

SYNONYMS = {"y": YES, "true": YES, "1": YES, "n": NO, "false": NO, "0": NO, "?": "?"}
NOT_KNOWN = ("", UNKNOWN, "u", "skip", "don't know")


def diagnose(
    paths: Paths,
    read: ReadOptions = ReadOptions(),  # noqa: B008 - frozen
    judge: JudgeOptions = JudgeOptions(),  # noqa: B008
    out: OutputOptions = OutputOptions(),  # noqa: B008
    work: WorkOptions = WorkOptions(),  # noqa: B008
) -> None:
    """Find what went wrong in a run: the path through the tree, the cause, the fix, the checkpoint to restart from.

    Of several runs, or of a folder of them, it is a table with the worst first, grouped by what was found, and with the
    settings in which they differ. `stabtree scan` is another name of this command.
    """
    from stabtree.loaders import find_runs
    from stabtree.loaders.paths.joined import cut, stretch_of

    effective = effective_settings(read, judge)
    targets = wanted(out)
    judging = judging_with_baseline(effective.settings, judge)
    protect_rules(targets, *judging.rules)
    busy = Busy(wanted=not judge.interactive and targets.get(None) not in (HEADLINE, JSON, JSONL, CSV))
    ends, how, most = stretch_of(read.steps), reading(read, effective.settings), 1.0
    if read.run_name is not None:  # any of them may be it
        most = math.inf
    with busy.doing(f"reading {', '.join(paths)}"):
        found = find_runs(*paths, ranks=read.ranks, most=most, **how)
        other = _beside("--rerun", read.rerun, paths, read, effective.settings)
        healthy = _beside("--against", out.against, paths, read, effective.settings)
    look = RenderOptions(
        full=out.full,
        plots=not out.no_plots,
        against=healthy,
        fail_on=effective.levels,
        accept_partial=effective.accept_partial,
        worst=work.worst,
    )
    several = len(found.loaded) != 1 or bool(found.further)
    alone = {"rerun": read.rerun, "against": out.against, "checkpoints": read.checkpoints}
    if several or work.worst is not None:
        _check_fit(several, [*targets.values()], **alone, interactive=judge.interactive, full=out.full)
    if several:
        how |= {"judging": judging, "ends": ends, "jobs": work.jobs, "found": found}
        extensions.function("judge_many")(paths, effective, targets, look, **how)
        return
    if found.ignored:
        tell_of_links(found.outside)
    item = _completed(cut(found.loaded[0], ends), other, targets)
    if healthy:
        protect_run(targets, healthy)
    with busy.doing(f"judging {item.name}"):
        outcome = judging.outcome(item, asker if judge.interactive else None)
    code = effective.exit_code([outcome])
    look = replace(look, exit_code=code)
    _deliver_one(outcome, targets, look, quiet=out.quiet)
    summarize([outcome], targets, look)
    if code:
        raise typer.Exit(code)


def _check_fit(several: bool, outputs: Sequence[str], **alone: object) -> None:
    """Refuse what makes no sense of one run, or of several."""
    given = [f"--{name}" for name, value in alone.items() if value]
    given += [f"--output {name}" for name in outputs if name not in names(RUNS)]
    if several and given:
        raise StabtreeError("goes with one run, these are several", where=given[0], hint="name one of them")
    if not several:
        raise StabtreeError("goes with several runs, this is one", where="--worst", hint="leave it out")


def _beside(option: str, path: str | None, paths: Sequence[str], read: ReadOptions, settings: Settings) -> Run | None:
    """Return the run that an option sets beside the one that is judged, if any, cut to the same steps."""
    from stabtree.loaders import load_run
    from stabtree.loaders.paths.joined import stretch, stretch_of

    if not path:
        return None
    if any(Path(own).resolve() == Path(path).resolve() for own in paths):
        raise StabtreeError("is the run itself", where=f"{option} {path}", hint="name the log of another run")
    own = replace(read, checkpoint_every=None, run_name=None, checkpoints=None)
    run, ends = load_run(path, **reading(own, settings)), stretch_of(read.steps)
    return stretch(run, *ends) if ends else run


def _completed(loaded: Loaded, other: Run | None, targets: Mapping[Path | None, str]) -> Loaded:
    """Return a run with the one it is compared with and, for machines, the hashes of its files.

    Raises:
        StabtreeError: where an output would overwrite something that is read.
    """
    if isinstance(loaded.run, StabtreeError):
        protect_log(targets, loaded.name)
        return loaded
    run = replace(loaded.run, rerun=other)
    protect_run(targets, run)
    if not {JSON, JSONL}.isdisjoint(targets.values()):
        from stabtree.loaders.paths.stored import with_inputs

        run = with_inputs(run)
    return replace(loaded, run=run)


def _deliver_one(outcome: Outcome, targets: Mapping[Path | None, str], look: RenderOptions, *, quiet: bool) -> None:
    """Write all outputs of one run; of one that can't be read those of services, and its error.

    Raises:
        StabtreeError: the error of a run that can't be read.
    """
    found = outcome.found
    if isinstance(found, StabtreeError):
        services = {target: name for target, name in targets.items() if name in SERVICES}
        deliver(RUN, [outcome], services, look)
        summarize([outcome], services, look)
        raise found
    deliver(RUN, found, targets, look)
    notes = [*found.answer_notes] if quiet else []  # one line of a verdict has no room for them
    if quiet or SHOW_OUTDATED.isdisjoint(targets.values()):
        notes += found.acceptance_notes
    for text in notes:
        notify(f"note: {text}")


def demo(out: Annotated[OutputOptions, Only("output", "json", "quiet")]) -> None:
    """Diagnose a failed run that comes with stabtree: an overflow in fp16.

    The exit code is 0, whatever is found.
    """
    from stabtree.tree.shipped import shipped_runs

    run = shipped_runs() / "phase19" / "fp16-overflow"
    diagnose([str(run)], judge=JudgeOptions(fail_on=("never",)), out=out)
    if not (out.json or out.quiet or out.output):
        notify(f"\nThis run is in {run}\nFor one of yours: stabtree PATH")


def asker(tree: Tree) -> Callable[[Question], str | None]:
    """Return what asks a question; on standard error, so that standard output holds the result alone."""
    from stabtree.report.explain import find, one_screen

    asking = True

    def ask(question: Question) -> str | None:
        nonlocal asking
        verdicts = [verdict for verdict in question.go if verdict != UNKNOWN]
        if asking:
            _show(tree, question, verdicts)
        while asking:
            prompt = f"  {', '.join(verdicts)}, ? for more, or nothing if you don't know"
            try:
                typed = str(typer.prompt(prompt, default="", show_default=False, err=True)).strip().lower()
            except typer.Abort:
                # The input has ended: all further answers are unknown.
                asking = False
                break
            if typed in NOT_KNOWN:
                return None
            meant = (typed, SYNONYMS.get(typed, ""), typed.replace(" ", "_").replace("-", "_"))
            word = next((word for word in meant if word in (*verdicts, *question.words, "?")), None)
            if word == "?":
                width, color = screen()
                found, _ = find(tree, question.id)
                notify(one_screen(tree, found, named=question.id, width=width, color=color))
            elif word:
                return word
            else:
                notify(f"  {typed!r} is not one of them")
        return None

    return ask


def _show(tree: Tree, question: Question, verdicts: list[str]) -> None:
    notify(f"\n{question.id}  {question.ask}")
    if question.person:
        notify(f"  {question.person}")
    for verdict in verdicts:
        target = question.go[verdict]
        if target in tree.leaves:
            leads = tree.leaves[target].title
        else:
            leads = f"asks next: {tree.questions[target].ask}"
        words = [word for word, meant in question.words.items() if meant == verdict]
        also = f" (or {', '.join(words)})" if words else ""
        notify(f"    {verdict}{also}: {leads}")
