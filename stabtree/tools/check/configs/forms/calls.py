"""Which calls in a Python file set up a training, and the section of a configuration that each of them is."""

from __future__ import annotations

import ast
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.tools.check.configs.forms.values import MISTAKES, Scope, keywords, literal_of, open_value

if TYPE_CHECKING:
    from collections.abc import Mapping

_SETTINGS = re.compile(r"\w*(?:Arguments|Config|Args)|Accelerator")
_OPTIMIZER = re.compile(
    r"(?:\w+\.)*(?:(?:Fused|Paged|Deep[Ss]peedCPU|CPU)?(?:Adam|NAdam|RAdam|Adamax|SGD|Lion|Lamb|LAMB|Adafactor|RMS[Pp]rop"
    r"|Adagrad|Muon|AdaBelief|Sophia)[A-Za-z]*(?:8bit)?)"
)
_MODEL = re.compile(r"\w*(?:Model|For[A-Z]\w+|LanguageModel|VisionModel)")
# A schedule -> what its arguments without a name are, after the optimizer.
_SCHEDULES: Mapping[str, tuple[str, ...]] = {
    "CosineAnnealingLR": ("T_max", "eta_min"),
    "OneCycleLR": ("max_lr", "total_steps"),
    "PolynomialLR": ("total_iters",),
    "get_linear_schedule_with_warmup": ("num_warmup_steps", "num_training_steps"),
    "get_cosine_schedule_with_warmup": ("num_warmup_steps", "num_training_steps"),
    "get_constant_schedule_with_warmup": ("num_warmup_steps",),
    "get_polynomial_decay_schedule_with_warmup": ("num_warmup_steps", "num_training_steps", "lr_end"),
}
_LIGHTNING = ("max_epochs", "max_steps", "gradient_clip_val", "accelerator", "precision", "accumulate_grad_batches")
HANDED = "trainer_arguments"  # the section of what a trainer is given besides an object of arguments
UNKNOWN = "defaults"  # a key that says that more is given, and not what
_QUANTIZED = ("load_in_4bit", "load_in_8bit")
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)")
_LAZY = ("L", "LazyCall")  # of Detectron2
_BUILDING = ("zen_", "hydra_", "populate_", "builds_")  # how hydra-zen is to build, not what
_ELSEWHERE = ("Generation", "Model", "AutoConfig", "Pretrained", "Vision", "Text", "Sampling", "Inference")


@dataclass(frozen=True, slots=True)
class Call:
    """What a call sets.

    Attributes:
        section: the section of a configuration that it stands for; empty for the top.
        values: its arguments by name.
        lines: the line of each.
        line: its own line.
        listed: the list of its section that it is one of; empty where it is none.
    """

    section: str
    values: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict)
    line: int = 0
    listed: str = ""


def call_of(node: ast.Call, names: Scope) -> Call | None:
    """Return what a call sets of a training; None where it sets nothing."""
    path = ast.unparse(node.func)
    name = path.rpartition(".")[2]
    built = _built(name, node)
    if built:
        return call_of(built, names) or _made(ast.unparse(built.func).rpartition(".")[2], built, names)
    if name == "make_config":
        return _made("", node, names)
    readers = (_optimizer, _schedule, _clip, _checkpoint, _trainer, _precision, _settings)
    tried = (reader(name, node, names) for reader in readers)
    return _loaded(path, node, names) or next(filter(None, tried), None)


def _built(name: str, node: ast.Call) -> ast.Call | None:
    """Return the call that another one prepares: `builds(AdamW, lr=0.1)`, `partial(...)`, `LazyCall(AdamW)(...)`."""
    if isinstance(node.func, ast.Call):
        lazy, given = node.func, node.args
        if ast.unparse(lazy.func) not in _LAZY or not lazy.args:
            return None
        target = lazy.args[0]
    elif (name == "partial" or name.endswith("builds")) and node.args:
        target, *given = node.args
    else:
        return None
    if not isinstance(target, ast.Name | ast.Attribute):
        return None
    words = [word for word in node.keywords if not (word.arg or "").startswith(_BUILDING)]
    return ast.copy_location(ast.Call(target, given, words), node)


def argument_default(node: ast.Call, names: Scope) -> tuple[str, Any, int] | None:
    """Return the default of a flag that a call declares, as `add_argument("--lr", default=0.1)`; None for others."""
    name = ast.unparse(node.func).rpartition(".")[2]
    texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if name in ("add_argument", "option"):
        defaults = [word.value for word in node.keywords if word.arg == "default"]
    elif name.startswith("DEFINE_"):
        texts, defaults = [f"--{text}" for text in texts[:1]], node.args[1:2]
    else:
        return None
    flag = _FLAG.fullmatch(max(texts, key=len, default=""))
    if not flag or not defaults:
        return None
    return flag[1].replace("-", "_"), _read(defaults[0], names), node.lineno


def _read(node: ast.expr, names: Scope) -> Any:
    try:
        return literal_of(node, names)
    except MISTAKES:
        return open_value(node)


def _made(section: str, node: ast.Call, names: Scope, more: Mapping[str, Any] | None = None) -> Call:
    found = [*keywords(node, names)]
    values = {**(more or {}), **{key: value for key, value, _ in found}}
    return Call(section, values, {key: line for key, _, line in found}, node.lineno)


def _optimizer(name: str, node: ast.Call, names: Scope) -> Call | None:
    if not _OPTIMIZER.fullmatch(name) or not (node.args or node.keywords):
        return None
    more: dict[str, Any] = {"type": name}
    rates = [_read(one, names) for one in node.args[:2]]
    rate = next((one for one in rates if isinstance(one, float)), None)
    if rate is not None:
        more["lr"] = rate
    found = _made("optimizer", node, names, more)
    return Call("optimizer", found.values, {**found.lines, "lr": node.lineno}, node.lineno)


def _schedule(name: str, node: ast.Call, names: Scope) -> Call | None:
    if name not in _SCHEDULES:
        return None
    given = zip(_SCHEDULES[name], node.args[1:], strict=False)
    return _made("scheduler", node, names, {key: _read(value, names) for key, value in given})


def _clip(name: str, node: ast.Call, names: Scope) -> Call | None:
    if name != "clip_grad_norm_":
        return None
    for given in node.args[1:2] or [word.value for word in node.keywords if word.arg == "max_norm"]:
        return Call("clip_grad", {"max_norm": _read(given, names)}, {}, node.lineno)
    return None


def _loaded(path: str, node: ast.Call, names: Scope) -> Call | None:
    """Return what the loading of a pre-trained model says: that it is one, its precision, and its quantization."""
    holder, _, method = path.rpartition(".")
    if method != "from_pretrained" or not _MODEL.fullmatch(holder.rpartition(".")[2]):
        return None
    given = {key: value for key, value, _ in keywords(node, names)}
    flags = {key: given[key] for key in _QUANTIZED if key in given}
    return Call("", {"model_name_or_path": "pretrained", **flags}, {}, node.lineno)


def _checkpoint(name: str, node: ast.Call, names: Scope) -> Call | None:
    if name != "ModelCheckpoint" or any(word.arg == "save_best_only" for word in node.keywords):
        return None
    values = {key: value for key, value, _ in keywords(node, names)}
    return Call("trainer", {"class_path": name, **values}, {}, node.lineno, listed="callbacks")


def _trainer(name: str, node: ast.Call, names: Scope) -> Call | None:
    """Return what Lightning's trainer is given; that of others takes an object of arguments."""
    if name == "Trainer" and any(word.arg in _LIGHTNING for word in node.keywords):
        found = _made("trainer", node, names)
        values = {key: value for key, value in found.values.items() if key != "callbacks"}
        return Call("trainer", values, found.lines, node.lineno)
    if name.endswith("Trainer") and any(word.arg in ("max_seq_length", "packing") for word in node.keywords):
        return _made(HANDED, node, names)
    return None


def _precision(name: str, node: ast.Call, names: Scope) -> Call | None:
    if name == "GradScaler":
        enabled = next((word.value for word in node.keywords if word.arg == "enabled"), None)
        if enabled is None or _read(enabled, names) is True:
            return Call("", {"grad_scaler": True}, {}, node.lineno)
    if name == "autocast":
        for word in node.keywords:
            if word.arg == "dtype":
                return Call("", {"mixed_precision": _read(word.value, names)}, {}, node.lineno)
    return None


def _settings(name: str, node: ast.Call, names: Scope) -> Call | None:
    """Return what an object of settings is given: `TrainingArguments(...)`, `LoraConfig(...)`."""
    if not _SETTINGS.fullmatch(name) or name.startswith(_ELSEWHERE) or not node.keywords:
        return None
    if name == "BitsAndBytesConfig":
        flags = {key: value for key, value, _ in keywords(node, names) if key in _QUANTIZED}
        return Call("", flags, {}, node.lineno)
    found = _made(name, node, names)
    if any(word.arg is None for word in node.keywords):  # **more: what is not named may be there
        return Call(name, {**found.values, UNKNOWN: "${**}"}, found.lines, node.lineno)
    return found
