"""`stabtree.assert_stable`: a run as a test of a project's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.judging.judge import Judging, accepted_by
from stabtree.judging.levels import exit_code, levels_of
from stabtree.judging.settings import read_settings
from stabtree.run import Run
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.diagnosis.result import Diagnosis


def assert_stable(
    run: object,
    *,
    fail_on: str | Iterable[str] = (),
    accept_partial: bool = False,
    set: Iterable[str] = (),  # noqa: A002 - the option's name
    ignore: Iterable[str] = (),
    baseline: str | None = None,
    config: str | None = None,
    **reading: Any,
) -> Diagnosis:
    """Fail a test where `stabtree diagnose` would fail a job.

    The settings of the working directory count as they do there. A run that could not be judged is no pass.

    Args:
        run: the run, or what `load_run` takes: a path, a DataFrame, columns, records.
        fail_on: the levels of `--fail-on`, as `"critical"`; the project's, else warning.
        accept_partial: let a run pass if nothing is wrong in what its log allowed to judge.
        set: parameters, each `"Q2.1.sigma=4"`.
        ignore: leaves that count for nothing.
        baseline: the file of findings that are accepted; the project's where not given.
        config: a file of settings, instead of the working directory's.
        reading: options of `load_run`.

    Returns:
        What was found, for what else is to be asserted.

    Raises:
        AssertionError: with the report of one screen.
        StabtreeError: where the log can't be read, or an argument is wrong.
    """
    said, given = [fail_on] if isinstance(fail_on, str) else [*fail_on], tuple(set)
    every = reading.get("checkpoint_every")
    project = read_settings(config)
    settings = project.without({"fail_on": said, "set": given, "baseline": baseline, "checkpoint_every": every})
    levels = levels_of(said or [*settings.fail_on])
    if not isinstance(run, Run):
        from stabtree.loaders import load_run

        how = settings.reading(reading.get("columns", {}), reading.get("step_column"), every)
        run = load_run(run, **{**reading, **how})
    known = accepted_by(baseline, settings)
    found = Judging(settings, set=given, ignore=tuple(ignore), baseline=known).diagnosed(run)
    verdict = Severity.OK if (accept_partial or project.accept_partial) and found.partial else found.verdict
    if exit_code([verdict], levels):
        raise AssertionError(f"the run is not stable\n{found.to_text()}")
    return found
