"""The account: all that a file holds is judged, harmless by its name, or unexplained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.account import AccountEntry, Fate, account, unexplained
from stabtree.loaders import load_run
from tests.cli.command import run as command

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

ROWS = 60


def csv(tmp_path: Path, columns: dict[str, list[object]]) -> Path:
    """A file of these columns beside steps and a loss that falls."""
    columns = {"step": [*range(ROWS)], "loss": [3 / (1 + 0.1 * step) for step in range(ROWS)], **columns}
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path = tmp_path / "run.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def entries(run: Run, kind: str) -> dict[str, AccountEntry]:
    """The entries of a kind, by name."""
    return {entry.name: entry for entry in account(run) if entry.kind == kind}


def test_every_column_has_a_fate(tmp_path: Path) -> None:
    """A metric is judged, a clock is harmless, and a column that nobody knows is unexplained."""
    path = csv(tmp_path, {"tokens_per_sec": [5] * ROWS, "my_own": [0.5 * step for step in range(ROWS)]})
    found = entries(load_run(path), "series")
    assert {name: entry.fate for name, entry in found.items()} == {
        "step": Fate.JUDGED,
        "loss": Fate.JUDGED,
        "tokens_per_sec": Fate.JUDGED,
        "my_own": Fate.UNEXPLAINED,
    }
    assert found["my_own"].count == ROWS


def test_values_that_are_not_finite_are_never_silent(tmp_path: Path) -> None:
    """Also where they are none of its end: with its name and the first step."""
    own: list[object] = [*[1.0] * 30, *["nan"] * 10, *[1.0] * 20]
    path = csv(tmp_path, {"my_own": own})
    run = load_run(path)
    assert entries(run, "values")["my_own"] == AccountEntry(
        "values", "my_own", Fate.UNEXPLAINED, 10, "not finite", 30, str(path)
    )
    assert unexplained(run) == (
        "my_own holds values that are not finite, the first at step 30; no question judges that.",
    )
    assert "1 problem not explained; see --full" in command("diagnose", str(path)).stdout
    whole = command("diagnose", str(path), "--full").stdout
    assert whole.index("Unexplained") < whole.index("my_own holds values")


@pytest.mark.parametrize("metric", ["loss", "grad_norm", "my_own"])
def test_what_a_question_asks_is_not_listed_again(tmp_path: Path, metric: str) -> None:
    """Questions ask whether the loss, the gradient and the end of any other series are finite."""
    path = csv(tmp_path, {metric: [1.0] * (ROWS - 1) + ["nan"]})
    assert not entries(load_run(path), "values")


def test_lines_with_numbers_that_were_not_read_are_counted(tmp_path: Path) -> None:
    """With the first of them; a time is harmless."""
    path = tmp_path / "run.log"
    rows = [f"step {step} loss {3 / (1 + 0.1 * step):.4f}" for step in range(ROWS)]
    rows.insert(10, "the cache now holds 17 shards and 4 replicas")
    rows.insert(20, "saving took 3.1 seconds")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    run = load_run(path)
    assert [(entry.fate, entry.count, entry.first) for entry in entries(run, "lines").values()] == [
        (Fate.UNEXPLAINED, 1, 11),
        (Fate.HARMLESS, 1, 21),
    ]
    assert unexplained(run) == ("1 line that holds numbers was not read, the first is line 11 (`stabtree inspect`).",)


def test_inspect_and_json_hold_it(tmp_path: Path) -> None:
    """`inspect` shows it by fate; `--json` of both commands lists every entry."""
    path = csv(tmp_path, {"my_own": [0.5] * ROWS})
    shown = command("inspect", str(path)).stdout
    assert "Account" in shown
    assert "unexplained  1 series: my_own" in shown
    for name in ("inspect", "diagnose"):
        assert '"fate": "unexplained"' in command(name, str(path), "--json").stdout


def test_a_name_that_quotes_our_words_hides_nothing(tmp_path: Path) -> None:
    """Sentences are chosen by what they are about, not by their words."""
    path = csv(tmp_path, {"stabtree inspect": ["nan"] * 30 + [1.0] * 30})
    assert "stabtree inspect holds values that are not finite" in " ".join(command("inspect", str(path)).stdout.split())


def test_a_break_before_a_resume_is_unexplained(tmp_path: Path) -> None:
    """Rows that later ones replace are not judged, but a loss that was NaN in them is mentioned."""
    steps = [*range(45), *range(35, ROWS)]
    broken = range(40, 45)
    losses = ["nan" if row in broken else 3 / (1 + 0.1 * step) for row, step in enumerate(steps)]
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n" + "".join(f"{step},{loss}\n" for step, loss in zip(steps, losses, strict=True)))
    run = load_run(path)
    assert [resume.broken_rows for resume in run.resumes] == [5]
    assert unexplained(run) == (
        "The run broke and was resumed at step 35: of the 10 rows that were replaced, 5 are not finite.",
    )
