"""What must hold for every measure, on any floats that a log may hold. No exemptions."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabtree.common.answer import NO, UNKNOWN, Answer
from stabtree.measures import MEASURES, all_questions
from stabtree.metrics.table import by_name, is_time
from stabtree.run import LogLine, Resume, Run, Series, Setting
from stabtree.tree.load import load_trees, stated_for
from tests.conftest import falling, make_run, measures_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from stabtree.measures.registry import Measure

WILD = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, 1.0, -1.0, 65504.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf]),
)
CONFIG: Mapping[str, tuple[Any, ...]] = {
    "dtype": ("fp32", "fp16", "bf16", "fp8"),
    "n_classes": (2, 10, 10**6),
    "grad_clip": (1.0,),
    "lr": (1e-3,),
    "lr_schedule": ("cosine", "constant", "step"),
    "max_steps": (100, 5000),
    "warmup_steps": (0, 10, 1000),
    "max_completion_length": (512,),
    "nan_begins": ("embedding", "mlp"),
    "optimizer": ("adam", "adamw", "sgd"),
    "optimizer_state_dtype": ("bf16", "fp32"),
    "epsilon": (1e-8,),
    "beta2": (0.999, 1.0),
    "micro_batch_size": (4,),
    "accumulation_steps": (2,),
    "world_size": (8,),
    "batch_size": (64,),
    "num_generations": (8, 0),
    "task": ("grpo", "sft"),
    "temperature": (0.9, "auto"),
    "weight_decay": (0.01, 0.0),
    "eval_strategy": ("steps", "no"),
    "save_strategy": ("steps", "epoch"),
    "load_best": (True, False),
    "framework": ("huggingface", "megatron"),
    "checkpoint_every": (100,),
    "save_total_limit": (1, 3),
    "log_interval": (10,),
    "loss_scaling": ("dynamic", "none"),
    "min_lr": (1e-4, True),
    "device": ("NVIDIA A100", "V100"),
    "adapter": ("full", "lora"),
    "beta": (0.1,),
    "weights_dtype": ("fp16", "fp32"),
    "schedule_steps": (50, 100),
    "scale_window": (1000, 2000),
}

TREE = load_trees()
# Made once: hypothesis looks over each strategy that it has not seen, which takes longer than drawing from it.
SEEDS = st.integers(0, 2**32 - 1)
POOLS = st.lists(WILD, min_size=1, max_size=6)
COURSES = st.sampled_from([(1.0, 1.0), (4.0, 1.0), (1.0, 900.0), (0.0, 0.0)])
PEAKS = st.sampled_from([1, 30])
ENDS = st.sampled_from([0.0, math.nan])
LENGTHS = st.integers(1, 150)
APART = st.integers(2, 30)
OTHERS = st.sets(st.sampled_from(sorted(name for name in by_name() if not is_time(name))), max_size=4)
SETTINGS = st.sets(st.sampled_from(sorted(CONFIG)))
GIVEN = {key: st.sampled_from(known) for key, known in CONFIG.items()}


@cache
def about(name: str) -> tuple[str, ...]:
    """The metrics that a measure asks for, in its signature or by a tree that names one; else those of its facts."""
    measure = MEASURES[name]
    given = [value for node in TREE.questions.values() if node.test == name for value in node.params.values()]
    words = [need.name for need in measure.needs] + [str(value) for value in (*measure.params.values(), *given)]
    facts = [MEASURES[need.name] for need in measure.needs if need.kind == "Measure"]
    own, theirs = (
        tuple(dict.fromkeys(word for word in found if word in by_name()))
        for found in (words, [need.name for fact in facts for need in fact.needs])
    )
    return own or theirs


@cache
def asked_of(name: str) -> st.SearchStrategy[set[str]]:
    """Some of the metrics that a measure asks for."""
    return st.sets(st.sampled_from(about(name))) if about(name) else st.just(set())


def column(draw: st.DrawFn, metric: str, steps: NDArray[np.int64], *, wild: bool) -> Series:
    """A series of any floats, or a course of values with some noise, which may hold a spike and end in NaN."""
    rng = np.random.default_rng(draw(SEEDS))
    if wild and draw(st.booleans()):
        pool = np.array(draw(POOLS))
        return Series(metric, steps, pool[rng.integers(0, len(pool), len(steps))])
    begin, end = draw(COURSES)
    values = np.linspace(begin, end, len(steps)) * np.exp(rng.normal(0, 0.01, len(steps)))
    values[120:125] *= draw(PEAKS)
    values[145:] += draw(ENDS)
    return Series(metric, steps, values)


def columns(draw: st.DrawFn, name: str) -> dict[str, Series]:
    """Some or all of what the measure asks for, and a few others, at the same steps or each at its own."""
    rng = np.random.default_rng(draw(SEEDS))
    together, wild = draw(st.booleans()), draw(st.booleans())
    asked = set(about(name)) if together else draw(asked_of(name))
    found: dict[str, Series] = {}
    for metric in sorted({"loss"} | asked | draw(OTHERS)):
        grouped = by_name()[metric].grouped and draw(st.booleans())
        for key in (f"{metric}/embed", f"{metric}/b") if grouped else (metric,):
            gaps = np.ones(150) if together else rng.integers(1, draw(APART), draw(LENGTHS))
            found[key] = column(draw, key, np.cumsum(gaps).astype(np.int64) - 1, wild=wild)
    return found


@st.composite
def runs(draw: st.DrawFn, name: str) -> Run:
    """Any run: columns, perhaps a configuration, resumes, another run and a line that tells of an error."""
    found = columns(draw, name)
    keys = set(CONFIG) if draw(st.booleans()) else draw(SETTINGS)
    config = {key: Setting(draw(GIVEN[key]), "test") for key in sorted(keys)}
    rerun = Run("other", columns(draw, name), config) if draw(st.booleans()) else None
    lines = (LogLine(3, "RuntimeError: CUDA out of memory", at_end=True),) if draw(st.booleans()) else ()
    resumes = (Resume(60, 50, 10),) if draw(st.booleans()) else ()
    return Run("any", found, config, resumes=resumes, lines=lines, rerun=rerun)


def plain(name: str, end: float = 1.0, every: int = 1) -> Run:
    """A run with all that a measure asks for, whose series fall, a spike in each, and the value at their ends.

    It is logged every so many steps.
    """
    values = np.linspace(4, 1, 150) * np.exp(np.random.default_rng(0).normal(0, 0.01, 150))
    values[120:125] *= 30
    values[145:] = end
    asked = ("loss", *about(name))
    grouped = (f"{metric}/{part}" for metric in asked if by_name()[metric].grouped for part in ("b", "embed"))
    found = {metric: Series(metric, np.arange(150) * every, values) for metric in (*asked, *grouped)}
    config = {key: Setting(known[0], "test") for key, known in CONFIG.items()}
    config |= {"dtype": Setting("fp16", "test"), "weight_decay": Setting(10.0, "test")}
    return Run("plain", found, config, rerun=Run("other", found, config))


def ask(measure: Measure, run: Run, **params: Any) -> Answer:
    """The answer with default parameters but the given ones."""
    return measure.ask(measures_of(run), {**stated_for(measure.name), **params})


@pytest.mark.parametrize("name", all_questions())
def test_any_floats_give_an_honest_answer(name: str) -> None:
    """Any run gets an answer; it is the same twice, changes nothing, its numbers are finite; not all are unknown."""
    verdicts: set[str] = set()

    @settings(max_examples=15)
    @given(run=runs(name))
    def honest(run: Run) -> None:
        verdicts.add(honest_answer(MEASURES[name], run).verdict)

    series = plain(name).series
    alone = (Run("bare", series), Run("classifier", series, {"n_classes": Setting(10, "test")}))
    for known in (plain(name), plain(name, math.inf), plain(name, every=10), *alone):
        verdicts.add(honest_answer(MEASURES[name], known).verdict)
    honest()
    assert verdicts - {UNKNOWN}


def honest_answer(measure: Measure, run: Run) -> Answer:
    """An answer, after a look at all that must hold of it."""
    before = {name: series.values.copy() for name, series in run.series.items()}
    answer = ask(measure, run)
    assert answer == ask(measure, run)
    for name, series in run.series.items():
        np.testing.assert_array_equal(series.values, before[name])
    assert answer.verdict in measure.verdicts
    assert bool(answer.evidence) == (answer.verdict != UNKNOWN)
    assert bool(answer.reason) == (answer.verdict == UNKNOWN)
    for item in answer.evidence:
        assert item.text
        for number in (item.observed, item.threshold):
            assert number is None or math.isfinite(number)
        assert all(isinstance(step, int) for step in item.steps)
    return answer


@pytest.mark.parametrize("measure", all_questions().values(), ids=all_questions())
def test_a_required_series_that_is_missing_gives_unknown(measure: Measure) -> None:
    """Without a series that it needs, a measure says unknown and names what to log."""
    for need in measure.needs:
        if need.required and need.kind in ("Series", "Groups"):
            others = (n.name for n in measure.needs if n.kind in ("Series", "Groups") and n.name != need.name)
            names = {name: [1.0] * 60 for name in others}
            answer = ask(measure, make_run(names))
            assert answer.verdict == UNKNOWN
            assert answer.missing == (need.name,)
            assert by_name()[need.name].log


SCALE_FREE = (
    *("nonfinite_loss", "loss_spikes", "spike_recovers", "spike_cause", "loss_rising", "settled", "nonfinite_grad"),
)


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("seed", range(3))
def test_scaling_the_loss_and_shifting_the_steps_change_no_verdict(name: str, seed: int) -> None:
    """A loss in other units, or a run that starts at another step, gets the same verdict."""
    loss = falling(600, seed=seed)
    loss[400] += 3
    columns = {"loss": loss, "lr": np.full(600, 1e-3), "grad_norm": np.ones(600)}
    here = ask(MEASURES[name], make_run(columns))
    scaled = ask(MEASURES[name], make_run({**columns, "loss": loss * 1024}))
    shifted = ask(MEASURES[name], make_run(columns, steps=range(70_000, 70_600)))
    assert here.verdict == scaled.verdict == shifted.verdict
    if here.onset_step is not None:
        assert shifted.onset_step == here.onset_step + 70_000


def test_every_no_shows_how_far_the_run_stayed_away() -> None:
    """On a healthy run each `no` of a threshold question shows what was seen against what it takes."""
    columns = {"loss": falling(600), "lr": np.full(600, 1e-3), "grad_norm": np.ones(600), "weight_norm": np.ones(600)}
    for name in ("loss_spikes", "loss_rising", "lr_rising", "weight_norm_change", "grad_norm_rising"):
        answer = ask(MEASURES[name], make_run(columns))
        assert answer.verdict == NO
        assert answer.evidence[0].observed is not None
        assert answer.evidence[0].threshold is not None
