"""The columns of a healthy run of each kind of training, as its trainer names them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Columns = dict[str, Floats]

ROWS = 300
HELD_OUT_EVERY = 15  # rows between two evaluations
WARM = 20  # rows of warm-up


def course(rng: np.random.Generator, first: float, last: float, noise: float = 0.02) -> Floats:
    """A series that goes from one level to another, as a share of what is left, with noise relative to its level."""
    way = np.exp(-5 * np.arange(ROWS) / ROWS)
    levels = last + (first - last) * way
    return np.asarray(levels + rng.normal(0, noise, ROWS) * np.abs(levels))


def level(rng: np.random.Generator, value: float, noise: float = 0.1) -> Floats:
    """A positive series about one level."""
    return np.asarray(value * np.exp(rng.normal(0, noise, ROWS)))


def held_out(values: Floats) -> Floats:
    """Keep the values of the rows at which a trainer evaluates."""
    kept = np.full(ROWS, np.nan)
    kept[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY] = values[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]
    return kept


def cosine(peak: float) -> Floats:
    """A rate that warms up and then falls to a tenth."""
    at = np.arange(ROWS)
    falls = 0.55 + 0.45 * np.cos(math.pi * (at - WARM) / (ROWS - WARM))
    return np.asarray(peak * np.where(at < WARM, (at + 1) / WARM, falls))


def language(first: float, last: float, peak: float, norm: float) -> Callable[[np.random.Generator], Columns]:
    def made(rng: np.random.Generator) -> Columns:
        return {
            "loss": course(rng, first, last),
            "grad_norm": level(rng, norm),
            "learning_rate": cosine(peak),
            "epoch": np.arange(ROWS) / 100,
            "eval_loss": held_out(course(rng, first, last * 1.05, 0.002)),
        }

    return made


def classes(rng: np.random.Generator) -> Columns:
    return {
        "train_loss": course(rng, math.log(10), 0.2, 0.05),
        "train_acc": np.clip(course(rng, 0.1, 0.95, 0.02), 0, 1),
        "grad_norm": level(rng, 2.0),
        "lr-AdamW": cosine(1e-3),
        "val_loss": held_out(course(rng, math.log(10), 0.35, 0.005)),
        "val_acc": held_out(np.clip(course(rng, 0.1, 0.9, 0.005), 0, 1)),
    }


def numbers(rng: np.random.Generator) -> Columns:
    return {
        "train_loss": course(rng, 1.0, 0.1, 0.05),
        "train_mae": course(rng, 0.8, 0.25, 0.03),
        "grad_norm": level(rng, 0.8),
        "lr-Adam": cosine(1e-3),
        "val_loss": held_out(course(rng, 1.0, 0.12, 0.005)),
        "val_mae": held_out(course(rng, 0.8, 0.27, 0.005)),
    }


def boxes(rng: np.random.Generator) -> Columns:
    return {
        "train/box_loss": course(rng, 3.5, 1.1),
        "train/cls_loss": course(rng, 4.2, 0.8),
        "train/dfl_loss": course(rng, 4.0, 1.2),
        "metrics/precision(B)": np.clip(course(rng, 0.01, 0.7), 0, 1),
        "metrics/recall(B)": np.clip(course(rng, 0.01, 0.6), 0, 1),
        "metrics/mAP50(B)": np.clip(course(rng, 0.002, 0.65), 0, 1),
        "metrics/mAP50-95(B)": np.clip(course(rng, 0.001, 0.45), 0, 1),
        "val/box_loss": course(rng, 3.5, 1.2, 0.01),
        "val/cls_loss": course(rng, 4.2, 0.95, 0.01),
        "val/dfl_loss": course(rng, 4.0, 1.3, 0.01),
        "lr/pg0": cosine(0.01),
    }


def pixels(rng: np.random.Generator) -> Columns:
    return {
        "train_loss": course(rng, 1.4, 0.15, 0.04),
        "dice_loss": course(rng, 0.9, 0.1, 0.04),
        "grad_norm": level(rng, 1.5),
        "lr": cosine(3e-4),
        "val_loss": held_out(course(rng, 1.4, 0.2, 0.005)),
        "val_dice": held_out(np.clip(course(rng, 0.05, 0.85, 0.005), 0, 1)),
    }


def noise(rng: np.random.Generator) -> Columns:
    return {"diffusion_loss": course(rng, 1.0, 0.08, 0.1), "grad_norm": level(rng, 0.5), "lr": cosine(1e-4)}


def adversaries(rng: np.random.Generator) -> Columns:
    return {
        "d_loss": level(rng, 1.2),
        "g_loss": level(rng, 1.1, 0.15),
        "d_real": np.clip(0.6 + rng.normal(0, 0.03, ROWS), 0, 1),
        "d_fake": np.clip(0.4 + rng.normal(0, 0.03, ROWS), 0, 1),
        "fid": held_out(course(rng, 300, 25, 0.02)),
    }


def speech(rng: np.random.Generator) -> Columns:
    return {
        "ctc_loss": course(rng, 9.0, 0.4, 0.05),
        "grad_norm": level(rng, 5.0),
        "lr": cosine(3e-4),
        "val_loss": held_out(course(rng, 9.0, 0.5, 0.005)),
        "wer": held_out(np.clip(course(rng, 1.0, 0.12, 0.01), 0, 1)),
    }


def pairs(rng: np.random.Generator) -> Columns:
    return {
        "contrastive_loss": course(rng, math.log(256), 0.6, 0.03),
        "logit_scale": np.linspace(14.3, 60, ROWS),
        "grad_norm": level(rng, 1.0),
        "lr": cosine(5e-4),
        "recall_at_1": held_out(np.clip(course(rng, 1 / 256, 0.6, 0.01), 0, 1)),
    }


def preferences(rng: np.random.Generator) -> Columns:
    accuracy = np.clip(course(rng, 0.5, 0.9, 0.06), 0, 1)
    chosen, rejected = course(rng, 0.0, 0.6, 0.1), course(rng, 0.0, -1.4, 0.1)
    return {
        "loss": course(rng, math.log(2), 0.3, 0.04),
        "grad_norm": level(rng, 8.0),
        "learning_rate": cosine(5e-7),
        "rewards/chosen": chosen,
        "rewards/rejected": rejected,
        "rewards/accuracies": accuracy,
        "rewards/margins": chosen - rejected,
        "logps/chosen": level(rng, 200, 0.05) * -1,
        "logps/rejected": level(rng, 230, 0.05) * -1,
        "logits/chosen": level(rng, 1.1, 0.03) * -1,
        "logits/rejected": level(rng, 1.2, 0.03) * -1,
        "eval_loss": held_out(course(rng, math.log(2), 0.36, 0.005)),
        "eval_rewards/accuracies": held_out(np.clip(course(rng, 0.5, 0.85, 0.01), 0, 1)),
        "eval_rewards/margins": held_out(course(rng, 0.0, 1.7, 0.02)),
    }


def reward_model(rng: np.random.Generator) -> Columns:
    return {
        "loss": course(rng, math.log(2), 0.25, 0.05),
        "grad_norm": level(rng, 4.0),
        "learning_rate": cosine(1e-5),
        "min_reward": course(rng, -0.1, -4, 0.1),
        "mean_reward": rng.normal(0, 0.1, ROWS),
        "max_reward": course(rng, 0.1, 4, 0.1),
        "accuracy": np.clip(course(rng, 0.5, 0.9, 0.04), 0, 1),
        "margin": course(rng, 0.0, 2.2, 0.05),
        "eval_loss": held_out(course(rng, math.log(2), 0.32, 0.005)),
        "eval_accuracy": held_out(np.clip(course(rng, 0.5, 0.86, 0.005), 0, 1)),
    }


def answers(rng: np.random.Generator) -> Columns:
    reward = course(rng, 0.1, 0.8, 0.05)
    return {
        "loss": rng.normal(0.01, 0.01, ROWS),
        "grad_norm": level(rng, 0.4),
        "learning_rate": cosine(1e-6),
        "reward": reward,
        "reward_std": level(rng, 0.3),
        "rewards/correct/mean": reward,
        "frac_reward_zero_std": np.clip(rng.normal(0.2, 0.05, ROWS), 0, 1),
        "kl": course(rng, 0.0005, 0.04, 0.1),
        "entropy": course(rng, 0.8, 0.4, 0.05),
        "completions/mean_length": level(rng, 220, 0.05),
        "completions/clipped_ratio": np.clip(rng.normal(0.03, 0.01, ROWS), 0, 1),
        "clip_ratio/region_mean": np.clip(rng.normal(0.01, 0.003, ROWS), 0, 1),
    }


def on_policy(rng: np.random.Generator) -> Columns:
    return {
        "rollout/ep_rew_mean": course(rng, 20, 450, 0.03),
        "rollout/ep_len_mean": course(rng, 20, 450, 0.03),
        "train/loss": level(rng, 20, 0.2),
        "train/value_loss": level(rng, 60, 0.2),
        "train/policy_gradient_loss": rng.normal(-0.005, 0.001, ROWS),
        "train/entropy_loss": -course(rng, 0.69, 0.35, 0.03),
        "train/approx_kl": level(rng, 0.006, 0.2),
        "train/clip_fraction": np.clip(level(rng, 0.06, 0.2), 0, 1),
        "train/clip_range": np.full(ROWS, 0.2),
        "train/explained_variance": np.clip(course(rng, 0.0, 0.9, 0.03), -1, 1),
        "train/learning_rate": np.full(ROWS, 3e-4),
    }


def soft_actor(rng: np.random.Generator) -> Columns:
    return {
        "rollout/ep_rew_mean": course(rng, 10, 3000, 0.03),
        "rollout/ep_len_mean": level(rng, 800, 0.1),
        "train/actor_loss": -course(rng, 5, 200, 0.05),
        "train/critic_loss": course(rng, 2, 15, 0.15),
        "train/ent_coef": course(rng, 0.9, 0.05, 0.02),
        "train/ent_coef_loss": rng.normal(-0.2, 0.3, ROWS),
        "train/learning_rate": np.full(ROWS, 3e-4),
    }


def deep_q(rng: np.random.Generator) -> Columns:
    return {
        "rollout/ep_rew_mean": course(rng, 20, 200, 0.05),
        "rollout/ep_len_mean": course(rng, 20, 200, 0.05),
        "rollout/exploration_rate": np.clip(1 - np.arange(ROWS) / 30, 0.05, 1),
        "train/loss": level(rng, 0.4, 0.4),
        "train/learning_rate": np.full(ROWS, 1e-4),
    }
