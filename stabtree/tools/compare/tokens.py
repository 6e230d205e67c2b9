"""The column of a log that counts tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.metrics.metric import names
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from stabtree.run import Run

COUNTERS = frozenset(
    names(
        "tokens num_tokens n_tokens total_tokens tokens_total num_tokens_total tokens_seen seen_tokens tokens_so_far "
        "consumed_tokens tokens_consumed trained_tokens train_tokens tokens_trained processed_tokens tokens_processed "
        "cumulative_tokens num_input_tokens_seen train_num_tokens train_num_input_tokens_seen train_tokens_seen "
        "throughput_total_tokens total_tokens_seen"
    )
)


def token_column(run: Run) -> str:
    """Return the name of the column that counts tokens.

    Raises:
        StabtreeError: if no column has such a name.
    """
    for source in run.sources:
        for column in source.columns:
            if normalize(column.name) in COUNTERS:
                return column.name
    where = run.sources[0].path if run.sources else run.name
    raise StabtreeError("no column counts tokens", where=where, hint="name it: --step-column NAME")
