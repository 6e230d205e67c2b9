"""The faults: in the data, in the model, and in the steps of the optimizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.finetunes.bases import SOURCES, draw, network
from benchmarks.finetunes.plan import SUDDEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from benchmarks.finetunes.plan import Job

EVALUATED, HELD = 64, 256
TRUE_POINTS = 12
"""How often the true held-out loss is measured, besides at the start."""

Samples = tuple["Tensor", "Tensor"]


def samples(job: Job) -> tuple[Samples, Samples, Samples]:
    """Draw what a run trains on, what it evaluates on, and what its true held-out loss is measured on."""
    rng = np.random.default_rng(job.seed)
    base = "images" if job.base == "keras" else job.base
    source = SOURCES[base].shifted(job.shift, job.seed % 7 + 100) if job.shift else SOURCES[base]
    inputs, labels, kind = draw(source, job.samples or job.steps * job.batch * job.accumulate, rng)
    evaluated = draw(source, EVALUATED, rng)[:2]
    held = draw(source, HELD, rng)[:2]
    if job.fault == "sorted":
        order = torch.from_numpy(np.argsort(kind, kind="stable"))
        return (inputs[order], labels[order]), evaluated, held
    spoilt = spoil(job, inputs, labels)
    if job.fault in ("shifted_targets", "wrong_tokens", "all_masked"):  # the same code prepares both
        evaluated = spoil(job, *evaluated)
    return spoilt, evaluated, held


def spoil(job: Job, inputs: Tensor, labels: Tensor) -> Samples:
    """Return the samples with the fault of the run in them."""
    random = torch.Generator().manual_seed(job.seed)
    top = int(labels.max()) + 1
    if job.fault == "random_labels":
        labels = torch.randint(top, labels.shape, generator=random)
    if job.fault == "all_masked":
        labels = torch.full_like(labels, -100)
    if job.fault == "shifted_targets":
        labels = (labels + 1) % top if labels.ndim == 1 else labels.roll(-1, 1)
    if job.fault == "wrong_tokens":
        names = torch.randperm(top, generator=random)
        inputs, labels = names[inputs], names[labels]
    if job.fault == "bad_batch":
        size = job.batch * job.accumulate
        bad = slice(job.fault_step * size, (job.fault_step + 1) * size) if not job.samples else slice(0, job.batch)
        inputs, labels = inputs.clone(), labels.clone()
        inputs[bad] = inputs[bad] * 60 if inputs.is_floating_point() else top - 1 - inputs[bad]
        labels[bad] = torch.randint(top, labels[bad].shape, generator=random)
    return inputs, labels


def spoil_model(job: Job, model: Any) -> None:
    """Commit the fault of a run in its model."""
    if job.fault == "frozen":
        trained = [weights for weights in model.parameters() if weights.requires_grad]
        for weights in sorted(trained, key=torch.numel)[1:]:
            weights.requires_grad_(requires_grad=False)
    if job.fault == "eval_in_training":
        model.eval = lambda: model
    if job.fault == "sum_accumulated":

        def add(module: Any, _: Any, output: Any) -> Any:
            if module.training:
                output["loss"] = output["loss"] * job.accumulate
            return output

        model.register_forward_hook(add)


@dataclass
class Watch:
    """Sees every step of the optimizer: commits its faults, and measures the true held-out loss.

    Attributes:
        held: the step and the true held-out loss, from the start on.
        broke: the step at which the weights ceased to be finite.
    """

    job: Job
    model: Any
    measure: Callable[[], float]
    steps: int = 0
    held: list[tuple[int, float]] = field(default_factory=list)
    broke: int | None = None

    def __post_init__(self) -> None:
        self.held.append((0, self.measure()))

    def before(self, optimizer: Any) -> None:
        """Commit the fault that comes before a step."""
        sudden = self.job.fault in SUDDEN and self.steps == self.job.fault_step
        if self.job.fault == "corrupt_state" and sudden:
            for state in optimizer.state.values():
                state["exp_avg_sq"].mul_(1e-6)
        if self.job.fault == "resume_jump" and sudden:
            fresh = dict(network(self.job.base).named_parameters())
            named = self.model.named_parameters()
            for name, weights in [(name, weights) for name, weights in named if name in fresh][::2]:
                weights.data.copy_(fresh[name].data)
        if self.job.fault == "half_overflow":  # a loss scale that grows and never backs off
            scale = 2.0 ** (12 + 12 * self.steps // self.job.steps)
            for weights in optimizer.param_groups[0]["params"]:
                if weights.grad is not None:
                    weights.grad = (weights.grad * scale).half().float() / scale

    def after(self) -> None:
        """Measure the true held-out loss from time to time."""
        self.steps += 1
        if self.broke is None and not all(bool(w.isfinite().all()) for w in self.model.parameters()):
            self.broke = self.steps
        due = self.steps * TRUE_POINTS // self.job.steps > (self.steps - 1) * TRUE_POINTS // self.job.steps
        if due:
            self.held.append((self.steps, self.measure()))


class Watched:
    """The step of an optimizer, as a `Watch` sees it."""

    watch: Watch

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step, or leave it out where that is the fault."""
        loss = closure() if closure else None
        self.watch.before(self)
        if self.watch.job.fault != "no_step":
            super().step()  # type: ignore[misc]
        self.watch.after()
        return loss


class WatchedAdamW(Watched, torch.optim.AdamW):  # type: ignore[misc,unused-ignore]
    """AdamW that is watched."""


class WatchedSGD(Watched, torch.optim.SGD):  # type: ignore[misc,unused-ignore]
    """SGD that is watched."""


def optimizer_of(job: Job, watch: Watch) -> tuple[Any, Any]:
    """Build the optimizer of a run, and the schedule of its rate."""
    trained = [weights for weights in watch.model.parameters() if weights.requires_grad]
    optimizer: Any
    if job.sgd:
        optimizer = WatchedSGD(trained, lr=job.rate, momentum=0.9)
    else:
        optimizer = WatchedAdamW(trained, lr=job.rate, fused=True)
    optimizer.watch = watch
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: share(job, step))


def share(job: Job, step: int) -> float:
    """Return the share of the peak rate at a step."""
    done = min(step / job.steps, 1.0)
    if job.schedule == "linear":
        return 1 - 0.95 * done
    if job.schedule == "cosine":
        return 0.55 + 0.45 * float(np.cos(np.pi * done))
    if job.schedule == "warmup":
        return min((step + 1) / max(job.steps / 10, 1), 1.0) * (1 - 0.9 * done)
    return 1.0
