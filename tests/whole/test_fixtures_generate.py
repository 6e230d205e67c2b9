"""The fixture runs show what their names say, and the generator reproduces them to the byte."""

from __future__ import annotations

import csv
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = sorted(path.parent.relative_to(FIXTURES).as_posix() for path in FIXTURES.glob("*/*/manifest.json"))
# Cheap to train, and between them every precision, optimizer and file format.
SAMPLE = [
    *("phase19/nan-backward", "phase19/nan-unlocated", "phase19/nan-layer", "phase19/spike-unexplained"),
    *("phase19/scale-constant", "convergence/dead-units", "convergence/gradients-add-up"),
]

Column = dict[int, float]


def manifest(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FIXTURES / name / "manifest.json").read_text(encoding="utf-8"))
    return loaded


def rows(name: str) -> list[dict[str, Any]]:
    path = FIXTURES / name / manifest(name)["metrics_file"]
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            return list(csv.DictReader(file))
        return [json.loads(line) for line in file]


def column(name: str, metric: str) -> Column:
    """Return step -> value, leaving out what was not logged."""
    return {int(row["step"]): float(row[metric]) for row in rows(name) if row.get(metric) not in {None, ""}}


def leaf(name: str, metric: str = "loss") -> Column:
    return column(f"phase19/{name}", metric)


def metrics(name: str) -> set[str]:
    return {metric for row in rows(f"phase19/{name}") for metric in row}


def bad(series: Column) -> list[int]:
    return [step for step, value in series.items() if not math.isfinite(value)]


def mean(series: Column, first: int, last: int) -> float:
    return statistics.fmean(v for s, v in series.items() if first <= s < last and math.isfinite(v))


def height(loss: Column, step: int) -> float:
    """Return how many σ a step stands above the 100 steps before it."""
    before = [v for s, v in loss.items() if step - 100 <= s < step and math.isfinite(v)]
    return (loss[step] - statistics.fmean(before)) / statistics.stdev(before)


def tallest(loss: Column) -> int:
    return max((step for step in loss if step >= 150), key=lambda step: height(loss, step))


def recovered_after(loss: Column, spike: int) -> int:
    """Return after how many steps the mean of ten is back within half a σ of the level before."""
    before = [v for s, v in loss.items() if spike - 120 <= s < spike - 20]
    limit = statistics.fmean(before) + 0.5 * statistics.stdev(before)
    return next(n for n in range(1, 500) if mean(loss, spike + n, spike + n + 10) <= limit)


def generator(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FIXTURES / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_generator_reproduces_committed_files() -> None:
    """Training the sample again gives the same bytes."""
    done = generator("--check", *SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_generator_rejects_unknown_name() -> None:
    """A name that is no case is an error that repeats the name."""
    done = generator("--check", "phase19/no-such-leaf")
    assert done.returncode == 2
    assert "phase19/no-such-leaf" in done.stderr


def test_fixtures_are_small() -> None:
    """No file is larger than 150 KB, all together stay under 2 MB."""
    sizes = [path.stat().st_size for name in NAMES for path in (FIXTURES / name).iterdir()]
    assert max(sizes) < 150_000
    assert sum(sizes) < 2_000_000


@pytest.mark.parametrize("name", NAMES)
def test_manifest_is_complete(name: str) -> None:
    """Every manifest has the same keys, and its run is not longer than planned."""
    keys = "name dtype optimizer lr_schedule batch_size max_steps grad_clip log_interval checkpoint_every"
    content = manifest(name)
    assert list(content) == [*keys.split(), "n_classes", "seed", "metrics_file"]
    assert content["name"] == name.partition("/")[2]
    steps = [int(row["step"]) for row in rows(name)]
    assert steps == list(range(0, steps[-1] + 1, content["log_interval"]))
    assert 300 <= steps[-1] < content["max_steps"] <= 1500


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("/healthy") or name.startswith("healthy/")])
def test_healthy_run_learns(name: str) -> None:
    """A healthy loss is finite, falls, ends at its lowest level, and has no step 5σ above its window."""
    loss = column(name, "loss")
    end = max(loss) + 1
    assert not bad(loss)
    assert mean(loss, end - end // 5, end) <= mean(loss, end // 2, end - end // 5) < 0.7 * mean(loss, 0, end // 5)
    assert height(loss, tallest(loss)) < 5


@pytest.mark.parametrize("name", ["nan-forward", "nan-structural"])
def test_forward_nan_comes_without_warning(name: str) -> None:
    """The loss is inf at once, log(0), while the gradients before were ordinary; then all is NaN."""
    loss, grad_norm = leaf(name), leaf(name, "grad_norm")
    first = bad(loss)[0]
    assert loss[first] == math.inf
    assert bad(loss) == list(range(first, max(loss) + 1)) == bad(grad_norm)
    assert max(grad_norm[s] for s in range(first - 50, first)) < 3 * mean(grad_norm, first - 100, first)


def test_nan_backward_explodes_first() -> None:
    """The gradient is tenfold for three steps, then inf, one step before the loss is NaN."""
    loss, grad_norm = leaf("nan-backward"), leaf("nan-backward", "grad_norm")
    first = bad(loss)[0]
    assert grad_norm[first - 1] == math.inf
    usual = mean(grad_norm, first - 110, first - 10)
    assert all(grad_norm[s] > 10 * usual for s in range(first - 4, first))


def test_nan_unlocated_logs_little() -> None:
    """A bf16 run with a NaN and nothing to locate it by."""
    assert manifest("phase19/nan-unlocated")["dtype"] == "bf16"
    assert metrics("nan-unlocated") == {"step", "loss", "lr"}
    assert bad(leaf("nan-unlocated"))


def test_nan_layer_starts_in_block1() -> None:
    """At the first NaN the layers before block1.mlp are finite, and none from there on."""
    first = bad(leaf("nan-layer"))[0]
    order = ["embedding", "block0.mlp", "block1.mlp", "final_ln", "lm_head", "softmax", "loss"]
    finite = [leaf("nan-layer", f"activation_finite/{layer}") for layer in order]
    assert [f[first] for f in finite] == [1, 1, 0, 0, 0, 0, 0]
    assert all(f[first - 1] == 1 for f in finite)


def test_nan_skipped_leaves_no_trace() -> None:
    """Three single NaN steps, and the loss goes on falling."""
    loss = leaf("nan-skipped")
    assert bad(loss) == [240, 467, 641]
    assert all(mean(loss, s + 1, s + 50) < 1.1 * mean(loss, s - 50, s) for s in bad(loss))


def test_loss_stops_while_steps_go_on() -> None:
    """From one step on loss and gradient are empty, step and lr are not."""
    last = max(leaf("loss-stops"))
    assert not bad(leaf("loss-stops"))
    assert max(leaf("loss-stops", "grad_norm")) == last
    assert max(leaf("loss-stops", "lr")) == 799 > last + 300


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("spike-lr-jump", 10.0),
        ("spike-duplicate-batch", 8.0),
        ("spike-bad-batch", 30.0),
        ("spike-unexplained", 20.0),
        ("spike-minor", 6.0),
    ],
)
def test_recoverable_spike(name: str, least: float) -> None:
    """The spike stands out, and within 50 steps the loss is back at its level."""
    loss = leaf(name)
    spike = tallest(loss)
    assert height(loss, spike) > least
    assert recovered_after(loss, spike) < 50


def test_spike_lr_jump_has_a_jump() -> None:
    """The learning rate is twentyfold for three steps, and the spike follows at once."""
    lr = leaf("spike-lr-jump", "lr")
    jumps = [s for s in lr if s > 100 and lr[s] > 10 * lr[100]]
    assert jumps == [430, 431, 432]
    assert tallest(leaf("spike-lr-jump")) in range(430, 434)


def test_spike_duplicate_batch_follows_repeats() -> None:
    """One batch is fed twelve times, no other twice, and the spike is the first batch after it."""
    ids = {int(row["step"]): row["batch_id"] for row in rows("phase19/spike-duplicate-batch")}
    repeated = [s for s in ids if list(ids.values()).count(ids[s]) > 1]
    assert repeated == list(range(380, 392))
    assert tallest(leaf("spike-duplicate-batch")) == 392


def test_spike_bad_batch_has_giant_gradient() -> None:
    """The gradient before clipping is more than thirty times its rolling mean, at that step only."""
    grad_norm = leaf("spike-bad-batch", "grad_norm")
    assert grad_norm[466] > 30 * mean(grad_norm, 366, 466)
    assert max(v for s, v in grad_norm.items() if s != 466) < 10


def test_spike_unexplained_logs_little() -> None:
    """Only step and loss are there."""
    assert metrics("spike-unexplained") == {"step", "loss"}


def test_spike_minor_is_minor() -> None:
    """Not above 9σ, and nothing else is unusual at that step."""
    loss, grad_norm = leaf("spike-minor"), leaf("spike-minor", "grad_norm")
    assert tallest(loss) == 523
    assert height(loss, 523) < 9
    assert grad_norm[523] < 3 * mean(grad_norm, 423, 523)


def test_spike_persistent_never_recovers() -> None:
    """After the bad batch the loss stays two σ above its old level for 300 steps and more."""
    loss = leaf("spike-persistent")
    old = [v for s, v in loss.items() if 311 <= s < 411]
    limit = statistics.fmean(old) + 2 * statistics.stdev(old)
    assert tallest(loss) == 411
    assert all(mean(loss, s, s + 20) > limit for s in range(421, 780, 20))


def test_scale_constant_never_learns() -> None:
    """Every gradient overflows, the scale never moves, the weights neither."""
    assert len(bad(leaf("scale-constant", "grad_norm"))) == len(leaf("scale-constant")) == 600
    assert set(leaf("scale-constant", "loss_scale").values()) == {2.0**19}
    assert len(set(leaf("scale-constant", "weight_norm/head").values())) == 1


def test_scale_collapse_goes_below_one() -> None:
    """The scale starts at 65536, ends below 1, and the loss is finite throughout."""
    scale = leaf("scale-collapse", "loss_scale")
    assert scale[0] == 65536
    assert scale[max(scale)] < 1
    assert not bad(leaf("scale-collapse"))


def test_fp16_overflow_tells_its_story() -> None:
    """The scale grows, the gradient overflows again and again, the scale falls 1000-fold, the loss is NaN."""
    loss, grad_norm, scale = (leaf("fp16-overflow", m) for m in ("loss", "grad_norm", "loss_scale"))
    first = bad(loss)[0]
    assert scale[first - 150] > 4 * scale[0]
    assert len([s for s in bad(grad_norm) if first - 150 <= s < first]) >= 8
    assert scale[first] < scale[first - 150] / 1000
    assert bad(loss) == list(range(first, max(loss) + 1))


@pytest.mark.parametrize("name", ["phase19/normal-backoff", "healthy/fp16-backoffs"])
def test_normal_backoff_keeps_its_rhythm(name: str) -> None:
    """Overflows are single steps, each halves the scale, which comes back and never goes low."""
    grad_norm, scale = column(name, "grad_norm"), column(name, "loss_scale")
    overflows = bad(grad_norm)
    assert len(overflows) >= 5
    assert all(scale[s + 1] == scale[s] / 2 for s in overflows if s + 1 in scale)
    assert min(scale.values()) >= scale[0] / 4
    assert not bad(column(name, "loss"))


def test_grad_nonfinite_is_only_the_gradient() -> None:
    """Three NaN gradients in a bf16 run without a loss scale, and a loss that never shows them."""
    assert manifest("phase19/grad-nonfinite")["dtype"] == "bf16"
    assert "loss_scale" not in metrics("grad-nonfinite")
    assert bad(leaf("grad-nonfinite", "grad_norm")) == [310, 488, 655]
    assert height(leaf("grad-nonfinite"), tallest(leaf("grad-nonfinite"))) < 4.5


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("lr-rising", 600),
        ("weight-decay-low", 550),
        ("weight-decay-high", 640),
        ("grad-norm-rising", 600),
        ("slow-rise", 600),
    ],
)
def test_loss_rises_slowly(name: str, first: int) -> None:
    """Fifty steps are higher than the fifty before on the whole, without a NaN or a 5σ spike."""
    loss = leaf(name)
    end = max(loss) + 1
    middle = (first + end) // 2
    assert not bad(loss)
    assert mean(loss, first - 50, first + 50) < 0.97 * mean(loss, middle - 50, middle + 50)
    assert mean(loss, middle - 50, middle + 50) < 0.97 * mean(loss, end - 100, end)
    assert height(loss, tallest(loss)) < 5


def change(name: str, metric: str, steps: int) -> float:
    """Return the last value of a series over that `steps` before."""
    series = leaf(name, metric)
    return series[max(series)] / series[max(series) - steps]


def test_lr_rising_rises() -> None:
    """The learning rate goes up at each of the last 300 steps."""
    lr = leaf("lr-rising", "lr")
    assert all(lr[s] > lr[s - 1] for s in range(550, 850))


def test_weight_decay_moves_the_weights() -> None:
    """A weight norm more than doubles, or halves, within the last 200 steps, under a constant lr."""
    assert change("weight-decay-low", "weight_norm/head", 200) > 2
    assert change("weight-decay-high", "weight_norm/blocks", 200) < 0.5
    assert change("weight-decay-low", "lr", 200) == change("weight-decay-high", "lr", 200) == 1


def test_grad_norm_rising_is_nothing_else() -> None:
    """The gradient norm rises over the last 300 steps, the learning rate falls, the weights stay."""
    grad_norm = leaf("grad-norm-rising", "grad_norm")
    assert mean(grad_norm, 500, 600) * 1.05 < mean(grad_norm, 650, 750)
    assert mean(grad_norm, 650, 750) * 1.05 < mean(grad_norm, 800, 900)
    assert change("grad-norm-rising", "lr", 300) < 1
    for group in ("embed", "blocks", "head"):
        assert 0.8 < change("grad-norm-rising", f"weight_norm/{group}", 300) < 1.25


def test_slow_rise_shows_in_eval() -> None:
    """The eval loss rises too, the learning rate falls, and nothing else is logged."""
    eval_loss = leaf("slow-rise", "eval_loss")
    assert metrics("slow-rise") == {"step", "loss", "lr", "eval_loss"}
    assert eval_loss[600] < eval_loss[700] < eval_loss[850]
    assert change("slow-rise", "lr", 300) < 1


def test_plateau_is_flat() -> None:
    """In the last half loss, eval loss and gradient norm keep their level within 4%."""
    for metric in ("loss", "eval_loss", "grad_norm"):
        series = leaf("plateau", metric)
        assert mean(series, 900, 1200) == pytest.approx(mean(series, 600, 900), rel=0.04)
    assert mean(leaf("plateau"), 600, 900) < 0.5 * mean(leaf("plateau"), 0, 20)


def test_healthy_still_falls() -> None:
    """The last 150 steps are 4% lower than the 150 before."""
    assert mean(leaf("healthy"), 850, 1000) < 0.96 * mean(leaf("healthy"), 700, 850)
