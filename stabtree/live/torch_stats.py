"""What a torch model shows of itself while it is trained: norms, the size of updates, dead units, the loss scale.

Each look costs a pass over the weights, so that it is taken every so many steps, and a small part of their memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MOST_GROUPS = 32
SAMPLE = 1 << 16
"""Of each tensor so many values are kept to see how the optimizer changes it, evenly spread."""
WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
RELUS = ("ReLU", "ReLU6", "ReLUSquaredActivation")
SHARDED = ("FullyShardedDataParallel", "DeepSpeedEngine")
_HALF = (torch.float16, torch.bfloat16)

Named = tuple[str, torch.Tensor]


class ModelStats:
    """Looks at a model at its steps.

    Args:
        every: steps between two looks at the weights; 0 for none.
        late: takes what is known only after the optimizer's step: the step and the values.
        skipped: how many steps were skipped before, of a run that goes on.
    """

    def __init__(self, every: int, late: Callable[[int, Mapping[str, float]], None], *, skipped: int = 0) -> None:
        self._every = every
        self._late = late
        self._skipped = skipped
        self._scale: float | None = None
        self._last: int | None = None
        self._hooks: list[Any] = []
        self._alive: dict[str, torch.Tensor] = {}

    def look(self, step: int, model: Any, optimizer: Any, scaler: Any, *, clipped: bool) -> dict[str, float]:
        """What is seen between `backward` and `optimizer.step`, as `Recorder.model` tells it."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        found: dict[str, float] = {}
        scale = 1.0
        if scaler is not None and scaler.is_enabled():
            scale = found["loss_scale"] = float(scaler.get_scale())
            self._skipped += self._scale is not None and scale < self._scale
            self._scale = scale
            found["skipped_steps"] = self._skipped
        model, stride = _inner(model), step - (step if self._last is None else self._last)
        if self._due(step):
            found |= self._look(step, model, optimizer, None if clipped else _divisor(scaler, optimizer, scale))
        self._last = step
        if self._due(step + max(stride, 1)):
            self._watch_units(model)
        return found

    def _due(self, step: int) -> bool:
        if not self._every:
            return False
        return self._last is None or step // self._every != self._last // self._every

    def _look(self, step: int, model: Any, optimizer: Any, divisor: float | None) -> dict[str, float]:
        found = _dead_shares(self._alive)
        self._alive = {}
        trained = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
        weights = [(name, part) for name, weight in trained if (part := _local(weight)).numel()]
        groups = grouped([name for name, _ in weights])
        gradients = [(name, _values(weight.grad)) for name, weight in trained if weight.grad is not None]
        if gradients and divisor is not None and not _is_sharded(model):
            found["grad_norm"] = math.hypot(*_norms(gradients)) / divisor
        found |= _by_group("weight_norm", groups, _norms(weights))
        if optimizer is not None:
            before = [_Sample.of(weight) for _, weight in weights]
            optimizer = _unwrapped(optimizer)

            def stepped(*_: Any) -> None:
                self._late(step, _ratios(groups, before))
                before.clear()
                hook.remove()

            hook = optimizer.register_step_post_hook(stepped)
            self._hooks.append(hook)
        return found

    def _watch_units(self, model: Any) -> None:
        """Have the next forward passes tell which units of each ReLU are above 0 for some input."""
        self._alive = {}
        for name, module in model.named_modules():
            if type(module).__name__ in RELUS:
                self._hooks.append(module.register_forward_hook(_UnitHook(name, self._alive)))


class _UnitHook:
    """A forward hook that keeps which units are not 0; a copy of the model, or a saved one, has one that does nothing.

    Several passes before the next look, of micro-batches, are one batch.
    """

    def __init__(self, name: str, alive: dict[str, torch.Tensor]) -> None:
        self._name = name
        self._alive = alive

    def __call__(self, module: Any, _: Any, output: Any) -> None:
        if module.training and output.dim() > 1:
            # Images hold their units in the second dimension, sequences and vectors in the last.
            units = 1 if output.dim() > 3 else output.dim() - 1
            alive = (output.detach() != 0).transpose(0, units).flatten(1).any(1)
            known = self._alive.get(self._name)
            self._alive[self._name] = alive if known is None or known.shape != alive.shape else known | alive

    def __deepcopy__(self, _: object) -> Callable[..., None]:
        return _nothing

    def __reduce__(self) -> str:
        return "_nothing"


def _nothing(*_: Any) -> None:
    """A hook that does nothing."""


@dataclass(slots=True)
class _Sample:
    """Values of a tensor, and what each stands for."""

    tensor: torch.Tensor
    stride: int
    values: torch.Tensor

    @staticmethod
    def of(tensor: torch.Tensor) -> _Sample:
        stride = max(tensor.numel() // SAMPLE, 1)
        return _Sample(tensor, stride, _spread(tensor, stride).clone())


def _spread(tensor: torch.Tensor, stride: int) -> torch.Tensor:
    return tensor.detach().reshape(-1)[::stride].float()


def grouped(names: Sequence[str]) -> list[str]:
    """The group of each parameter: its module, or as deep a part of the model as leaves at most `MOST_GROUPS`.

    >>> grouped(["wte.weight", "h.0.attn.weight", "h.0.attn.bias", "h.1.attn.weight"])
    ['wte', 'h.0.attn', 'h.0.attn', 'h.1.attn']
    """
    modules = [name.split(".")[:-1] or [name] for name in names]
    for depth in range(max(map(len, modules), default=0), 0, -1):
        groups = [".".join(parts[:depth]) for parts in modules]
        if len(set(groups)) <= MOST_GROUPS:
            return groups
    return ["all"] * len(names)


def _norms(tensors: Sequence[Named]) -> list[float]:
    """The L2 norm of each tensor, fetched from the devices at once, halves added up in float32."""
    norms = [
        torch.linalg.vector_norm(tensor, dtype=torch.float32 if tensor.dtype in _HALF else None)
        for _, tensor in tensors
    ]
    found: list[float] = (
        torch.stack([norm.to(norms[0].device, torch.float64) for norm in norms]).tolist() if norms else []
    )
    return found


def _by_group(metric: str, groups: Sequence[str], norms: Sequence[float]) -> dict[str, float]:
    """The norm of each group of tensors."""
    parts: dict[str, list[float]] = {}
    for group, norm in zip(groups, norms, strict=True):
        parts.setdefault(group, []).append(norm)
    return {f"{metric}/{group}": math.hypot(*own) for group, own in parts.items()}


def _ratios(groups: Sequence[str], samples: Sequence[_Sample]) -> dict[str, float]:
    """The size of the update over that of the weights, for each group whose weights are not all 0."""
    pairs = [(f"{place}", sample) for place, sample in enumerate(samples)]
    weight = [math.sqrt(sample.stride) for sample in samples]
    moved = _norms([(name, _spread(sample.tensor, sample.stride) - sample.values) for name, sample in pairs])
    before = _norms([(name, sample.values) for name, sample in pairs])
    change, size = (
        _by_group("update_ratio", groups, [norm * root for norm, root in zip(norms, weight, strict=True)])
        for norms in (moved, before)
    )
    return {name: change[name] / size[name] for name in size if size[name]}


def _dead_shares(alive: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """The share of the units of each ReLU that were 0 for every input, of several in a group together."""
    shares: dict[str, list[float]] = {}
    for group, (_, units) in zip(grouped([f"{name}." for name in alive]), alive.items(), strict=True):
        shares.setdefault(f"dead_relu_frac/{group}", []).append(1.0 - float(units.float().mean()))
    return {name: sum(own) / len(own) for name, own in shares.items()}


def _divisor(scaler: Any, optimizer: Any, scale: float) -> float | None:
    """What the gradients are multiplied by now; None where the scaler does not say whether it unscaled them."""
    if scale == 1.0:
        return 1.0
    states = getattr(scaler, "_per_optimizer_states", None)
    own = (
        [states[key] for key in ([id(_unwrapped(optimizer))] if optimizer is not None else [*states])] if states else []
    )
    stages = {getattr(state.get("stage"), "name", None) for state in own}
    if not states or stages == {"READY"}:
        return scale if states is not None else None
    return 1.0 if stages == {"UNSCALED"} else None


def _inner(model: Any) -> Any:
    while (inside := WRAPPERS.get(type(model).__name__)) is not None:
        model = getattr(model, inside)
    return model


def _unwrapped(optimizer: Any) -> Any:
    """The optimizer of torch within those of accelerate and Lightning."""
    while isinstance(inside := getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        optimizer = inside
    return optimizer


def _local(weight: Any) -> torch.Tensor:
    """What of a weight lies on this rank: asking for the whole of it would wait for the other ranks."""
    found: torch.Tensor = (weight.to_local() if hasattr(weight, "to_local") else weight).detach()
    return found


def _values(gradient: Any) -> torch.Tensor:
    local = _local(gradient)
    return local.coalesce().values() if local.is_sparse else local


def _is_sharded(model: Any) -> bool:
    """Whether this rank holds a part of the model's gradients only, whose norm is not that of all of them."""
    kinds = {type(module).__name__ for module in model.modules()}
    return not kinds.isdisjoint(SHARDED) or any(hasattr(weight, "to_local") for weight in model.parameters())
