"""A comparison as one page: the words of the screen in its order, both runs drawn, and nothing that a name can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.run import Setting
from stabtree.tools.compare import outputs as words
from stabtree.tools.compare.compare import compare_runs
from stabtree.tools.compare.outputs import page
from tests.conftest import falling, make_run, series
from tests.report.test_html import HOSTILE, LOADS, Parts

if TYPE_CHECKING:
    from stabtree.run import Run
    from stabtree.tools.compare.compare import Comparison

ROWS, AT = 300, 200
HEADS = ("One over the other", "What differs", "Settings that differ")


def healthy(seed: int) -> Run:
    """A run with a loss and a setting."""
    run = make_run({"loss": falling(ROWS, seed=seed), "grad_norm": 1 + 0.1 * falling(ROWS, seed=seed + 50)})
    return replace(run, config={"lr": Setting(1e-3 * seed, "test")})


def jumping(seed: int, name: str = "loss") -> Run:
    """A run whose loss jumps, and whose gradient norm is NaN for a while."""
    run = healthy(seed)
    values = np.where(np.arange(ROWS) >= AT, 3.0, 1.0) * run.series["loss"].values
    norms = run.series["grad_norm"].values.copy()
    norms[AT + 20 : AT + 30] = np.nan
    changed = {name: series(name, values), "grad_norm": series("grad_norm", norms)}
    return replace(run, series={**run.series, **changed})


def compared(good: tuple[Run, ...], bad: Run) -> Comparison:
    """Their comparison, under names."""
    return compare_runs(good, bad, [*(f"good/{index}.csv" for index, _ in enumerate(good)), "bad.csv"])


@pytest.mark.parametrize("count", [1, 3])
def test_the_page_says_what_the_screen_says_in_its_order(count: int) -> None:
    """Title, basis, differences, settings and what to type next."""
    found = compared(tuple(healthy(seed) for seed in range(1, count + 1)), jumping(7))
    parts = Parts(page(found))
    texts = [words.basis(found), words.next_command(found), words.title(found)[1:]]
    texts += [item.metric for item in found.differences] + [item.key for item in found.settings]
    for text in texts:
        assert text in parts.text
    places = [parts.text.index(head) for head in HEADS]
    assert places == sorted(places)
    # Both are drawn, several good runs as one band, and the first worse step is marked.
    drawn = {attributes.get("class") for tag, attributes in parts.elements if tag == "path"}
    assert {"curve", "behind", "worse-line"} <= drawn
    assert f"worse from {AT}" in parts.text
    alike = Parts(page(compared((healthy(1),), healthy(2)))).text
    assert "No difference beyond noise" in alike
    assert "What differs" not in alike


def test_no_name_reaches_beyond_its_text() -> None:
    """Of a series, a setting, a run or a note; and nothing is asked of the network."""
    good, bad = healthy(1), jumping(1, f"weight_norm/{HOSTILE}")
    good = replace(good, series={**good.series, f"weight_norm/{HOSTILE}": series("x", falling(ROWS, seed=1))})
    bad = replace(bad, config={HOSTILE: Setting(HOSTILE, "test")})
    found = replace(compare_runs([good], bad, [HOSTILE, HOSTILE]), notes=(HOSTILE,), left_out=((HOSTILE, HOSTILE),))
    parts = Parts(page(found))
    assert "alert(1)" in parts.text
    assert not {"img", "iframe"} & {tag for tag, _ in parts.elements}
    loads = [value or "" for _, attributes in parts.elements for name, value in attributes.items() if name in LOADS]
    assert all(value.startswith(("#", "data:")) for value in loads)
    assert "script" not in {tag for tag, _ in parts.elements}
    assert "\x1b" not in "".join(show(found) for show in (page, words.screen, words.headline, words.markdown))
    assert "<script>" not in words.markdown(found)


def test_a_notebook_shows_a_card() -> None:
    """In at most 15 kB, with no name beyond its text; the text form is one line."""
    shown = compared((healthy(1),), jumping(1, HOSTILE))._repr_html_()
    assert len(shown.encode()) <= 15_000
    assert not {"img", "script", "iframe"} & {tag for tag, _ in Parts(shown).elements}
    assert "DIFFERS" in Parts(shown).text
    assert repr(compared((healthy(1),), jumping(1))) == f"Comparison('bad.csv': worse, loss from {AT})"
