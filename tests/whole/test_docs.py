"""What the documentation shows works: its tree, and what it tells agents to type and to read."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from stabtree.cli.program import commands
from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.report.contract import VERDICTS, schema
from stabtree.tree.load import build, load_trees
from tests.cli.command import run
from tests.cli.test_recipes import BASH, process
from tests.conftest import FIXTURES, ROOT, falling, make_run

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = ROOT / "docs"
PAGE = DOCS / "how-to" / "write-a-tree.md"
CHECK = DOCS / "how-to" / "check.md"
SKILL = ROOT / "skills" / "stabtree" / "SKILL.md"
FOR_AGENTS = (ROOT / "AGENTS.md", SKILL)
MAX_LINES = 60
LOGS = ("trainer_state.json", "wandb")


def blocks(language: str, page: Path = PAGE) -> list[str]:
    """The fenced blocks of a page."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def test_the_tree_of_the_page_works() -> None:
    """Its question, its check, and the edge that leads into Phase-19."""
    tree = build(blocks("yaml")[0], "house.yaml")
    well = make_run({"loss": falling(400), "eval_loss": falling(400), "grad_norm": np.ones(400)})
    assert not [finding for finding in diagnose(well, tree).findings if finding.leaf.id == "do-not-promote"]
    large = make_run({"loss": falling(400), "eval_loss": np.full(400, np.nan), "grad_norm": np.full(400, 9.0)})
    ids = [finding.leaf.id for finding in diagnose(large, tree).findings]
    assert {"do-not-promote", "gradients-too-large"} <= set(ids)


def test_the_rule_about_a_configuration_works(tmp_path: Path) -> None:
    """It is found beside ours, and no log is walked through it."""
    (tmp_path / "house.yaml").write_text(blocks("yaml")[1], encoding="utf-8")
    (tmp_path / "run.yml").write_text("adapter: lora\nlearning_rate: 2.5e-4\noptimizer: adamw\n", encoding="utf-8")
    (tmp_path / "rules").mkdir()
    (tmp_path / "house.yaml").rename(tmp_path / "rules" / "house.yaml")
    told = run("check", str(tmp_path / "run.yml"), "--trees", str(tmp_path / "rules"))
    assert (told.returncode, "(house-rate)" in told.stdout) == (1, True)
    assert "K1" not in load_trees(None, tmp_path / "rules").questions


@pytest.mark.parametrize("line", [line for block in blocks("bash", CHECK) for line in block.splitlines()])
def test_the_commands_of_the_page_on_checks_work(line: str, tmp_path: Path) -> None:
    """They are green for a configuration with a warning, and red for one that loses the run."""
    (tmp_path / "configs").mkdir()
    files = ("train.yaml", "configs/a.yaml", "configs/b.yaml")
    for rate, code in ((3e-4, 0), (0, 1)):
        for file in files:
            (tmp_path / file).write_text(
                f"adapter: lora\nlearning_rate: {rate}\noptimizer: adamw_torch\nbf16: true\n", encoding="utf-8"
            )
        (tmp_path / "zero3.json").write_text('{"bf16": {"enabled": true}, "gradient_clipping": 0}', encoding="utf-8")
        done = process([*BASH, "-c", line], tmp_path)
        assert done.returncode == code, done.stdout + done.stderr


def test_the_tests_of_the_page_print_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over logs that are as their names say, to the letter."""
    monkeypatch.chdir(tmp_path)
    Path("house.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    Path("fixtures").mkdir()
    for name, grad_norm, above in (("eval-nan", 1, np.nan), ("large-gradients", 9, 1.1), ("good", 1, 1.1)):
        rows = [f"{step},{loss:.6f},{grad_norm},{above * loss:.6f}" for step, loss in enumerate(falling(400))]
        text = "\n".join(["step,loss,grad_norm,eval_loss", *rows, ""])
        Path(f"fixtures/{name}.csv").write_text(text, encoding="utf-8")
    (block,) = blocks("console")
    command, _, shown = block.partition("\n")
    assert command == "$ stabtree tree test house.yaml"
    done = run("tree", "test", "house.yaml", COLUMNS="80")
    assert (done.returncode, done.stdout) == (0, shown)


def test_the_skill_says_what_it_is_for() -> None:
    """Its front matter has the name of its folder, and a description that fits into a list of skills."""
    _, front, _ = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    said = yaml.safe_load(front)
    assert set(said) == {"name", "description"}
    assert said["name"] == SKILL.parent.name
    assert 100 < len(said["description"]) <= 1024


@pytest.mark.parametrize(
    "line", [line for page in FOR_AGENTS for block in blocks("bash", page) for line in block.splitlines()]
)
def test_what_an_agent_is_told_to_type_works(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command ends in a verdict, not in an error, and prints JSON where it says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copy(FIXTURES / "phase19" / "nan-forward" / "metrics.csv", "run.csv")
    shutil.copy(FIXTURES / "phase19" / "healthy" / "metrics.csv", "good.csv")
    shutil.copytree(FIXTURES / "phase19" / "lr-rising", "runs/lr-rising")
    Path("config.yaml").write_text(
        "bf16: true\noptimizer: adamw_torch\nwarmup_ratio: 0.03\nlr: 1e-4\nmax_grad_norm: 1.0\n", encoding="utf-8"
    )
    program, *words = shlex.split(line, comments=True)
    assert program == "stabtree"
    done = run(*words)
    assert done.returncode == (words[0] in ("diagnose", "scan", "compare", "watch")), done.stderr
    if "--json" in words or "jsonl" in words:
        lines = "jsonl" in words or words[0] == "watch"
        assert all(json.loads(text) for text in (done.stdout.splitlines() if lines else [done.stdout]))
    for file in re.findall(r"=(\S+\.\w+)", line):
        assert Path(file).stat().st_size


@pytest.mark.parametrize("page", FOR_AGENTS, ids=lambda page: page.name)
def test_what_an_agent_is_told_to_read_is_there(page: Path) -> None:
    """Every field is one of the contract, and every option one of a command; all verdicts and states are named."""
    text = page.read_text(encoding="utf-8")
    said = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```|^---.*?^---", "", text, flags=re.DOTALL | re.MULTILINE))
    known = set(keys(schema())) | {str(word) for word in VERDICTS}
    states = {str(state).replace(" ", "_") for state in CauseState}
    for phrase in said:
        if re.fullmatch(r"[a-z_.\[\]]+", phrase) and phrase not in (*commands(), *LOGS):
            assert {*re.findall(r"[a-z_]+", phrase)} <= known | states, phrase
    options = "".join(run(name, "--help").stdout for name in ("diagnose", "scan"))
    assert all(option in options for phrase in said for option in re.findall(r"^--[a-z-]+", phrase))
    assert {str(word) for word in VERDICTS} <= {*said}
    if page.name == "AGENTS.md":
        assert states <= {*said}


def keys(node: Any) -> Iterator[str]:
    """The names of all fields of a schema."""
    if isinstance(node, dict):
        yield from node.get("properties", ())
    for held in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from keys(held)


def test_the_loop_of_the_recorders_page_stops_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is of 15 lines, and ends with one that names the finding and what to type."""
    monkeypatch.chdir(tmp_path)
    code = blocks("python", DOCS / "how-to" / "recorder.md")[0]
    assert len(code.partition("\n\n")[2].splitlines()) <= 15
    state: dict[str, object] = {}
    exec(code.replace("import stabtree", "import stabtree\nrandom.seed(1)"), state)  # noqa: S102 - our own page
    assert state["step"] == 150
    assert "stabtree diagnose run.jsonl" in caplog.text


def test_the_torch_loop_of_the_recorders_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A healthy one: nothing is raised, and its log holds what the page's table promises."""
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'stabtree[test-integrations]'")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    monkeypatch.chdir(tmp_path)
    exec(blocks("python", DOCS / "how-to" / "recorder.md")[1], {})  # noqa: S102 - our own page
    log = Path("run.jsonl").read_text(encoding="utf-8")
    table = re.search(r"\| logged as .*?\n\n", (DOCS / "how-to" / "recorder.md").read_text(encoding="utf-8"), re.DOTALL)
    assert table
    names = {name for row in table[0].strip().splitlines()[2:] for name in re.findall(r"`([a-z_]+)", row.split("|")[1])}
    assert {name for name in names if f'"{name}' not in log} == {"eval_loss", "loss_scale", "skipped_steps"}
