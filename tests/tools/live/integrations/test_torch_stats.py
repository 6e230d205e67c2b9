"""What a Recorder sees of a torch model: the numbers are right, harm nothing, and answer what a loss can't."""

from __future__ import annotations

import copy
import io
import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import Recorder
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'stabtree[test-integrations]'")

from stabtree.tools.live import torch_stats

if TYPE_CHECKING:
    from pathlib import Path

F = torch.nn.functional
torch.set_num_threads(1)  # what is this small is fastest so


def small() -> Any:
    """A classifier of two layers."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))


def batch(step: int) -> tuple[Any, Any]:
    """A batch that can be learned: the largest of three inputs."""
    x = torch.randn(32, 8, generator=torch.Generator().manual_seed(step))
    return x, x[:, :3].argmax(1)


def rows_of(path: Path) -> dict[int, dict[str, Any]]:
    """The rows of a log by their steps, those of one step together."""
    found: dict[int, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "step" not in row:  # a header, or a setting
            continue
        found.setdefault(row["step"], {}).update(row)
    return found


def test_the_numbers_are_those_of_torch(tmp_path: Path) -> None:
    """grad_norm is what clip_grad_norm_ returns, weight norms and update ratios those of all values."""
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(tmp_path / "run.jsonl") as rec:
        x, y = batch(0)
        F.cross_entropy(model(x), y).backward()
        rec.model(0, model, optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        first = torch.cat([weight.detach().flatten().clone() for weight in model[0].parameters()])
        optimizer.step()
        rec.log(0, loss=1.0)
        after = torch.cat([weight.detach().flatten() for weight in model[0].parameters()])
    row = rows_of(tmp_path / "run.jsonl")[0]
    assert row["grad_norm"] == pytest.approx(float(norm), rel=1e-6)
    assert row["weight_norm/0"] == pytest.approx(float(first.norm()), rel=1e-6)
    assert row["update_ratio/0"] == pytest.approx(float((after - first).norm() / first.norm()), rel=1e-4)
    names = {f"{metric}/{module}" for metric in ("weight_norm", "update_ratio") for module in (0, 2)}
    assert {name for name in row if "/" in name} == names


def test_of_a_large_tensor_a_sample_tells(tmp_path: Path) -> None:
    """Its update ratio is within 2% of that of all values, beside a small tensor of another size of update."""
    model = torch.nn.Sequential(torch.nn.Linear(1000, 1000))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = [weight.detach().clone() for weight in model.parameters()]
    with Recorder(tmp_path / "run.jsonl") as rec:
        (model(torch.randn(8, 1000)) ** 2).sum().backward()
        rec.model(0, model, optimizer)
        optimizer.step()
        rec.log(0, loss=1.0)
    after = [weight.detach() for weight in model.parameters()]
    change = math.hypot(*(float((new - old).norm()) for new, old in zip(after, before, strict=True)))
    ratio = change / math.hypot(*(float(old.norm()) for old in before))
    row = rows_of(tmp_path / "run.jsonl")[0]
    assert [row[name] for name in row if name.startswith("update_ratio")] == [pytest.approx(ratio, rel=0.02)]


@pytest.mark.parametrize("unscaled", [True, False])
def test_under_a_scaler_the_norm_is_unscaled(tmp_path: Path, unscaled: bool) -> None:
    """Whether the scaler divided the gradients before or will do so; the scale and the skipped steps are logged."""
    path = tmp_path / "run.jsonl"
    norms = []
    for begin in (0, 6):
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)
        with Recorder(path, stats_every=1) as rec:
            for step in range(begin, begin + 6):
                x, y = batch(step)
                loss = F.cross_entropy(model(x), y) * (math.inf if step % 6 == 2 else 1.0)
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                if unscaled:
                    scaler.unscale_(optimizer)
                rec.model(step, model, optimizer, scaler=scaler)
                scaler.unscale_(optimizer) if not unscaled else None
                norms.append(math.hypot(*(float(weight.grad.norm()) for weight in model.parameters())))
                scaler.step(optimizer)
                scaler.update()
                rec.log(step, loss=loss)
    rows = rows_of(path)
    assert [rows[step]["loss_scale"] for step in range(6)] == [1024, 1024, 1024, 512, 512, 512]
    assert [rows[step]["skipped_steps"] for step in range(12)] == [0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2]
    finite = [step for step in range(12) if step % 6 != 2]
    assert [rows[step]["grad_norm"] for step in finite] == [pytest.approx(norms[step], rel=1e-5) for step in finite]
    assert not isinstance(rows[2]["grad_norm"], float)
    assert [step for step in range(12) if "update_ratio/0" not in rows[step]] == [2, 8]


def test_clipped_gradients_have_no_norm(tmp_path: Path) -> None:
    """Where somebody clipped before, the norm is not the one that the name means; nor is it without gradients."""
    with Recorder(tmp_path / "run.jsonl", stats_every=1) as rec:
        model = small()
        rec.model(0, model)
        rec.log(0, loss=1.0)
        F.cross_entropy(model(batch(1)[0]), batch(1)[1]).backward()
        rec.model(1, model, clipped=True)
        rec.log(1, loss=1.0)
    rows = rows_of(tmp_path / "run.jsonl")
    assert all("grad_norm" not in row and "weight_norm/0" in row for row in rows.values())


def test_dead_units_are_those_that_no_input_reaches(tmp_path: Path) -> None:
    """Over all micro-batches of the step, without passes of an evaluation, for images by channel."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, bias=False),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 8),
        torch.nn.ReLU(),
    )
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([1.0, 1.0, 1.0, -1.0]).view(4, 1, 1, 1).expand(4, 1, 3, 3))
        model[3].weight.fill_(1.0)
        model[3].bias.copy_(torch.tensor([-1e9] * 6 + [1.0, -12 * 9 - 1.0]))
    with Recorder(tmp_path / "run.jsonl", stats_every=2) as rec:
        for step in range(4):
            for scale in (1.0, 2.0):  # the last unit is reached by the second micro-batch alone
                model(scale * torch.ones(2, 1, 4, 4)).sum().backward()
            model.eval()
            model(1e12 * torch.ones(2, 1, 4, 4))
            model.train()
            rec.model(step, model)
            rec.log(step, loss=1.0)
    rows = rows_of(tmp_path / "run.jsonl")
    dead = {step: {name: row[name] for name in row if "dead" in name} for step, row in rows.items()}
    assert dead == {0: {}, 1: {}, 2: {"dead_relu_frac/1": 0.25, "dead_relu_frac/4": 0.75}, 3: {}}


def test_a_watched_model_can_be_copied_and_saved(tmp_path: Path) -> None:
    """As weights that are averaged and whole checkpoints are; a copy tells the Recorder nothing."""
    model = small()
    with Recorder(tmp_path / "run.jsonl", stats_every=2) as rec:
        rec.model(1, model, torch.optim.SGD(model.parameters(), lr=0.1))
        twin = copy.deepcopy(model)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (twin, torch.load(file, weights_only=False)):
            other(batch(0)[0])
        rec.model(2, model)
    assert "dead_relu_frac/1" not in rows_of(tmp_path / "run.jsonl")[2]


def test_weights_of_every_kind(tmp_path: Path) -> None:
    """bf16, frozen, sparse gradients, none at all, wrapped: what is trained is measured, under its own name."""
    model = torch.nn.ModuleDict(
        {
            "wte": torch.nn.Embedding(10, 4, sparse=True),
            "low": torch.nn.Linear(4, 4).to(torch.bfloat16),
            "frozen": torch.nn.Linear(4, 4).requires_grad_(requires_grad=False),
            "unused": torch.nn.Linear(4, 4),
            "empty": torch.nn.Embedding(0, 4),
        }
    )
    model["low"](model["wte"](torch.tensor([1, 1, 2])).to(torch.bfloat16)).sum().backward()
    with Recorder(tmp_path / "run.jsonl") as rec:
        rec.model(0, torch.nn.DataParallel(model), torch.optim.SGD(model.parameters(), lr=0.1))
        rec.log(0, loss=1.0)
    row = rows_of(tmp_path / "run.jsonl")[0]
    assert {name for name in row if "/" in name} == {"weight_norm/wte", "weight_norm/low", "weight_norm/unused"}
    low = [weight.detach().float() for weight in model["low"].parameters()]
    assert row["weight_norm/low"] == pytest.approx(math.hypot(*(float(weight.norm()) for weight in low)), rel=1e-6)
    assert row["grad_norm"] > 0
    assert load_run(tmp_path / "run.jsonl").setting("trainable_share") == pytest.approx(80 / 100)


def test_many_modules_make_few_groups() -> None:
    """As deep as leaves 32 of them at most."""
    names = [f"model.h.{layer}.{part}.weight" for layer in range(12) for part in ("attn", "mlp", "norm")]
    assert sorted(set(torch_stats.grouped([*names, "model.wte.weight", "scale"]))) == sorted(
        {*(f"model.h.{layer}" for layer in range(12)), "model.wte", "scale"}
    )
    deep = [f"model.h.{layer}.{part}.weight" for layer in range(99) for part in ("attn", "mlp")]
    assert set(torch_stats.grouped(deep)) == {"model.h"}
    assert set(torch_stats.grouped([f"p{number}" for number in range(99)])) == {"all"}


def test_an_update_that_is_known_late_has_a_row_that_goes_not_back(tmp_path: Path) -> None:
    """Where a loop logs before the optimizer steps, or skips that step, no row is read as a restart."""
    path = tmp_path / "run.jsonl"
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(path, stats_every=2) as rec:
        for step in range(40):
            F.cross_entropy(model(batch(step)[0]), batch(step)[1]).backward()
            rec.model(step, model, optimizer)
            rec.log(step, loss=1.0 - step / 100)
            if step % 4 != 2:
                optimizer.step()
    run = load_run(path)
    assert not run.resumes
    assert run.series["update_ratio/0"].steps.tolist() == [*range(0, 40, 4)]


@pytest.mark.parametrize("model", [None, object(), torch.nn.Linear(2, 2, device="meta")])
def test_a_model_that_cannot_be_looked_at_ends_no_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, model: Any
) -> None:
    """It is told once, and the rows are written."""
    with Recorder(tmp_path / "run.jsonl", stats_every=1) as rec:
        for step in range(3):
            rec.model(step, model)
            rec.log(step, loss=1.0)
    assert [record.getMessage().count("could not be looked at") for record in caplog.records] == [1]
    assert [*rows_of(tmp_path / "run.jsonl")] == [0, 1, 2]


def test_a_healthy_run_stays_healthy(tmp_path: Path) -> None:
    """What is looked at every few steps only raises no alarm of its own."""
    model = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    with Recorder(tmp_path / "run.jsonl", stats_every=20) as rec:
        for step in range(300):
            x, y = batch(step)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            rec.model(step, model, optimizer)
            optimizer.step()
            rec.log(step, loss=loss, lr=0.003)
    run = load_run(tmp_path / "run.jsonl")
    assert {"grad_norm", "weight_norm/0", "update_ratio/2", "dead_relu_frac/1"} <= run.series.keys()
    assert not diagnose(run).findings


def test_a_batch_of_tensors_is_known_again(tmp_path: Path) -> None:
    """In bf16, without a dimension, not contiguous: the same values the same id, others and another type another."""
    values = torch.arange(24.0).reshape(4, 6)
    batches = [values, values.clone(), values.t().t(), values.t(), values.bfloat16(), values + 1, values.sum()]
    with Recorder(tmp_path / "run.jsonl") as rec:
        for step, one in enumerate(batches):
            rec.batch(step, {"x": one, "mask": None})
    found = [row["batch_id"] for row in rows_of(tmp_path / "run.jsonl").values()]
    assert found[0] == found[1] == found[2]
    assert len(set(found)) == len(batches) - 2
