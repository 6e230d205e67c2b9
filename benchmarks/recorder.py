"""What `stabtree.Recorder` costs a training loop: microseconds a call, a share of a step of a model of 10 M weights.

    python -m benchmarks.recorder                  calls of log(), beside json.dumps of the same row
    python -m benchmarks.recorder --model          model(), batch() as well: needs torch

All are timed in turns in one process, call by call: what else runs on the machine hits all alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS, ROUNDS = 20_000, 6
GOAL_US, GOAL_SHARE = 50.0, 0.02


def row(step: int) -> dict[str, float]:
    """What a loop logs of a step."""
    return {"loss": 2.0 + 1e-6 * step, "grad_norm": 0.731, "lr": 3e-4, "eval_loss": 2.125, "tokens_per_second": 51234.5}


def microseconds(call: Callable[[int], object], step: int) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    call(step)
    return (time.perf_counter() - began) * 1e6


def calls(folder: Path) -> None:
    """Print what a call of log() costs, with and without judging, beside json.dumps and a plain write."""
    plain = (folder / "plain.jsonl").open("w", encoding="utf-8")
    quiet, judged = Recorder(folder / "quiet.jsonl"), Recorder(folder / "judged.jsonl", on_finding=lambda _: None)

    def written(step: int) -> None:
        plain.write(json.dumps({"step": step, **row(step)}) + "\n")
        plain.flush()

    timed: dict[str, Callable[[int], object]] = {
        "json.dumps of the row": lambda step: json.dumps({"step": step, **row(step)}),
        "json.dumps, write, flush": written,
        "Recorder.log": lambda step: quiet.log(step, row(step)),
        "Recorder.log, judged now and then": lambda step: judged.log(step, row(step)),
    }
    took: dict[str, list[float]] = {name: [] for name in timed}
    for step in range(CALLS):
        for name, call in timed.items():
            took[name].append(microseconds(call, step))
    for name, each in took.items():
        each.sort()
        print(f"{name:34} median {each[CALLS // 2]:7.1f} us, 99 of 100 below {each[CALLS * 99 // 100]:7.1f} us")
    print(f"{'goal':34} median {GOAL_US:7.1f} us")
    quiet.close()


def model(folder: Path) -> None:
    """Print what the Recorder adds to the steps of a transformer on one thread, each of 8 texts of 64 tokens."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer = torch.nn.TransformerEncoderLayer(320, 8, 1280, batch_first=True, activation=torch.nn.ReLU())
    body = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    net: Any = torch.nn.Sequential(torch.nn.Embedding(4000, 320), body, torch.nn.Linear(320, 4000))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    rec = Recorder(folder / "model.jsonl")

    def timed(step: int) -> tuple[float, float]:
        """Seconds of a step without the Recorder's, and of the Recorder; its part in optimizer.step is in the first."""
        tokens = torch.randint(0, 4000, (8, 64))
        began = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        middle = time.perf_counter()
        rec.batch(step, tokens)
        rec.model(step, net, optimizer)
        after = time.perf_counter()
        optimizer.step()
        done = time.perf_counter()
        rec.log(step, loss=loss)
        return middle - began + done - after, after - middle + time.perf_counter() - done

    timed(0)
    every = rec.stats_every
    # Of `every` steps one looks at the weights, nine more at the gradient; the one before a look watches the ReLUs.
    kinds: dict[str, list[tuple[float, float]]] = {"look": [], "norm": [], "rest": []}
    for begin in range(every, (ROUNDS + 1) * every, every):
        for kind, step in (("look", begin), ("norm", begin + every // 10), ("rest", begin + every // 10 + 1)):
            kinds[kind].append(timed(step))
    own = {kind: statistics.median(seen for _, seen in times) for kind, times in kinds.items()}
    usual = statistics.median(step for step, _ in kinds["rest"])
    inside = max(statistics.median(step for step, _ in kinds["look"]) - usual, 0.0)
    added = own["look"] + inside + 9 * own["norm"] + (every - 10) * own["rest"]
    print(f"{sum(weight.numel() for weight in net.parameters()):,} weights, a step {usual * 1e3:.1f} ms")
    for kind, seconds in own.items():
        print(f"the Recorder in a step of kind {kind}: {seconds * 1e3:.2f} ms")
    print(f"a look adds {inside * 1e3:.2f} ms to optimizer.step")
    print(f"all of it: {added / (every * usual):.2%} of {every} steps (goal {GOAL_SHARE:.0%})")


def main() -> None:
    """Time what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="store_true", help="a model's statistics as well")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calls(Path(folder))
        if asked.model:
            model(Path(folder))


if __name__ == "__main__":
    main()
