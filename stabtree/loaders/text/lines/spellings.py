"""Lines that put a number before its name, or name things in another language, in the words of the grammar."""

from __future__ import annotations

import re

_NUMBER = r"[-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf)"
_FRACTION = r"[-+]?(?:\d*\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+|nan|inf)"
_SIDES = {"train": "train_loss", "val": "val_loss", "test": "test_loss"}
# Each stands for a whole family of programs; all are anchored, so that any other line is turned down at once.
_LINES = (
    # Darknet: ` 1200: 2.031, 2.114 avg loss, 0.001000 rate, 4.2 seconds`.
    (
        re.compile(rf"\s*(\d+):\s*({_NUMBER}),\s*({_NUMBER}) avg(?: loss)?,\s*({_NUMBER}) rate,.*", re.IGNORECASE),
        r"iteration: \1, loss: \2, lr: \4",
    ),
    # Tacotron: `Train loss 1200 0.453 Grad Norm 1.2`, `Validation loss 1200:  0.5`.
    (
        re.compile(rf"\s*((?:train|valid(?:ation)?|test) loss) (\d+):?\s+({_NUMBER})(?=\s|$)", re.IGNORECASE),
        r"iteration: \2, \1: \3,",
    ),
    # CatBoost: `12:\tlearn: 0.61\ttest: 0.63\tbest: 0.63 (12)`.
    (
        re.compile(rf"(\d+):\s+learn: ({_NUMBER})(?:\s+test: ({_NUMBER}))?.*"),
        lambda found: (
            f"iteration: {found[1]}, train_loss: {found[2]}" + (f", val_loss: {found[3]}" if found[3] else "")
        ),
    ),
    # Those after build-nanogpt: `250 train 3.1`, `250 val 3.2`, `250 hella 0.29`.
    (
        re.compile(rf"\s*(\d{{1,12}}) ([a-z]\w{{0,30}}) ({_FRACTION})\s*$", re.IGNORECASE),
        lambda found: f"step: {found[1]}, {_SIDES.get(found[2], found[2])}: {found[3]}",
    ),
    # A step and its value, and nothing else: `1000: 0.25`.
    (re.compile(rf"\s*(\d{{1,12}}):\s+({_FRACTION})\s*$", re.IGNORECASE), r"step: \1, value: \2"),
    # VITS and what came from it: `[loss of the discriminator, generator, features, mel, KL, step, learning rate]`.
    (
        re.compile(rf"([^\[\]]{{0,120}})\[{', '.join([f'({_NUMBER})'] * 5)}, (\d+), ({_NUMBER})\]\s*$", re.IGNORECASE),
        r"\1step: \7, loss/disc: \2, loss/gen: \3, loss/fm: \4, loss/mel: \5, loss/kl: \6, lr: \8",
    ),
    (
        re.compile(rf"([^\[\]]{{0,120}})\bLosses: \[{', '.join([f'({_NUMBER})'] * 5)}\], (?=step)", re.IGNORECASE),
        r"\1loss/disc: \2, loss/gen: \3, loss/fm: \4, loss/mel: \5, loss/kl: \6, ",
    ),
    # A list of values without names, not one in prose: `copying a param with shape [10, 64]`.
    (
        re.compile(
            rf"[^\[\]]{{0,120}}(?:(?<![a-z] )|(?<=loss )|(?<=losses ))\[({_NUMBER}(?:, {_NUMBER}){{1,15}})\]\s*$",
            re.IGNORECASE,
        ),
        lambda found: _listed(found[1]),
    ),
    # XGBoost and LightGBM: `[12]\ttrain-rmse:0.31\teval-rmse:0.40`, `[12]\ttraining's l2: 0.3\tvalid_1's l2: 0.4`.
    (re.compile(r"\[(\d+)\]\t(?=\w+(?:-|'s )\w+:)"), r"iteration: \1, "),
)
# A layer of darknet sums up its own share of the batch.
_LAYER = re.compile(r"\s*(?:v\d \(.{0,80}?)?Region \d+ Avg ")
# LightGBM's `training's l2` and `valid_1's binary_logloss`.
_OF_SET = re.compile(r"\b(train|valid)\w*'s (\w+)(?=:)")
_ERRORS = {"l1": "mae", "l2": "mse"}

# `avg loss so far is 0.31`; the words themselves report a loss that is nan.
_IS = re.compile(r"\b(loss|lr)(?: so far)? is (?=[-+]?\d)")
# Weights & Biases repeats in a warning what it was given too late, beside the line that reported it.
_DROPPED = re.compile(r"(?:wandb:\s+)?(?:WARNING\s+)?\(?(?:User provided step|Step)\b.{0,80}[Dd]ropping ")

# What a line of another language calls its epoch, its step, its losses; longer words stand before their parts.
_CJK = (
    (r"第\s*(\d+)\s*(?:轮|个?\s*epoch|代|个?周期)", r"epoch \1"),
    (r"(?:训练|迭代)(?:次数|步数)|迭代", "iteration"),
    (r"(?:验证|测试)集?(?:上|整体|总|平均)*的?(?:损失值?|[Ll]oss)|検証損失|검증 ?손실", "val loss"),
    (r"(?:训练|学習|훈련)集?(?:上|整体|总|平均)*的?(?:损失值?|損失|손실|[Ll]oss)", "train loss"),
    (r"(?:验证|测试)集?(?:上|整体|总|平均)*的?(?:准确率|正确率|精度)", "val accuracy"),
    (r"损失值?|損失|손실", "loss"),
    (r"学习率|学習率|학습률", "lr"),
    (r"准确率|正确率|精度|정확도", "accuracy"),
    (r"轮次|周期|エポック|에포크", "epoch"),
    (r"整体|平均|总", ""),
    ("：", ": "),
    ("，", ", "),
)
_IN_CJK = tuple((re.compile(pattern), english) for pattern, english in _CJK)
_HAS_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


def _of_set(found: re.Match[str]) -> str:
    return f"{found[1]}_{_ERRORS.get(found[2], found[2])}"


def _listed(values: str) -> str:
    """Return the values of a list with a name for each."""
    return ", ".join(f"value_{number}: {value}" for number, value in enumerate(values.split(", "), 1))


def spelled(line: str) -> str:
    """The line as the grammar reads it: names before their numbers, in English.

    >>> spelled(" 1200: 2.031, 2.114 avg loss, 0.001000 rate, 4.2 seconds")
    'iteration: 1200, loss: 2.031, lr: 0.001000'
    >>> spelled("Train loss 12 0.453 Grad Norm 1.2")
    'iteration: 12, Train loss: 0.453, Grad Norm 1.2'
    >>> spelled("第 3 轮，训练损失：0.25")
    'epoch 3, train loss: 0.25'
    """
    if not line.isascii() and _HAS_CJK.search(line):
        for pattern, english in _IN_CJK:
            line = pattern.sub(english, line)
    if _LAYER.match(line):
        return ""
    if "ropping " in line and (dropped := _DROPPED.search(line)):
        line = line[: dropped.start()]
    if " is " in line:
        line = _IS.sub(r"\1: ", line)
    for pattern, plain in _LINES:
        if pattern.match(line):
            return _OF_SET.sub(_of_set, pattern.sub(plain, line, count=1))
    return line
