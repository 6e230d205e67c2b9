"""Real runs keep their golden records: verdict, headline, onset, restart and first action."""

from __future__ import annotations

import pytest

from benchmarks.golden import GROUPS, paths, read, record

EVERY = {"fixtures": 1, "faultbench": 4}
"""One in how many runs of a group is judged; of the others, whose files not every checkout has beside it, a sample."""
SAMPLE = 15
SMALL = 200_000  # bytes: of what is larger `make golden` looks after


@pytest.mark.parametrize("group", GROUPS)
def test_a_run_is_told_what_its_record_holds(group: str) -> None:
    """`python -m benchmarks.golden` judges all; a change that is meant is recorded with `--record`."""
    folder, names = paths(group)
    if not names:
        pytest.skip("its files are not here")
    records = read(group)
    small = [name for name in names if not (folder / name).is_file() or (folder / name).stat().st_size < SMALL]
    for name in small[:: EVERY.get(group, SAMPLE)]:
        assert record(name, folder).outcome == records[name].outcome, name
