"""From where on a run is worse, what else differs, and what is noise."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.run import Gap, Run, Setting
from stabtree.tools.compare.compare import ENVELOPE, HISTORY, SEED, Comparison, Unlike, Verdict, compare_runs
from stabtree.tools.compare.outputs import basis, headline
from tests.conftest import falling, make_run, series
from tests.tools.compare.made import KINDS, made_pairs

ROWS = 400
AT = 300


def healthy(seed: int, rows: int = ROWS) -> Run:
    """A run with a noisy loss and a noisy gradient norm."""
    norms = 1 + 0.1 * np.random.default_rng(seed + 50).normal(size=rows)
    return make_run({"loss": falling(rows, seed=seed), "grad_norm": norms, "lr": np.full(rows, 1e-3)})


def changed(run: Run, metric: str, at: int, factor: float) -> Run:
    """A run with a series that is `factor` times as large from a row on."""
    one = run.series[metric]
    values = np.where(np.arange(len(one)) >= at, factor * one.values, one.values)
    return replace(run, series={**run.series, metric: replace(one, values=values)})


def where(found: Comparison) -> tuple[str, int] | None:
    """What is told first, and from which step on."""
    return (found.first.metric, found.first.step) if found.first else None


@pytest.mark.parametrize(("seed", "good_runs"), [(100, 1), (101, 1), (102, 3)])
def test_made_pairs_are_worse_where_they_are(seed: int, good_runs: int) -> None:
    """Of 40 pairs 95% to 2% of the rows; none of those that end alike, and no difference at all of equal ones."""
    near, rest = [], []
    for pair in made_pairs(seed, good_runs=good_runs):
        found = compare_runs(pair.good, pair.bad)
        if pair.first_worse is None:
            rest.append((found.verdict, bool(found.differences)) == (Verdict.NO_WORSE, pair.kind != KINDS[-1]))
        else:
            told = found.first_worse
            near.append(told is not None and abs(told - pair.first_worse) <= 0.02 * found.rows)
    assert all(rest)
    assert sum(near) >= 0.95 * len(near)


def test_with_one_seed_the_first_digit_that_differs_is_told() -> None:
    """A millionth is enough; the series follow in their order, each with the last step alike."""
    good = healthy(1)
    bad = changed(changed(good, "grad_norm", AT, 1 + 1e-6), "loss", AT + 5, 3.0)
    found = compare_runs([good], bad)
    assert (found.method, found.verdict, where(found)) == (SEED, Verdict.WORSE, ("loss", AT + 5))
    assert [(item.metric, item.step) for item in found.differences] == [("grad_norm", AT), ("loss", AT + 5)]
    assert found.differences[0].last_alike == AT - 1
    assert found.first is not None
    assert found.first.times == pytest.approx(3, rel=0.1)


def test_a_run_does_not_differ_from_itself_however_it_was_printed() -> None:
    """Equal values in more or fewer digits, or as float32, are no difference."""
    for form in (np.copy, lambda values: np.round(values, 4), lambda values: values.astype(np.float32).astype(float)):
        printed = {name: replace(one, values=form(one.values)) for name, one in GOOD.series.items()}
        found = compare_runs([GOOD], replace(GOOD, series=printed))
        assert (found.method, found.verdict, found.differences) == (SEED, Verdict.NO_WORSE, ())


def infinite(run: Run, *rows: int) -> Run:
    """A run with a gradient norm that is infinite in some rows."""
    values = run.series["grad_norm"].values.copy()
    values[[*rows]] = np.inf
    return replace(run, series={**run.series, "grad_norm": series("grad_norm", values)})


def part_of(run: Run, rows: slice, *metrics: str) -> Run:
    """A run of which the series, or these of them, hold some rows alone."""
    cut = {name: series(name, run.series[name].values[rows], run.series[name].steps[rows]) for name in run.series}
    return replace(run, series={**run.series, **{name: cut[name] for name in metrics or cut}})


GOOD, FOUR = healthy(1), [healthy(seed) for seed in range(1, 5)]
STOPPED = replace(part_of(GOOD, slice(AT), "loss"), gaps=(Gap("loss", AT, ROWS - 1, ROWS - AT, at_end=True),))


@pytest.mark.parametrize(
    ("good", "bad", "method", "first"),
    [
        # Another seed differs where it jumps.
        ([GOOD], changed(healthy(4), "grad_norm", AT, 4.0), HISTORY, ("grad_norm", AT)),
        ([GOOD], changed(healthy(2), "lr", AT, 2.0), HISTORY, ("lr", AT)),
        # Several good runs make an envelope.
        (FOUR, healthy(7), ENVELOPE, None),
        (FOUR, changed(healthy(7), "loss", AT, 1.6), ENVELOPE, ("loss", AT)),
        # One row that is NaN is enough where the good run has none; an inf now and then is usual where it has some.
        ([GOOD], changed(healthy(2), "loss", AT, np.nan), HISTORY, ("loss", AT)),
        ([infinite(GOOD, 50, 120)], infinite(healthy(2), 80, 200), HISTORY, None),
        # Rows are joined where both were logged.
        ([part_of(GOOD, slice(None, None, 10))], changed(GOOD, "loss", AT + 1, 2.0), SEED, ("loss", AT + 10)),
        # A series that stops in the bad run alone is lost there: often a NaN that was written as an empty cell.
        ([GOOD], STOPPED, SEED, ("loss", AT)),
    ],
)
def test_runs_differ_where_they_do(good: list[Run], bad: Run, method: str, first: tuple[str, int] | None) -> None:
    found = compare_runs(good, bad)
    assert (found.method, where(found)) == (method, first)


def test_what_is_no_difference_is_noted() -> None:
    """A length, a rate that was set otherwise."""
    found = compare_runs([GOOD], part_of(GOOD, slice(AT)))
    assert (found.verdict, found.rows, found.last_step) == (Verdict.NO_WORSE, AT, AT - 1)
    assert found.notes == (f"The bad run ends at step {AT - 1:,}, {ROWS - AT} steps earlier.",)
    found = compare_runs([GOOD], changed(healthy(2), "lr", 0, 2.0))
    assert (found.verdict, found.left_out) == (Verdict.NO_WORSE, (("lr", "it differs from the first row on"),))


REWARDS = 0.4 + 0.05 * np.random.default_rng(3).normal(size=ROWS)
UNTAUGHT = 4 + 0.05 * np.random.default_rng(9).normal(size=ROWS)
LATE, LOSS = np.arange(ROWS) >= AT, {"loss": falling(ROWS)}


@pytest.mark.parametrize(
    ("good", "bad", "told"),
    [
        # For the better, and worse for a time: told, and no alarm.
        ({}, {"loss": falling(ROWS, seed=2) * np.where(LATE, 0.6, 1)}, "DIFFERS  bad: loss better from step 300 on"),
        (
            {},
            {"loss": falling(ROWS, seed=2) + 2 * LATE - 2 * (np.arange(ROWS) > AT + 9)},
            "DIFFERS  bad: loss worse from step 300 to 31",
        ),
        # A reward is better the higher it is, and beside it the loss says nothing.
        (
            {**LOSS, "reward": REWARDS},
            {"reward": np.where(LATE, 0.0, REWARDS[::-1]), "loss": 0.5 * falling(ROWS)},
            "DIVERGES  bad: reward worse from step 300 on, no different before; 0 instead of 0.4",
        ),
        # A run that never learns was never alike.
        ({}, {"loss": UNTAUGHT}, "DIVERGES  bad: loss worse from step "),
        # What has no better side alone gives no verdict, nor do too few rows or none that moves.
        ({"grad_norm": REWARDS}, {"grad_norm": 9 * REWARDS[::-1]}, "CAN'T TELL  bad: no outcome in common"),
        ({"loss": falling(9)}, {"loss": falling(9, seed=3)}, "CAN'T TELL  bad: loss: 9 rows in common, 12 are needed"),
        ({"loss": np.full(ROWS, 1.5)}, {}, "CAN'T TELL  bad: loss: it never moves in the good run"),
        ({"loss": np.full(ROWS, np.nan)}, {}, "CAN'T TELL  bad: loss: it is NaN or inf"),
    ],
)
def test_what_is_told(good: dict[str, np.ndarray], bad: dict[str, np.ndarray], told: str) -> None:
    """The headline: what is worse and what is better as such, and why neither can be told."""
    found = compare_runs([make_run(good or LOSS)], make_run(bad or LOSS), ["good", "bad"])
    assert headline(found).startswith(told)


def test_of_several_good_runs_the_one_of_the_same_seed_is_compared_with() -> None:
    """So that a difference within the envelope is found."""
    good = [healthy(seed) for seed in range(1, 4)]
    found = compare_runs(good, changed(good[1], "loss", AT, 1.001), ["a", "b", "c", "bad"])
    assert (found.method, where(found)) == (SEED, ("loss", AT))
    assert any("b, which has the same seed" in note for note in found.notes)


def test_by_tokens_the_nearest_rows_are_matched() -> None:
    """Each row once, at most half an interval apart, as token counts rarely agree exactly."""
    good, bad = healthy(1), changed(healthy(2), "grad_norm", AT, 4.0)
    counted = []
    for run, offset in ((good, 7), (bad, 40)):
        steps = 1000 * np.arange(ROWS) + offset
        rows = {name: series(name, item.values, steps) for name, item in run.series.items()}
        counted.append(replace(run, series=rows))
    assert where(compare_runs(counted[:1], counted[1], by="tokens")) == ("grad_norm", 1000 * AT + 40)
    assert compare_runs(counted[:1], counted[1]).reason == "they have no steps in common"


def test_runs_without_rows_or_series_in_common_can_not_be_told() -> None:
    """Neither worse nor a pass."""
    later = make_run({"loss": falling(60)}, np.arange(60) + 90)
    for bad, reason in ((later, "they have no steps"), (make_run({"grad_norm": falling(60)}), "they have no series")):
        found = compare_runs([make_run({"loss": falling(60)})], bad)
        assert (found.verdict, found.reason) == (Verdict.UNKNOWN, f"{reason} in common")


def test_settings_that_differ_are_listed_and_no_others() -> None:
    """Those of one run alone too; what all say alike, and the runs' names, are left out."""
    good = replace(
        healthy(1), config={"lr": Setting(1e-3, "a"), "name": Setting("a", "a"), "dtype": Setting("bf16", "a")}
    )
    bad = replace(healthy(2), config={"lr": Setting(1e-2, "b"), "name": Setting("b", "b"), "seed": Setting(3, "b")})
    assert compare_runs([good, good], bad).settings == (
        Unlike("lr", (1e-3,), 1e-2),
        Unlike("dtype", ("bf16",), None),
        Unlike("seed", (), 3),
    )


def probed(number: int, /, **settings: int | str) -> Run:
    """A run whose LayerNorm weights begin at the same norm on every seed, seen every 100 rows."""
    norms = 8 + np.random.default_rng(number + 90).normal(size=ROWS // 100) * 0.01
    norms[0] = 8.0
    run = replace(healthy(number), config={key: Setting(value, "test") for key, value in settings.items()})
    at = np.arange(0, ROWS, 100)
    looked = {
        f"{kind}/ln{index}": series(kind, norms, at) for kind in ("weight_norm", "update_ratio") for index in "12"
    }
    return replace(run, series={**run.series, **looked})


def test_what_begins_alike_on_every_seed_proves_no_seed() -> None:
    """Norms that are equal in the first row alone, and the first loss of DPO, are no digits of one seed."""
    assert compare_runs([probed(1)], probed(2)).verdict is Verdict.NO_WORSE
    pairs = []
    for seed in (1, 2):
        loss = 0.3 + 0.1 * np.random.default_rng(seed).normal(size=ROWS)
        loss[0] = 0.693147
        pairs.append(make_run({"loss": np.round(loss, 6)}))
    assert compare_runs(pairs[:1], pairs[1]).method is HISTORY


def test_seeds_and_precisions_that_are_listed_decide() -> None:
    """However many digits agree, and the screen gives the reason."""
    for key, good, bad, why in (("seed", 1, 2, "The seeds differ"), ("dtype", "fp32", "bf16", "The precisions differ")):
        found = compare_runs([probed(1, **{key: good})], probed(1, **{key: bad}))
        assert (found.method, found.verdict) == (HISTORY, Verdict.NO_WORSE)
        assert basis(found).startswith(why)
    assert compare_runs([probed(1, seed=3, dtype="bf16")], probed(1, seed=3, dtype="bf16")).method is SEED
