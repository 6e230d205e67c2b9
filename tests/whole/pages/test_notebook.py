"""A real notebook, run by a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "phase19" / "fp16-overflow"
CELLS = (
    "import stabtree\nrun = stabtree.load_run({str(FIXTURE)!r})\nrun",
    "run.to_frame().tail(2)",
    "diagnosis = stabtree.diagnose(run)\ndiagnosis",
    "diagnosis.to_dict()['findings'][0]['id']",
)


def test_a_notebook_shows_a_run_and_its_page() -> None:
    """A run is a line, a diagnosis is the page in a frame, plain values are values."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(cell.replace("{str(FIXTURE)!r}", repr(str(FIXTURE)))) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    shown = [cell["outputs"][-1]["data"] for cell in notebook["cells"]]
    assert shown[0]["text/plain"].startswith("Run('fp16-overflow'")
    assert "<table" in shown[1]["text/html"]
    assert shown[2]["text/html"].startswith("<iframe sandbox ")
    assert "&lt;!doctype html&gt;" in shown[2]["text/html"]
    assert shown[3]["text/plain"] == "'fp16-overflow'"
