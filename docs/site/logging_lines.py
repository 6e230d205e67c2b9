"""How a metric is logged in one line: in a loop of torch, in the trainers, by stabtree itself."""

from __future__ import annotations

TRAINERS = {
    "torch": "a loop in torch",
    "hf": "Hugging Face",
    "lightning": "Lightning",
    "trl": "TRL",
    "stabtree": "[`Recorder`](../how-to/recorder.md)",
}
_MODEL = "`rec.model(step, model, optimizer)` between `backward` and `clip_grad_norm_`"
_SCALER = "`rec.model(step, model, optimizer, scaler=scaler)`"
_ITSELF = "the trainer logs it by itself"

LINES: dict[str, dict[str, str]] = {
    "loss": {
        "torch": "`rec.log(step, loss=loss)`",
        "hf": f"{_ITSELF}: `logging_steps=1`, and `logging_nan_inf_filter=False`, else a NaN is left out of the mean",
        "lightning": '`self.log("train_loss", loss)` in `training_step`, with `Trainer(log_every_n_steps=1)`',
    },
    "eval_loss": {
        "torch": "`rec.log(step, eval_loss=held_out)`",
        "hf": f'{_ITSELF}: `eval_strategy="steps", eval_steps=200`',
        "lightning": '`self.log("val_loss", loss)` in `validation_step`',
    },
    "eval_quality": {
        "torch": "`rec.log(step, eval_accuracy=accuracy)`",
        "hf": 'what `compute_metrics` returns: `{"accuracy": accuracy}`',
        "lightning": '`self.log("val_acc", accuracy)` in `validation_step`',
    },
    "grad_norm": {
        "torch": "`norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`, `rec.log(step, grad_norm=norm)`",
        "hf": _ITSELF,
        "lightning": "`self.log_dict(grad_norm(self, norm_type=2))` in `on_before_optimizer_step`, with "
        "`from lightning.pytorch.utilities import grad_norm`",
        "stabtree": _MODEL,
    },
    "lr": {
        "torch": "`rec.log(step, lr=scheduler.get_last_lr()[0])`",
        "hf": _ITSELF,
        "lightning": '`LearningRateMonitor(logging_interval="step")` among the callbacks',
    },
    "loss_scale": {
        "torch": "`rec.log(step, loss_scale=scaler.get_scale())`",
        "stabtree": _SCALER,
    },
    "skipped_steps": {"stabtree": _SCALER},
    "weight_norm": {
        "torch": '`rec.log(step, {f"weight_norm/{name}": part.norm() for name, part in model.named_parameters()})`',
        "stabtree": _MODEL,
    },
    "update_ratio": {"stabtree": _MODEL},
    "dead_relu_frac": {"stabtree": _MODEL},
    "logits_max": {"torch": "`rec.log(step, logits_max=logits.abs().max())`"},
    "logsumexp": {"torch": "`rec.log(step, logsumexp=torch.logsumexp(logits, -1).mean())`"},
    "pad_share": {"torch": "`rec.log(step, pad_share=(tokens == pad_id).float().mean())`"},
    "batch_id": {"stabtree": "`rec.batch(step, batch)`: a hash of what the batch holds"},
    "reward": {"trl": _ITSELF},
    "reward_std": {"trl": _ITSELF},
    "frac_reward_zero_std": {"trl": _ITSELF},
    "reward_function": {"trl": _ITSELF},
    "kl": {"trl": f"{_ITSELF}, with `beta` above 0"},
    "wall_time": {"torch": "`rec.log(step, wall_time=time.time())`"},
}
"""By metric, then by where. Each code is Python; a test holds that it is."""
