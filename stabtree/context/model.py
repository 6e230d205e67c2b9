"""What is known of a run as a whole, and how each part of it is known."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T", str, int, float)

CONFIGURED, LOGGED, INFERRED, UNKNOWN = "configured", "logged", "inferred", "unknown"

GRPO, ON_POLICY, OFF_POLICY, REINFORCEMENT = "grpo", "on-policy-rl", "off-policy-rl", "reinforcement"
LANGUAGE, CLASSIFICATION, REGRESSION = "language-model", "classification", "regression"
DETECTION, SEGMENTATION, DIFFUSION, GAN = "detection", "segmentation", "diffusion", "gan"
CTC, CONTRASTIVE, PREFERENCE = "ctc", "contrastive", "preference"
FROM_REWARDS = (GRPO, ON_POLICY, OFF_POLICY, REINFORCEMENT)
"""The tasks that learn from rewards; `REINFORCEMENT` where it is open whether from the policy's own samples."""
TASKS = (
    *(LANGUAGE, CLASSIFICATION, REGRESSION, DETECTION, SEGMENTATION, DIFFUSION, GAN, CTC, CONTRASTIVE, PREFERENCE),
    *FROM_REWARDS,
)

FROM_SCRATCH, CONTINUED, FINE_TUNE, LORA = "from scratch", "continued", "fine-tune", "LoRA"
PHASES = (FROM_SCRATCH, CONTINUED, FINE_TUNE, LORA)


class Known(Struct, Generic[T], frozen=True):
    """A value, and how it is known.

    Attributes:
        value: the value; None where it is not known.
        how: `configured`, `logged`, `inferred` or `unknown`.
        why: the evidence in a few words; empty where nothing is known.
    """

    value: T | None = None
    how: str = UNKNOWN
    why: str = ""


class Context(Struct, frozen=True):
    """Who a run is.

    Attributes:
        task: one of `TASKS`.
        algorithm: `ppo`, `dqn`, `dpo`, ..., of tasks that have several.
        phase: one of `PHASES`.
        framework: the id of the trainer's file in `stabtree.frameworks`.
        precision: `fp32`, `fp16`, `bf16` or `fp8`; a fact of its own, so that what is found in another one is not the
            fact of another context.
        optimizer: its usual name in lower case.
        planned_steps: the optimizer steps that the run was to make.
        peak_lr: the highest learning rate, as configured or logged.
        classes: how many classes, or tokens of a vocabulary, one guess is among.
        outcome: the metric that says how well the run does: the reward, else the quality on held-out data, else the
            held-out loss, else the training loss.
        better: `lower` or `higher`: where the outcome goes while the run does well.
        chance: the value of the outcome for an uninformed guess.
        restless: why the loss of this run need not fall and may burst; empty if it should fall as any loss does.
    """

    task: Known[str] = Known()
    algorithm: Known[str] = Known()
    phase: Known[str] = Known()
    framework: Known[str] = Known()
    precision: Known[str] = Known()
    optimizer: Known[str] = Known()
    planned_steps: Known[int] = Known()
    peak_lr: Known[float] = Known()
    classes: Known[int] = Known()
    outcome: Known[str] = Known()
    better: str = ""
    chance: Known[float] = Known()
    restless: str = ""

    @property
    def learns_from_rewards(self) -> bool:
        """Whether the run is one of reinforcement learning."""
        return self.task.value in FROM_REWARDS


PARTS = (
    *("task", "algorithm", "phase", "framework", "precision", "optimizer"),
    *("planned_steps", "peak_lr", "classes", "outcome", "chance"),
)
"""The attributes of a context that say how they are known, in the order in which they are shown."""


def as_dict(context: Context) -> dict[str, Any]:
    """Return a context as plain values: each part with its value, how it is known, and the evidence."""
    parts = {name: getattr(context, name) for name in PARTS}
    found: dict[str, Any] = {name: {"value": p.value, "how": p.how, "why": p.why} for name, p in parts.items()}
    found["outcome"]["better"] = context.better or None
    return found
