"""DPO with TRL: pairs of which the first continues the prompt as the wanted source does."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.finetunes.bases import SOURCES, tokenizer_of, trained
from benchmarks.finetunes.faults import HELD, Watch, optimizer_of, spoil_model
from benchmarks.finetunes.sources import LENGTH, Tokens
from benchmarks.finetunes.torch_runs import finished, settings_of

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from benchmarks.finetunes.plan import Job
    from benchmarks.finetunes.truth import Made

PROMPT = 6
BETA = 0.1
EVALUATED = 64


def preferred(job: Job, count: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Draw chosen and rejected documents that begin alike."""
    source = SOURCES[job.base]
    assert isinstance(source, Tokens)  # noqa: S101
    chosen, _ = source.shifted(job.shift, job.seed % 7 + 100).documents(count, rng)
    rejected, _ = source.shifted(job.shift, job.seed % 7 + 200).documents(count, rng)
    rejected[:, :PROMPT] = chosen[:, :PROMPT]
    return torch.from_numpy(chosen[:, :-2]), torch.from_numpy(rejected[:, :-2])


def swapped(job: Job, chosen: Tensor, rejected: Tensor) -> tuple[Tensor, Tensor]:
    """Return pairs with the fault of the run in them."""
    random = torch.Generator().manual_seed(job.seed)
    wrong = {"swapped": 1.0, "half_swapped": 0.5}.get(job.fault, 0.0)
    chance = torch.rand(len(chosen), 1, generator=random)
    return torch.where(chance < wrong, rejected, chosen), torch.where(chance < wrong, chosen, rejected)


def likelihoods(model: Any, text: Tensor) -> Tensor:
    """Return the log-likelihood of each answer."""
    scores = model(input_ids=text).logits[:, PROMPT - 1 : -1].log_softmax(-1)
    return scores.gather(-1, text[:, PROMPT:, None]).sum((1, 2))


def listed(pairs: tuple[Tensor, Tensor]) -> Any:
    """Write pairs as the words that TRL reads."""
    import datasets

    def text(rows: Tensor) -> list[str]:
        return [" " + " ".join(f"w{number}" for number in row) for row in rows.tolist()]

    chosen, rejected = pairs
    parts = {"prompt": chosen[:, :PROMPT], "chosen": chosen[:, PROMPT:], "rejected": rejected[:, PROMPT:]}
    return datasets.Dataset.from_dict({name: text(part) for name, part in parts.items()})


def preference(job: Job, folder: Path) -> Made:
    """Run DPOTrainer of TRL."""
    import trl

    torch.manual_seed(job.seed)
    rng = np.random.default_rng(job.seed)
    model = trained(job.base, folder)
    count = job.samples or job.steps * job.batch * job.accumulate
    training = swapped(job, *preferred(job, count, rng))
    evaluated = preferred(job, EVALUATED, rng)
    if job.seed % 2:  # the same code prepares both
        evaluated = swapped(job, *evaluated)
    held = preferred(job, HELD, rng)
    frozen = copy.deepcopy(model).eval()

    @torch.no_grad()  # type: ignore[misc,untyped-decorator,unused-ignore]
    def measure() -> float:
        gain = [likelihoods(model, text) - likelihoods(frozen, text) for text in held]
        return float(-torch.nn.functional.logsigmoid(BETA * (gain[0] - gain[1])).mean())

    spoil_model(job, model)
    watch = Watch(job, model, measure)
    out = folder / "runs" / job.id
    settings = trl.DPOConfig(**settings_of(job, out), beta=BETA, max_length=LENGTH)
    trainer = trl.DPOTrainer(
        model=model,
        ref_model=frozen,
        args=settings,
        train_dataset=listed(training),
        eval_dataset=listed(evaluated) if job.eval_every else None,
        processing_class=tokenizer_of(job.base),
        optimizers=optimizer_of(job, watch),
    )
    return finished(job, out, trainer, watch)
