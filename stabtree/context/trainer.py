"""Which trainer wrote the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import clean
from stabtree.context.model import INFERRED, LOGGED, Known
from stabtree.context.settings import how, why
from stabtree.frameworks.load import all_trainers, framework
from stabtree.frameworks.recognise import LoggedFile, Recognised, of_log

if TYPE_CHECKING:
    from stabtree.run import FileUse, Run


def framework_of(run: Run) -> Known[str]:
    """Return the trainer that wrote the log, else the one that the configuration is for.

    What a log shows comes first: the configuration of an engine (DeepSpeed) may be all that is configured. A trainer
    that is built on the one that the log shows writes the same log: there the configuration decides.
    """
    configured = str(run.setting("framework") or "")
    written = next(filter(lambda found: found.id, map(_wrote, run.sources)), Recognised())
    if configured in all_trainers() and (not written.id or framework(configured).built_on == written.id):
        return Known(configured, how(run, "framework"), why(run, "framework"))
    if written.id:
        return Known(written.id, LOGGED if written.sure else INFERRED, clean(written.why, 100))
    return Known()


def _wrote(source: FileUse) -> Recognised:
    columns = source.columns
    filled = {column.name: column.logged for column in columns if column.metric and column.logged}
    begins_at = columns[0].first if columns else None
    names = [column.name for column in columns]
    return of_log(LoggedFile(names, source.path, source.format, begins_at, source.rows, filled))
