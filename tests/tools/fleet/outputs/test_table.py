"""Many runs on a screen: all of few, of many the causes and the worst, at every width."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.report.options import RenderOptions
from stabtree.tools.fleet.outputs.groups import count_runs, next_command
from stabtree.tools.fleet.outputs.spark import CELLS, levels, paths, spark
from stabtree.tools.fleet.outputs.table import table
from tests.tools.fleet.outputs.made import hostile, judged, many


def told(count: int, healthy: int, **how: object) -> str:
    """The table of so many runs at 80 columns."""
    return "".join(table(many(count, healthy), RenderOptions(width=80), **how))  # type: ignore[arg-type]


def test_few_runs_are_all_listed() -> None:
    """Healthy ones too, each with its step and its small line."""
    text = told(20, 20)
    assert text.startswith("40 runs: ")
    assert len(re.findall(r"^  (?:sweep-\d|good)/seed\d+\.csv  ", text, re.MULTILINE)) == 40
    assert len(re.findall(r"seed\d+\.csv +[▁-█×]{8} ", text)) == 35  # those that could be read
    assert "--worst" not in text


def test_of_many_runs_the_causes_are_told_and_the_worst_listed() -> None:
    """Each cause once, with how many runs, from which steps on, and what to do; the rest is counted."""
    text = told(80, 900)
    causes, _, rows = text.partition("  run ")
    assert len(re.findall("^ CRITICAL", causes, re.MULTILINE)) == 2
    assert re.search(r"CRITICAL +20  The run overflowed in fp16 +730-749\n +fp16-overflow · .* more\n +→ ", causes)
    assert re.search(r"^ OK +900  Healthy$", causes, re.MULTILINE)
    assert len(re.findall(r"seed\d+\.csv", rows.partition("\nand ")[0])) == 20
    assert "and 60 more that are not healthy: --worst 80, or --output csv=runs.csv" in text
    assert "good/" not in rows
    assert len(re.findall(r"seed\d+\.csv  ", told(80, 900, worst=50).partition("  run ")[2])) == 50


def test_the_last_line_is_what_to_type() -> None:
    """The worst run in full, with the name of the run where a file holds several."""
    assert told(80, 900).splitlines()[-1] == "next  stabtree diagnose runs/sweep-0/seed00000.csv"
    one = replace(judged()[0], path="my runs/sweep.csv", run="lr 3e-3")
    assert next_command(one) == "stabtree diagnose 'my runs/sweep.csv' --run 'lr 3e-3'"
    assert next_command(replace(one, path="-x.csv", run="")) == "stabtree diagnose ./-x.csv"
    assert next_command(hostile()) == "stabtree diagnose PATH --run NAME"


def test_runs_can_be_grouped_by_folder_and_by_verdict() -> None:
    """A folder is one group whatever its runs came to, with what was found in it; any other word is an error."""
    folders = told(90, 100, by="folder").partition("  run ")[0]
    assert re.search(r"CRITICAL +30  sweep-0/: .* critical, .*\n +\d+ fp16-overflow, ", folders)
    assert re.search(r"OK +100  good/: 100 ok", folders)
    assert re.search(r"CRITICAL +\d+  \d+ fp16-overflow and \d+ nan-forward", told(90, 100, by="verdict"))
    with pytest.raises(StabtreeError, match="cannot group by"):
        told(1, 0, by="colour")


@pytest.mark.parametrize("width", [40, 60, 80, 140])
@pytest.mark.parametrize("plain", [False, True])
def test_every_line_fits_and_says_nothing_it_must_not(width: int, plain: bool) -> None:
    """At any width, hostile names among them; in ASCII where nothing else can be shown."""
    runs = [hostile(), *many(80, 300)]
    text = "".join(table(runs, RenderOptions(width=width, ascii=plain)))
    assert all(len(line) <= width for line in text.splitlines()[:-1] if width >= 60)
    assert "in fp16" in text.partition("  run ")[2]
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.isascii() or not plain


def test_memory_does_not_grow_with_the_runs() -> None:
    """Ten times as many runs take no more of it."""
    peaks = []
    for count in (2_000, 20_000):
        tracemalloc.start()
        count_runs(many(count // 10, count), 40)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 50_000


def test_a_small_line_shows_spikes_and_holes() -> None:
    """A spike is the highest cell, what was not finite is crossed, and the finding begins another piece."""
    (before, _), (after, _) = spark([1.0] * 16 + [9.0] + [1.0] * 7 + [None] * 8, 24)
    assert (before, after) == ("▁▁▁▁█▁", "××")
    assert "".join(text for text, _ in spark([1.0, 2.0, 3.0, 4.0], ascii=True)) == "__..--''"
    assert levels([1.0, 1.0, None], 8) == [3, 3, None]
    assert levels([-1.7e308, 1.7e308, 0.0], 3) == [0, 2, 1]
    assert len("".join(text for text, _ in spark([]))) == CELLS


def test_a_drawn_line_breaks_where_nothing_was_finite() -> None:
    """One closed band before the hole, a stroke in it; from the finding on it is the other path."""
    curve, mark = paths([3.0, 2.0, 2.0, 1.0, None, None, 1.0, 1.0], 4)
    assert (curve.count("M"), curve.count("z")) == (1, 1)
    assert (mark.count("h"), mark.count("z")) == (1, 1)
    assert paths([]) == ("", "")
