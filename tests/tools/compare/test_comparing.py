"""Where runs part: the step, who was first, and what is noise."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.run import Gap, Run, Setting
from stabtree.tools.compare.compare import Axis, Comparison, Method, Parted, Unlike, compare_runs
from stabtree.tools.compare.outputs import basis, markdown
from tests.conftest import falling, make_run, series

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


def rounded(run: Run, digits: int) -> Run:
    """A run printed with so many decimals."""
    return replace(
        run, series={name: replace(one, values=np.round(one.values, digits)) for name, one in run.series.items()}
    )


def where(found: Comparison) -> tuple[str, int] | None:
    """What parted first, and at which step."""
    return (found.first.metric, found.first.step) if found.first else None


def test_with_one_seed_the_first_digit_that_differs_is_the_parting() -> None:
    """A millionth is enough; the series follow in the order in which they part, each with the last step alike."""
    good = healthy(1)
    bad = changed(changed(good, "grad_norm", AT, 1 + 1e-6), "loss", AT + 5, 3.0)
    found = compare_runs([good], bad)
    assert (found.method, found.parted) == (Method.SEED, Parted.YES)
    assert [(item.metric, item.step, item.last_alike) for item in found.partings] == [
        ("grad_norm", AT, AT - 1),
        ("loss", AT + 5, AT + 4),
    ]


def test_a_run_does_not_part_from_itself_however_it_was_printed() -> None:
    """Equal values in more or fewer digits, or as float32, are no difference."""
    good = healthy(1)
    single = {
        name: replace(one, values=one.values.astype(np.float32).astype(float)) for name, one in good.series.items()
    }
    for bad in (good, rounded(good, 4), replace(good, series=single)):
        found = compare_runs([good], bad)
        assert (found.method, found.parted, found.partings) == (Method.SEED, Parted.NO, ())


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
        # Another seed parts where it jumps, and not by its noise.
        *(([GOOD], healthy(seed), Method.HISTORY, None) for seed in (2, 3)),
        *(([GOOD], changed(healthy(seed), "grad_norm", AT, 4.0), Method.HISTORY, ("grad_norm", AT)) for seed in (4, 5)),
        ([GOOD], changed(healthy(2), "lr", AT, 2.0), Method.HISTORY, ("lr", AT)),
        # Several good runs make an envelope.
        (FOUR, healthy(7), Method.ENVELOPE, None),
        (FOUR, changed(healthy(7), "loss", AT, 1.6), Method.ENVELOPE, ("loss", AT)),
        # One row that is NaN is enough where the good run has none; an inf now and then is usual where it has some.
        ([GOOD], changed(healthy(2), "loss", AT, np.nan), Method.HISTORY, ("loss", AT)),
        ([infinite(GOOD, 50, 120)], infinite(healthy(2), 80, 200), Method.HISTORY, None),
        # Rows are joined where both were logged.
        ([part_of(GOOD, slice(None, None, 10))], changed(GOOD, "loss", AT + 1, 2.0), Method.SEED, ("loss", AT + 10)),
        # A series that stops in the bad run alone parts there: often a NaN that was written as an empty cell.
        ([GOOD], STOPPED, Method.SEED, ("loss", AT)),
    ],
)
def test_runs_part_where_they_do(good: list[Run], bad: Run, method: Method, first: tuple[str, int] | None) -> None:
    found = compare_runs(good, bad)
    assert (found.method, where(found)) == (method, first)


def test_what_is_no_parting_is_noted() -> None:
    """A rounding of the digits, a length, a rate that was set otherwise."""
    assert "non-deterministic" in compare_runs([GOOD], changed(GOOD, "loss", AT, 1 + 1e-4)).notes[0]
    assert not compare_runs([GOOD], changed(GOOD, "loss", AT, 2.0)).notes
    found = compare_runs([GOOD], part_of(GOOD, slice(AT)))
    assert (found.parted, found.rows, found.last_step) == (Parted.NO, AT, AT - 1)
    assert found.notes == (f"The bad run ends at step {AT - 1:,}, {ROWS - AT} steps earlier.",)
    found = compare_runs([GOOD], changed(healthy(2), "lr", 0, 2.0))
    assert (found.parted, found.left_out) == (Parted.NO, (("lr", "it differs from the first row on"),))


def test_a_small_shift_is_found_once_it_has_lasted() -> None:
    """Some noises are none in one row and much in many; its first row is told to within some."""
    bad = changed(healthy(2), "grad_norm", AT, 1.5)
    found = compare_runs([healthy(1)], bad)
    assert found.first is not None
    assert found.first.over_rows > 1
    assert abs(found.first.step - AT) <= 8


def test_a_level_parts_where_it_departs() -> None:
    """A run that never learns has no row at which it jumps; one that drops early parts there, and not at its block."""
    flat = 4 + 0.05 * np.random.default_rng(9).normal(size=ROWS)
    found = compare_runs([GOOD], replace(healthy(2), series={"loss": series("loss", flat)}))
    assert found.first is not None
    assert (found.first.metric, found.first.step < ROWS // 4) == ("loss", True)
    rewards = [0.2 + 0.02 * np.random.default_rng(seed).normal(size=120) + np.linspace(0, 0.2, 120) for seed in (1, 2)]
    rewards[1][26:] = 0.0
    found = compare_runs([make_run({"reward": rewards[0]})], make_run({"reward": rewards[1]}))
    assert found.first is not None
    assert 20 <= found.first.step <= 32


def test_of_several_good_runs_the_one_of_the_same_seed_is_compared_with() -> None:
    """So that a difference within the envelope is found."""
    good = [healthy(seed) for seed in range(1, 4)]
    found = compare_runs(good, changed(good[1], "loss", AT, 1.001), ["a", "b", "c", "bad"])
    assert (found.method, where(found)) == (Method.SEED, ("loss", AT))
    assert any("b, which has the same seed" in note for note in found.notes)


def test_by_tokens_the_nearest_rows_are_matched() -> None:
    """Each row once, at most half an interval apart, as token counts rarely agree exactly."""
    good, bad = healthy(1), changed(healthy(2), "grad_norm", AT, 4.0)
    counted = []
    for run, offset in ((good, 7), (bad, 40)):
        steps = 1000 * np.arange(ROWS) + offset
        rows = {name: series(name, item.values, steps) for name, item in run.series.items()}
        counted.append(replace(run, series=rows))
    assert where(compare_runs(counted[:1], counted[1], by=Axis.TOKENS)) == ("grad_norm", 1000 * AT + 40)
    assert compare_runs(counted[:1], counted[1]).reason == "they have no steps in common"


@pytest.mark.parametrize(
    ("good", "bad", "reason"),
    [
        (make_run({"loss": falling(30)}), make_run({"loss": falling(30, seed=3)}), "too few rows in common: 30"),
        (
            make_run({"loss": falling(60)}, np.arange(60)),
            make_run({"loss": falling(60)}, np.arange(60) + 90),
            "no steps",
        ),
        (make_run({"loss": falling(60)}), make_run({"grad_norm": falling(60)}), "no series in common"),
    ],
)
def test_what_can_not_be_told_is_said_to_be(good: Run, bad: Run, reason: str) -> None:
    """Too few rows, no common steps, no common series: neither a parting nor a pass."""
    found = compare_runs([good], bad)
    assert found.parted is Parted.UNKNOWN
    assert reason in found.reason


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
    assert compare_runs([probed(1)], probed(2)).parted is Parted.NO
    pairs = []
    for seed in (1, 2):
        loss = 0.3 + 0.1 * np.random.default_rng(seed).normal(size=ROWS)
        loss[0] = 0.693147
        pairs.append(make_run({"loss": np.round(loss, 6)}))
    assert compare_runs(pairs[:1], pairs[1]).method is Method.HISTORY


def test_seeds_and_precisions_that_are_listed_decide() -> None:
    """However many digits agree, and the screen gives the reason."""
    for key, good, bad, why in (("seed", 1, 2, "The seeds differ"), ("dtype", "fp32", "bf16", "The precisions differ")):
        found = compare_runs([probed(1, **{key: good})], probed(1, **{key: bad}))
        assert (found.method, found.parted) == (Method.HISTORY, Parted.NO)
        assert basis(found).startswith(why)
    assert compare_runs([probed(1, seed=3, dtype="bf16")], probed(1, seed=3, dtype="bf16")).method is Method.SEED


def in_fp16(run: Run) -> Run:
    """The run computed with fewer digits: its loss differs from the first row on, by ever more of its noise."""
    drift = np.random.default_rng(5).normal(size=ROWS) * np.minimum(2e-5 + np.arange(ROWS) * 1e-4, 0.01)
    loss = run.series["loss"]
    return replace(run, series={**run.series, "loss": replace(loss, values=loss.values * (1 + drift))})


def test_digits_of_a_lower_precision_are_no_parting() -> None:
    """A fault in such a run is found where it begins, also where no setting names the precision."""
    good, low = probed(1), in_fp16(probed(1))
    found = compare_runs([good], low)
    assert (found.parted, found.digits_differ) == (Parted.NO, "Their first rows differ by rounding")
    assert where(compare_runs([good], changed(low, "loss", 250, 1.5))) == ("loss", 250)
    # A small change beside an equal first loss is one, as an update that another clipping made.
    assert where(compare_runs([good], changed(good, "update_ratio/ln1", 0, 1.001))) == ("update_ratio/ln1", 0)


def test_at_one_step_the_reward_leads_and_then_what_moved_furthest() -> None:
    """A loss that follows within its noise comes last, with as many digits as show the difference."""
    rng = np.random.default_rng(3)
    columns = {"loss": 1e-3 + 1e-4 * rng.normal(size=ROWS), "grad_norm": 1 + 0.1 * rng.normal(size=ROWS)}
    good = make_run({**columns, "reward": 0.4 + 0.05 * rng.normal(size=ROWS)})
    bad = changed(changed(changed(good, "loss", 26, 1 + 1e-5), "grad_norm", 26, 40.0), "reward", 26, 0.0)
    found = compare_runs([good], bad)
    assert [item.metric for item in found.partings] == ["reward", "grad_norm", "loss"]
    assert all(row.good != row.bad for row in found.partings)
    good_cell, bad_cell = [cell.strip() for cell in markdown(found).split("| loss |")[1].split("|")[:2]]
    assert good_cell != bad_cell
    assert where(compare_runs([good], changed(bad, "reward", 26, np.nan))) == ("reward", 26)
