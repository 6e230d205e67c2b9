"""What a finding may be called: the leaves that name each kind of failure, for the labels of real logs."""

from __future__ import annotations

NAN = {"nan-forward", "nan-backward", "nan-layer", "nan-unlocated", "nan-structural", "nan-skipped", "loss-stops"}
NAN |= {"fp16-overflow", "fp16-suspected", "nan-abort", "grad-nonfinite", "eval-nonfinite", "nan-from-data"}
NAN |= {"series-nonfinite", "series-nonfinite-measured"}
SPIKE = {"spike-lr-jump", "spike-duplicate-batch", "spike-bad-batch", "spike-unexplained", "spike-open"}
SPIKE |= {"spike-persistent"}
RISING = {"lr-rising", "weight-decay-low", "weight-decay-high", "grad-norm-rising", "slow-rise", "worse-than-start"}
RISING |= {"climbs-far", "progress-lost", "loss-unbounded", "quality-collapsed", "eval-worse"}
DIVERGENCE = RISING | {"spike-persistent", "spike-lr-jump", "spike-open", "updates-too-large", "forgets"}
DIVERGENCE |= {"value-explodes"}
RATE = {"lr-rising", "lr-frozen", "lr-ends-early", "lr-too-low", "spike-lr-jump", "lr-zero", "lr-rises-late"}
RATE |= {"updates-too-large", "lr-restarts", "climbs-far"}
FLAT = {"flat-from-start", "slow-learning", "weights-still", "no-gradient", "lr-too-low", "double-softmax"}
FLAT |= {"sft-loss-plateau", "loss-detached", "loop-broken", "updates-too-large", "worse-than-start", "loss-repeats"}
FLAT |= {"at-chance", "ends-at-start", "quality-zero"}
ZERO = {"loss-zero", "starts-near-zero", "loss-zero-rows"}
RL = {"reward-zero", "reward-collapse", "no-advantage", "reward-no-spread", "entropy-collapse", "kl-high"}
RL |= {"rl-grad-norm-high", "rl-no-gradient", "clipping-heavy", "sampler-diverged", "value-explodes"}
RL |= {"reward-falls-through", "entropy-shrinks-away", "entropy-explodes"}
RL |= {"preferences-swapped", "value-exploded-once"}
OVERFIT = {"overfitting", "memorised", "quality-falls"}
PRECISION = {"scale-constant", "scale-collapse", "fp16-overflow", "fp16-suspected", "grad-nonfinite", "fp16-underflow"}
PRECISION |= {"skips-rise", "minimum-loss-scale", "scale-drifts-down"}
PRECISION |= {"grad-never-finite", "grad-nonfinite-fp32"}
NAN |= {"grad-never-finite", "grad-nonfinite-fp32"}
DROP = ZERO

LEAVES: dict[str, set[str]] = {
    # labels of ../shared/wild
    "nan": NAN,
    "divergence": DIVERGENCE,
    "spike-persistent": SPIKE | RISING,
    "spike-recovered": SPIKE | {"value-exploded-once"},
    "overfit": OVERFIT,
    "plateau-from-start": FLAT | {"reward-zero", "no-advantage", "lr-zero"},
    "zero-loss": ZERO,
    "rl-collapse": RL,
    "collapse": DROP | {"discriminator-wins"},
    "grad-norm-inf": NAN | PRECISION,
    # kinds of ../shared/trainers
    "spike": SPIKE,
    "instability": SPIKE | DIVERGENCE,
    "lr": RATE,
    "schedule": RATE,
    "flat": FLAT | {"lr-zero", "lr-ends-early"},
    "data": SPIKE | FLAT | ZERO | OVERFIT | DIVERGENCE | {"nan-forward", "nan-skipped", "wrong-targets"},
    "loss-zero": ZERO,
    "suspicious-drop": DROP,
    "optimizer": FLAT | DIVERGENCE | {"gradients-add-up"},
    "rl": RL,
    "precision": PRECISION,
}


def names(leaf: str, kind: str) -> bool:
    """Whether a leaf names a kind of failure; the leaves of `errors` name an error line."""
    if kind == "error-line":
        known = set().union(*LEAVES.values())
        return leaf not in known
    return leaf in LEAVES.get(kind, set())
