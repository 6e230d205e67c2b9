"""From rows to a run: ranks told apart or parts put together, resumes resolved, gaps found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.loaders.gaps import find_gaps
from stabtree.loaders.steps import history
from stabtree.loaders.table import Column
from stabtree.run import Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree._lazy import Bools, Floats, Ints
    from stabtree.loaders.canonical import Rows
    from stabtree.run import Gap, Resume

_RANK_NAME = re.compile(r"(?:rank|worker|process|proc|gpu|device)[-_.]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Assembled:
    """What becomes of the rows of one rank, or of all."""

    series: Mapping[str, Series]
    gaps: tuple[Gap, ...] = ()
    ranks: Mapping[str, Mapping[str, Series]] | None = None
    resumes: tuple[Resume, ...] = ()
    notes: tuple[str, ...] = ()


def assemble(files: Sequence[Rows]) -> Assembled:
    """One run from the rows of one file, of several ranks, or of several parts."""
    note: tuple[str, ...] = ()
    if len(files) == 1:
        rows = files[0]
        if rows.ranks is None:
            return _single(rows)
        by_rank = {str(rank): _pick(rows, rows.ranks == rank) for rank in np.unique(rows.ranks).tolist()}
    elif _are_parts(files):
        ordered = sorted(files, key=lambda rows: int(rows.steps.min()) if len(rows.steps) else 0)
        whole = _single(_concatenate(ordered))
        names = ", ".join(rows.source.path for rows in ordered)
        stitched = f"The files are parts of one run, read in this order: {names}."
        return Assembled(whole.series, whole.gaps, None, whole.resumes, (stitched, *whole.notes))
    else:
        by_rank = dict(zip(_rank_names(files), files, strict=True))
        note = (f"The files are {len(files)} ranks of one run: its series are the mean over the ranks.",)
    return _ranked(by_rank, note)
