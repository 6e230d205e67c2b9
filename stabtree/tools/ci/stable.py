"""`stabtree.assert_stable`: a run checked in a project's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.judging.judge import Judging, accepted_by
from stabtree.judging.settings import read_settings
from stabtree.judging.verdict import accepts_partial, exit_code, levels_of
from stabtree.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.settings import Settings


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
    """Diagnose a run, and fail a test when `stabtree diagnose` in the working directory would fail a job.

    Args:
        run: the run, or what `load_run` takes: a path, a DataFrame, columns, records.
        fail_on: the levels of `--fail-on`, as `"critical"`; the project's, else warning.
        accept_partial: let a run pass that could not be judged fully, if every check that could run passed.
        set: parameters, each `"Q2.1.sigma=4"`.
        ignore: leaves to ignore.
        baseline: the file of accepted findings; the project's if not given.
        config: a file of settings, instead of the working directory's.
        reading: options of `load_run`.

    Raises:
        AssertionError: with the report of one screen.
        StabtreeError: if the log can't be read, or an argument is wrong.
    """
    words = [fail_on] if isinstance(fail_on, str) else list(fail_on)
    parameters, every = tuple(set), reading.get("checkpoint_every")
    project = read_settings(config)
    given = {"fail_on": words, "set": parameters, "baseline": baseline, "checkpoint_every": every}
    settings = project.without(given)
    words = words or list(settings.fail_on)
    levels = levels_of(words)
    judging = Judging(settings, set=parameters, ignore=tuple(ignore), baseline=accepted_by(baseline, settings))
    diagnosis = judging.diagnosed(_load(run, settings, reading))
    passes = diagnosis.partial and (accept_partial or project.accept_partial or accepts_partial(words))
    if not passes and exit_code([diagnosis.verdict], levels):
        raise AssertionError(f"the run is not stable\n{diagnosis.to_text()}")
    return diagnosis


def _load(run: object, settings: Settings, options: Mapping[str, Any]) -> Run:
    """Return a run, or read it by the options that are given and else by the project's settings."""
    if isinstance(run, Run):
        return run
    from stabtree.loaders import load_run

    given = (options.get("columns", {}), options.get("step_column"), options.get("checkpoint_every"))
    return load_run(run, **{**options, **settings.reading(*given)})
