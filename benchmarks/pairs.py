"""Pairs of runs of the fixtures' trainer: the same recipe with and without its fault, on one seed or on several.

A pair knows the step from which on its fault changes what the loop does; with one seed, nothing differs before it.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fixtures"))

import generate  # noqa: E402 - a script of the fixtures, which are no package
from toy import Hooks, Loop, Recipe, Scaler  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

SHIFTS = (0, 1000, 2000, 3000)  # added to a case's seed
WIRED: dict[str, dict[str, Any]] = {  # faults without a hook: what the recipe would be without them
    "convergence/flat-from-start": {"loop": Loop()},
    "convergence/weights-still": {"loop": Loop()},
    "convergence/no-gradient": {"loop": Loop()},
    "convergence/lr-frozen": {"loop": Loop()},
    "convergence/lr-ends-early": {"loop": Loop()},
    "convergence/gradients-add-up": {"loop": Loop()},
    "convergence/lr-too-low": {"lr": 3e-3},
    "convergence/worse-than-start": {"lr": 3e-3},
    "phase19/scale-constant": {"scaler": Scaler()},
}
"""Their fault acts from the first update on, but for the two schedules, which part where the warm-up ends."""
AFTER_WARMUP = ("convergence/lr-frozen", "convergence/lr-ends-early")


@dataclass(slots=True)
class Watched:
    """Hooks that note the first step at which they change anything."""

    hooks: Hooks
    first: int | None = None
    seen: Hooks = field(init=False)

    def __post_init__(self) -> None:
        """Wrap each hook."""
        self.seen = Hooks(self._batch, self._held_out, self._lr, self._decay)

    def _note(self, step: int, changed: bool) -> None:
        if changed and self.first is None:
            self.first = step

    def _batch(self, step: int, batch: Any) -> Any:
        new = self.hooks.batch(step, batch)
        self._note(step, bool((new.x.tobytes(), new.y.tobytes()) != (batch.x.tobytes(), batch.y.tobytes())))
        return new

    def _held_out(self, step: int, batch: Any) -> Any:
        new = self.hooks.held_out(step, batch)
        self._note(step, new.x.tobytes() != batch.x.tobytes())
        return new

    def _lr(self, step: int, lr: float) -> float:
        new = self.hooks.lr(step, lr)
        self._note(step, abs(new - lr) > 1e-6 * abs(lr))
        return new

    def _decay(self, step: int, weights: str) -> float:
        new = self.hooks.decay(step, weights)
        self._note(step, new != 1.0)
        return new


def faults() -> list[str]:
    """The cases whose fault can be left out, by name: those with a hook, and those of `WIRED`."""
    hooked = [name for name, case in generate.CASES.items() if case.recipe.hooks != Hooks()]
    return [*hooked, *WIRED]


def healthy() -> list[str]:
    """The cases without a fault."""
    return [name for name in generate.CASES if name.startswith("healthy/") or name.endswith("/healthy")]


def recipe_of(name: str, shift: int, *, fault: bool) -> Recipe:
    """The recipe of a case on a seed of its own, with its fault or without; the task is the same on all seeds."""
    recipe = generate.CASES[name].recipe
    task = replace(recipe.task, world=recipe.seed)
    recipe = replace(recipe, seed=recipe.seed + shift, task=task)
    return recipe if fault else replace(recipe, hooks=Hooks(), **WIRED.get(name, {}))


def rows_of(name: str, recipe: Recipe) -> list[dict[str, Any]]:
    """The rows of a recipe, as the trainer of a case logs them."""
    return list(generate.logged(replace(generate.CASES[name], recipe=recipe)))


def train(job: tuple[str, int, bool, Path]) -> Path:
    """Train a run and write its files, if that was not done before; where its fault began stands beside them."""
    name, shift, fault, folder = job
    place = folder / f"{name.replace('/', '.')}-{shift}-{'fault' if fault else 'good'}"
    if (place / "began").exists():
        return place
    watched = Watched(generate.CASES[name].recipe.hooks)
    recipe = recipe_of(name, shift, fault=fault)
    case = replace(generate.CASES[name], recipe=replace(recipe, hooks=watched.seen) if fault else recipe)
    made = generate.files(case)
    place.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        (place / path.name).write_text(text, encoding="utf-8", newline="\n")
    began = recipe.warmup if name in AFTER_WARMUP else watched.first
    (place / "began").write_text(str(0 if began is None else began), encoding="utf-8")
    return place


def train_all(names: Sequence[str], shifts: Sequence[int], folder: Path) -> None:
    """Train cases on seeds, with their faults and without."""
    jobs = [(name, shift, fault, folder) for name in names for shift in shifts for fault in (False, name in FAULTS)]
    with ProcessPoolExecutor() as pool:
        list(pool.map(train, dict.fromkeys(jobs)))


FAULTS = frozenset(faults())
