"""What a torch model shows of itself while it is trained: norms, the size of updates, dead units, the loss scale.

Each look costs a pass over the weights, so that it is taken every so many steps, and a small part of their memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_GROUPS = 32
SAMPLE = 1 << 16
"""Of each tensor so many values are kept to see how the optimizer changes it, evenly spread."""
NORM_TIMES = 10
"""The gradient's norm is taken so many times as often as the rest: the questions about it need rows."""
WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
RELUS = ("ReLU", "ReLU6", "ReLUSquaredActivation")
SHARDED = ("FullyShardedDataParallel", "DeepSpeedEngine")
_HALF = (torch.float16, torch.bfloat16)


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
        self._sharded: bool | None = None
        self._hooks: list[Any] = []
        self._alive: dict[str, torch.Tensor] = {}

    def look(self, step: int, model: Any, optimizer: Any, scaler: Any, *, clipped: bool) -> dict[str, float]:
        """Return what is seen between `backward` and `optimizer.step`, as `Recorder.model` writes it."""
        last = step if self._last is None else self._last
        if step != last:
            for hook in self._hooks:
                hook.remove()
            self._hooks = []
        found = self._scaled(scaler, went_back=step < last)
        compiled = type(model).__name__ == "OptimizedModule"
        while (inside := WRAPPERS.get(type(model).__name__)) is not None:
            model = getattr(model, inside)
        if self._sharded is None:  # else this rank holds a part of the gradients, whose norm is not that of all
            kinds = {type(module).__name__ for module in model.modules()}
            parts = any(hasattr(weight, "to_local") for weight in model.parameters())
            self._sharded = parts or not kinds.isdisjoint(SHARDED)
        if not (clipped or self._sharded) and self._due(step, max(self._every // NORM_TIMES, 1)):
            found |= _grad_norm(model, _divisor(scaler, optimizer, found.get("loss_scale", 1.0)))
        if self._due(step, self._every):
            found |= self._weights(step, model, optimizer)
        self._last = step
        if self._due(step + max(step - last, 1), self._every) and not compiled:
            self._watch_units(model)
        return found

    def _due(self, step: int, every: int) -> bool:
        if not self._every:
            return False
        return self._last is None or step // every != self._last // every

    def _scaled(self, scaler: Any, *, went_back: bool) -> dict[str, float]:
        """Return the loss scale, and the steps that were skipped so far: at each of them the scale was lowered."""
        if scaler is None or not scaler.is_enabled():
            return {}
        scale = float(scaler.get_scale())
        self._skipped += self._scale is not None and scale < self._scale and not went_back
        self._scale = scale
        return {"loss_scale": scale, "skipped_steps": self._skipped}

    def _weights(self, step: int, model: Any, optimizer: Any) -> dict[str, float]:
        """The norms of the weights, and the dead units; how the optimizer moves the weights is known after its step."""
        dead, self._alive = _dead_shares(self._alive), {}
        trained = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
        weights = [(name, part) for name, weight in trained if (part := _local(weight)).numel()]
        groups = grouped([name for name, _ in weights])
        if optimizer is not None:
            strides = [max(weight.numel() // SAMPLE, 1) for _, weight in weights]
            before = [_spread(weight, stride).clone() for (_, weight), stride in zip(weights, strides, strict=True)]

            def stepped(*_: Any) -> None:
                now = [_spread(weight, stride) for (_, weight), stride in zip(weights, strides, strict=True)]
                self._late(step, _ratios(groups, strides, before, now))
                before.clear()
                hook.remove()

            hook = _unwrapped(optimizer).register_step_post_hook(stepped)
            self._hooks.append(hook)
        return dead | _by_group("weight_norm", groups, _norms([weight for _, weight in weights]))

    def _watch_units(self, model: Any) -> None:
        """Have the next forward passes tell which units of each ReLU are above 0 for some input.

        Several passes before the next look, of micro-batches, are one batch. The hook is torch's own, not the model's,
        so that a model that is copied or saved meanwhile holds nothing of it.
        """
        alive = self._alive = {}
        names = {id(module): name for name, module in model.named_modules() if type(module).__name__ in RELUS}

        def passed(module: Any, _: Any, output: Any) -> None:
            name = names.get(id(module))
            if name is not None and module.training and output.dim() > 1:
                # Images hold their units in the second dimension, sequences and vectors in the last.
                units = output.dim() - 1 if output.dim() <= 3 else 1
                now = (output.detach() != 0).transpose(0, units).flatten(1).any(1)
                known = alive.get(name)
                if known is not None and known.shape == now.shape:
                    now |= known
                alive[name] = now

        # torch.compile calls no hooks.
        compiled = any(getattr(module, "_compiled_call_impl", None) is not None for module in model.modules())
        if names and not compiled:
            self._hooks.append(torch.nn.modules.module.register_module_forward_hook(passed))


def _spread(tensor: torch.Tensor, stride: int) -> torch.Tensor:
    return tensor.detach().reshape(-1)[::stride].float()


def grouped(names: Sequence[str]) -> list[str]:
    """Return the group of each parameter: its module, or as deep a part of the model as leaves at most `MAX_GROUPS`.

    >>> grouped(["wte.weight", "h.0.attn.weight", "h.0.attn.bias", "h.1.attn.weight"])
    ['wte', 'h.0.attn', 'h.0.attn', 'h.1.attn']
    """
    modules = [name.split(".")[:-1] or [name] for name in names]
    for depth in range(max(map(len, modules), default=0), 0, -1):
        groups = [".".join(parts[:depth]) for parts in modules]
        if len(set(groups)) <= MAX_GROUPS:
            return groups
    return ["all"] * len(names)


def _norms(tensors: Sequence[torch.Tensor]) -> list[float]:
    """Return the L2 norm of each tensor, fetched from the devices at once, halves added up in float32."""
    if not tensors:
        return []
    norms = [torch.linalg.vector_norm(one, dtype=torch.float32 if one.dtype in _HALF else None) for one in tensors]
    found: list[float] = torch.stack([norm.to(norms[0].device, torch.float64) for norm in norms]).tolist()
    return found


def _grad_norm(model: Any, divisor: float | None) -> dict[str, float]:
    """Return the norm of all gradients, where there are any."""
    gradients = [_local(weight.grad) for weight in model.parameters() if weight.grad is not None]
    if divisor is None or not gradients:
        return {}
    values = [part.coalesce().values() if part.is_sparse else part for part in gradients]
    return {"grad_norm": math.hypot(*_norms(values)) / divisor}


def _by_group(metric: str, groups: Sequence[str], norms: Sequence[float]) -> dict[str, float]:
    """Return the norm of each group of tensors."""
    parts: dict[str, list[float]] = {}
    for group, norm in zip(groups, norms, strict=True):
        parts.setdefault(group, []).append(norm)
    return {f"{metric}/{group}": math.hypot(*own) for group, own in parts.items()}


def _ratios(
    groups: Sequence[str], strides: Sequence[int], before: Sequence[torch.Tensor], now: Sequence[torch.Tensor]
) -> dict[str, float]:
    """Return the size of the update over that of the weights, for each group whose weights are not all 0."""
    moved = _norms([after - values for after, values in zip(now, before, strict=True)])
    change, size = (
        _by_group(
            "update_ratio", groups, [norm * math.sqrt(stride) for norm, stride in zip(norms, strides, strict=True)]
        )
        for norms in (moved, _norms(before))
    )
    return {name: change[name] / size[name] for name in size if size[name]}


def _dead_shares(alive: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Return the share of the units of each ReLU that were 0 for every input, of several in a group together."""
    shares: dict[str, list[float]] = {}
    for group, (_, units) in zip(grouped([f"{name}." for name in alive]), alive.items(), strict=True):
        shares.setdefault(f"dead_relu_frac/{group}", []).append(1.0 - float(units.float().mean()))
    return {name: sum(own) / len(own) for name, own in shares.items()}


def _divisor(scaler: Any, optimizer: Any, scale: float) -> float | None:
    """Return what the gradients are multiplied by now; None where the scaler does not say whether it unscaled them."""
    if scale == 1.0:
        return 1.0
    states = getattr(scaler, "_per_optimizer_states", None)
    if states is None:
        return None
    own = [states[id(_unwrapped(optimizer))]] if states and optimizer is not None else [*states.values()]
    stages = {getattr(state.get("stage"), "name", None) for state in own}
    if not states or stages == {"READY"}:
        return scale
    return 1.0 if stages == {"UNSCALED"} else None


def _unwrapped(optimizer: Any) -> Any:
    """Return the optimizer of torch within those of accelerate and Lightning."""
    while isinstance(inside := getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        optimizer = inside
    return optimizer


def _local(weight: Any) -> torch.Tensor:
    """Return what of a weight is on this rank: asking for the whole of it would wait for the other ranks."""
    if hasattr(weight, "to_local"):
        weight = weight.to_local()
    found: torch.Tensor = weight.detach()
    return found


def trainable_share(model: Any) -> float:
    """Return the share of a model's weights that are trained."""
    sizes = [(weights.numel(), weights.requires_grad) for weights in model.parameters()]
    total = sum(size for size, _ in sizes)
    if not total:
        return 1.0
    return float(sum(size for size, trained in sizes if trained) / total)
