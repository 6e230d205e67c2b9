"""Which fine-tunes are made: a hundred healthy ones, and a broken twin of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Job:
    """One fine-tune.

    Attributes:
        form: what its log is written as.
        shift: how far its source differs from that of the base model; 0 is continued pre-training.
        samples: the size of the data set, gone through again and again; 0 for data that never repeat.
        fault: what is done wrong; empty in a healthy run.
    """

    id: str
    framework: str
    base: str
    form: str
    seed: int
    steps: int
    log_every: int
    eval_every: int
    rate: float
    schedule: str
    batch: int
    shift: float
    accumulate: int = 1
    samples: int = 0
    lora: bool = False
    sgd: bool = False
    fault: str = ""

    @property
    def shuffled(self) -> bool:
        """Whether its samples are gone through in a new order each time."""
        return bool(self.samples) and self.fault != "sorted"

    @property
    def fault_step(self) -> int:
        """The step at which a sudden fault strikes; a lasting one is there from the first."""
        return self.steps * 6 // 10 if self.fault in SUDDEN else 0


SUDDEN = ("bad_batch", "corrupt_state", "resume_jump")
RATES = {"rate_100": 100.0, "rate_1000": 1000.0, "rate_low": 1e-3, "forgets": 30.0, "overfits": 3.0}
COMMON = (
    "no_step",
    "forgets",
    "overfits",
    "rate_100",
    "half_overflow",
    "random_labels",
    "bad_batch",
    "frozen",
    "rate_1000",
    "resume_jump",
    "corrupt_state",
    "all_masked",
    "shifted_targets",
    "rate_low",
    "wrong_tokens",
    "sorted",
    "sum_accumulated",
    "eval_in_training",
)
KERAS = ("rate_100", "overfits", "random_labels", "frozen", "rate_1000", "sorted", "bad_batch", "forgets", "no_step")
PREFERENCE = ("swapped", "rate_100", "half_swapped", "no_step", "rate_1000", "overfits", "rate_low", "frozen")
FAULTS = {"keras": KERAS, "dpo": PREFERENCE}
NEEDS_EVAL = ("overfits", "eval_in_training", "swapped")

COUNTS = {"hf": 28, "sft": 16, "plain": 22, "lightning": 14, "keras": 10, "dpo": 10}
BASES = {
    "hf": ("words", "chars", "llama", "images"),
    "sft": ("llama", "words"),
    "plain": ("chars", "images", "words"),
    "lightning": ("images", "chars", "words"),
    "keras": ("keras",),
    "dpo": ("words", "llama"),
}
FORMS = {
    "hf": ("state", "state", "text"),
    "sft": ("state", "text"),
    "plain": ("nanogpt", "jsonl", "example", "csv", "logger", "tfevents"),
    "lightning": ("csv", "tfevents", "csv"),
    "keras": ("csv", "text"),
    "dpo": ("state", "state", "text"),
}
LORA = {"hf": 3, "sft": 3}
"""Every third run of these trainers that can is LoRA."""

SHAPES = (
    (60, 2),
    (5, 20),
    (200, 1),
    (20, 10),
    (100, 1),
    (12, 5),
    (300, 1),
    (40, 5),
    (8, 25),
    (150, 1),
    (30, 5),
    (10, 50),
)
"""Rows of the log, and steps between them."""
LONG = (600, 1000, 2000)
"""Rows of the longest, on the fastest base models."""
SHIFTS = (0.2, 0.0, 0.4, 0.1, 0.3, 0.0, 0.6)
SCHEDULES = ("linear", "cosine", "constant", "warmup")


def healthy() -> Iterator[Job]:
    """Plan the healthy runs, those of all trainers in turn."""
    each = {name: list(_of(name, number)) for number, name in enumerate(COUNTS)}
    while any(each.values()):
        yield from [jobs.pop(0) for jobs in each.values() if jobs]


def _of(framework: str, number: int) -> Iterator[Job]:
    rng = np.random.default_rng(number)
    shapes, shifts, long = cycle(SHAPES[2 * number :] + SHAPES[: 2 * number]), cycle(SHIFTS), iter(LONG)
    for index in range(COUNTS[framework]):
        base = BASES[framework][index % len(BASES[framework])]
        rows, log_every = next(shapes)
        if framework == "plain" and index % 6 == 4 and base in ("chars", "images"):
            rows, log_every = next(long, 400), 1
        steps = rows * log_every
        eval_every = int(rng.choice([0, max(steps // 12, 1), max(steps // 5, 1)]))
        job = Job(
            id=f"{framework}-{index:02d}",
            framework=framework,
            base=base,
            form=FORMS[framework][index % len(FORMS[framework])],
            seed=1000 * number + index,
            steps=steps,
            log_every=log_every,
            eval_every=eval_every,
            rate=round(5e-3 / steps**0.5, 6),
            schedule=str(rng.choice(SCHEDULES)),
            batch=int(rng.choice([4, 8, 16])),
            shift=next(shifts),
            accumulate=int(rng.choice([1, 1, 1, 2])),
            samples=int(rng.choice([0, 0, 4000])),
        )
        yield _varied(job, index)


def _varied(job: Job, index: int) -> Job:
    """Make some of the runs LoRA, or plain SGD."""
    if job.base in ("words", "llama") and index % LORA.get(job.framework, 10**6) == 2:
        return replace(job, lora=True, rate=job.rate * 6)
    if job.framework == "plain" and job.base == "images" and index % 2:
        return replace(job, sgd=True, rate=job.rate * 4)
    if job.framework == "keras":
        epochs = 4 + job.seed % 7 * 3
        return replace(job, steps=epochs, log_every=1, eval_every=job.seed % 3, rate=1e-4, batch=32, samples=1500)
    if job.framework == "dpo":
        return replace(job, shift=max(job.shift, 0.3), samples=0)
    return job


def pairs() -> Iterator[tuple[Job, Job]]:
    """Plan all runs: each healthy one with its broken twin."""
    faults = {name: cycle(FAULTS.get(name, COMMON)) for name in COUNTS}
    for job in healthy():
        fault = next(faults[job.framework])
        while not possible(fault, job):
            fault = next(faults[job.framework])
        healthy_twin = suited(job, fault)
        yield healthy_twin, broken(healthy_twin, fault)


def suited(job: Job, fault: str) -> Job:
    """Plan a run so that the fault of its twin can show."""
    if fault == "sum_accumulated":
        return replace(job, accumulate=4)
    if fault in NEEDS_EVAL:
        return replace(job, eval_every=job.eval_every or max(job.steps // 10, 1))
    return job


def possible(fault: str, job: Job) -> bool:
    """Whether a fault can be made in a run."""
    if job.framework == "keras":
        return fault != "bad_batch" or job.steps >= 10
    if fault == "wrong_tokens":
        return job.base != "images"
    if fault in SUDDEN:
        return job.steps >= 30
    return fault != "corrupt_state" or not job.sgd


def broken(job: Job, fault: str) -> Job:
    """Plan the twin of a run that has a fault."""
    job = replace(job, id=f"{job.id}-{fault.replace('_', '-')}", fault=fault, rate=job.rate * RATES.get(fault, 1.0))
    if fault == "overfits":
        steps = max(job.steps, 30 if job.framework == "keras" else 150)
        return replace(job, samples=50, steps=steps, eval_every=max(steps // 10, 1))
    return job
