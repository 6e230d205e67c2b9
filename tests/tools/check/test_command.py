"""`stabtree check`: what it prints of a configuration, in every output, and its exit codes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from stabtree.common import yaml12
from stabtree.report.contract import schema
from stabtree.report.outputs import CHECK, GITHUB, JUNIT, MARKDOWN, SARIF, names
from tests.cli.command import failed, run
from tests.conftest import ROOT
from tests.tools.check.preflights import GOOD
from tests.tools.ci import reading

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VALIDATOR = Draft202012Validator(schema())
HOSTILE = "x ::error::p ##[add-mask]s %0A::set-output name=a::b | <script><b> \x1b[31m \u202ey"
WRONG: dict[str, Any] = {
    "warmup_steps": 0,
    "lr": 0.01,
    "grad_clip": 0.0,
    "weight_decay": 0.5,
    "eval_strategy": "no",
    "epochs": 3,
    "save_total_limit": 1,
    "log_interval": 100,
    "min_lr": 0.02,
    "schedule_steps": 500,
    "batch_size": 3,
    "optimizer_state_dtype": "bf16",
    "loss_scaling": "dynamic",
    "lora_rank": 256,
    "log_filters_nan": True,
    "grad_reduce_dtype": "fp16",
    "device": "Tesla T4",
    "logs": "none",
    "train_on_inputs": True,
}


def written(place: Path, name: str = "run.json", **changes: Any) -> str:
    """The good configuration with changes, in a file."""
    values: Mapping[str, Any] = {**GOOD, **changes}
    (place / name).write_text(
        json.dumps({key: value for key, value in values.items() if value is not None}), encoding="utf-8"
    )
    return str(place / name)


def test_a_finding_stands_beside_its_value_cost_fix_and_source(tmp_path: Path) -> None:
    """The value as it stands in the file, and where."""
    told = run("check", written(tmp_path, grad_clip=0.0), COLUMNS="80").stdout
    for part in (
        "warning  The gradient is not clipped (no-clipping)",
        "  now   grad_clip = 0 (run.json",
        "  cost  One bad batch can make a step of any size.",
        "  fix   Clip the gradient by norm, at 0.5 to 1.0 (grad_clip 0.0 → 1.0).",
        "  from  precision P13",
        "warning: no-clipping · 1 can be fixed (--fix) · exit 1",
    ):
        assert part in told


def test_whatever_is_wrong_fits_on_a_screen(tmp_path: Path) -> None:
    """At most 40 lines of 80 columns, each finding by name with its fix as far as there is room; --full has all."""
    path = written(tmp_path, **WRONG)
    done = run("check", path, COLUMNS="80")
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    document = json.loads(run("check", path, "--json").stdout)
    full = run("check", path, "--full").stdout
    assert len(document["findings"]) > 12
    for finding in document["findings"]:
        assert f"({finding['id']})" in full
        assert finding["id"] in done.stdout
    assert "from  precision P12" in full


def test_more_than_a_screen_holds_is_counted(tmp_path: Path) -> None:
    """Fifty rules of a team are no reason for a second screen; --full names them all, `tree test` tries them."""
    rule = """
  - id: T{n}
    leaf: ours-{n}
    ask: Is it so for the {n}th time?
    test: setting_outside
    params: {{key: lr, high: 1e-9}}
    severity: warning
    title: It is so for the {n}th time
    means: Nothing good.
    fix: Change it.
    source: us"""
    (tmp_path / "rules").mkdir()
    text = "name: ours\ntitle: Ours\nwhen: [config]\nchecks:" + "".join(rule.format(n=n) for n in range(50))
    tests = "\ntests: [{{run: run.json, reaches: {leaf}}}]\n"
    file = tmp_path / "rules" / "ours.yaml"
    file.write_text(text, encoding="utf-8")
    words = ("check", written(tmp_path / "rules"), "--trees", str(tmp_path / "rules"))
    lines = run(*words, COLUMNS="80").stdout.splitlines()
    assert len(lines) <= 40
    assert "and 22 more (--full)" in lines
    assert "(ours-49)" in run(*words, "--full").stdout
    for leaf, code in (("ours-49", 0), ("ours-ok", 1)):
        file.write_text(text + tests.format(leaf=leaf), encoding="utf-8")
        assert run("tree", "test", str(file)).returncode == code


def test_what_is_accepted_is_told_with_its_reason(tmp_path: Path) -> None:
    """It counts for nothing, and the screen says what the verdict would be."""
    (tmp_path / "ours.toml").write_text(
        'accept = [{leaf = "no-clipping", reason = "clipped by the model itself"}]', encoding="utf-8"
    )
    done = run("check", written(tmp_path, grad_clip=0.0), "--settings", str(tmp_path / "ours.toml"))
    assert done.returncode == 0
    assert "Accepted: no-clipping: clipped by the model itself" in done.stdout
    assert "But for what is accepted the verdict would be warning." in done.stdout


@pytest.mark.parametrize(
    ("changes", "words", "code"),
    [
        ({}, (), 0),
        ({"lora_rank": 512}, (), 0),
        ({"lora_rank": 512}, ("--fail-on", "note"), 1),
        ({"optimizer": "adamww"}, (), 0),
        ({"grad_clip": 0.0}, (), 1),
        ({"grad_clip": 0.0}, ("--fail-on", "critical"), 0),
        ({"grad_clip": 0.0}, ("--ignore", "no-clipping"), 0),
        ({"lr": 4e-4}, ("--set", "C21.high=5e-4", "--fail-on", "note"), 0),
        (dict.fromkeys(GOOD) | {"seed": 1, "lora_alpha": 16, "gradient_checkpointing": True}, (), 3),
    ],
)
def test_exit_codes_are_those_of_diagnose(
    tmp_path: Path, changes: dict[str, Any], words: tuple[str, ...], code: int
) -> None:
    """0 for notes and less, 1 from `--fail-on` on, 3 where no rule could be judged."""
    assert run("check", written(tmp_path, **changes), *words).returncode == code


def test_what_can_not_be_checked_is_an_error_of_two_lines(tmp_path: Path) -> None:
    """A file that is not there, one that is no configuration, an output or an id that does not exist."""
    path = written(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing of that kind", encoding="utf-8")
    for words in (
        ("none.yaml",),
        ("",),
        (path, ""),
        (str(tmp_path / "notes.txt"),),
        (path, "--output", "svg"),
        (path, "--ignore", "no-such-leaf"),
        (path, "--set", "C999.high=3"),
        (path, "--set", "C31.no=2"),
        (path, "--tree", "no-such-tree"),
        (path, "--output", f"json={path}"),
    ):
        failed("check", *words)
        failed("check", *words, "--json")


def test_json_is_of_the_same_schema(tmp_path: Path) -> None:
    """Of one configuration, of several, and of an error; each value stands there with its place."""
    wrong, good = written(tmp_path, **WRONG), written(tmp_path, "good.json")
    one = json.loads(run("check", wrong, "--json").stdout)
    VALIDATOR.validate(one)
    assert (one["verdict"], one["run"]["config"]["lr"]["value"]) == ("critical", 0.01)
    assert len(one["run"]["inputs"][0]["sha256"]) == 64
    assert all(finding["evidence"] and finding["actions"] for finding in one["findings"])
    both = json.loads(run("check", wrong, good, "--json").stdout)
    VALIDATOR.validate(both)
    assert [item["verdict"] for item in both["runs"]] == ["critical", "ok"]
    VALIDATOR.validate(json.loads(run("check", "none.yaml", "--json").stdout))


@pytest.mark.parametrize("options", [(), ("--full",), ("-q",), ("--output", MARKDOWN)])
def test_a_folder_is_called_as_it_was_typed(options: tuple[str, ...], tmp_path: Path) -> None:
    """The head names the folder, not the file that was found below it, which a line of its own tells."""
    (tmp_path / "one" / "files").mkdir(parents=True)
    written(tmp_path / "one" / "files", "config.json")
    done = run("check", str(tmp_path / "one"), *options, COLUMNS="300")
    assert f"{tmp_path / 'one'}: Nothing found" in done.stdout.splitlines()[0].replace("\\", "")
    assert ("Read: files/config.json." in done.stdout) is (options != ("-q",))


def test_several_configurations_take_a_line_each_and_one_for_each_finding(tmp_path: Path) -> None:
    """One that can't be read stands among them; the worst gives the exit code."""
    paths = [written(tmp_path, "a.json", grad_clip=0.0), written(tmp_path, "b.json"), str(tmp_path / "c.json")]
    done = run("check", *paths)
    assert done.returncode == 1
    assert [word in done.stdout for word in ("a.json: The gradient", "b.json: Nothing found", "NOT READ")] == [True] * 3
    assert "3 configurations: 1 warning, 1 ok, 1 unread · exit 1" in done.stdout
    assert run("check", *paths[1:]).returncode == 2
    assert len(run("check", *paths[:2], "-q").stdout.splitlines()) == 2


def test_files_of_one_configuration_are_judged_as_one(tmp_path: Path) -> None:
    """With --merge, and what a later file says goes before."""
    whole, more = written(tmp_path), str(tmp_path / "more.json")
    (tmp_path / "more.json").write_text('{"grad_clip": 0.0, "seed": 3}', encoding="utf-8")
    assert run("check", more, whole, "--merge").returncode == 0
    done = run("check", whole, more, "--merge", "--json")
    assert [item["id"] for item in json.loads(done.stdout)["findings"]] == ["no-clipping"]


def test_services_are_told_the_line_of_the_setting(tmp_path: Path) -> None:
    """In YAML, whose lines are known."""
    path = tmp_path / "run.yaml"
    path.write_text("optimizer: adamw\nlearning_rate: 1e-4\nmax_grad_norm: 0\n", encoding="utf-8")
    (command,) = reading.commands(run("check", str(path), "--output", GITHUB).stdout)
    assert [command.properties[key] for key in ("line", "col", "endColumn", "file")] == ["3", "16", "17", str(path)]
    (result,) = reading.sarif(run("check", str(path), "--output", SARIF).stdout)["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 16, "endColumn": 17}
    (tmp_path / "more.yaml").write_text("seed: 1\nmax_grad_norm: 0\n", encoding="utf-8")
    words, summary = (written(tmp_path), str(tmp_path / "more.yaml"), "--merge"), tmp_path / "summary.md"
    merged = run("check", *words, "--output", GITHUB, GITHUB_STEP_SUMMARY=str(summary)).stdout
    assert "| what it costs |" in summary.read_text(encoding="utf-8")
    (command,) = reading.commands(merged)
    assert (command.properties["line"], command.properties["file"]) == ("2", str(tmp_path / "more.yaml"))
    suite = reading.suites(run("check", str(path), "--output", JUNIT).stdout)
    assert suite.get("failures") == "1"


@pytest.mark.parametrize("name", sorted(names(CHECK)))
def test_no_output_carries_what_a_file_smuggles_in(name: str, tmp_path: Path) -> None:
    """Escape codes, commands of a service and HTML in a name, a key or a value reach no screen and no service."""
    (tmp_path / "in").mkdir()
    path = written(tmp_path / "in", logs=HOSTILE, optimizer=f"adamw {HOSTILE}", warmup_steps=0)
    for words in ((path,), (path, path.replace("run.json", "none.json"))):
        told = run("check", *words, "--output", name).stdout
        assert "\x1b" not in told
        assert "\u202e" not in told
        assert "##[add-mask]" not in told
        assert not any(line.startswith("::set-output") for line in told.splitlines())
        if name == MARKDOWN:
            assert "<script>" not in told


def test_the_hook_of_the_repository_runs(tmp_path: Path) -> None:
    """It takes files that are called like a training, and fails on what is critical in them."""
    (hook,) = yaml12.parse((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"), "hooks").value
    assert (hook["id"], hook["language"]) == ("stabtree-check", "python")
    taken = re.compile(hook["files"])
    assert all(map(taken.search, ("configs/train_a.yaml", "sft.json", "a/lora.toml")))
    assert not any(map(taken.search, ("configs/data.yaml", "train.py", "train/data.yaml")))
    program, *words = hook["entry"].split()
    assert program == "stabtree"
    good = written(tmp_path)
    assert run(*words, good, written(tmp_path, "warned.json", grad_clip=0.0)).returncode == 0
    assert run(*words, good, written(tmp_path, "wrong.json", min_lr=1.0)).returncode == 1


@pytest.mark.parametrize(
    ("name", "text", "line", "word"),
    [
        ("a.yaml", "optimizer: adamw\nmax_grad_norm: 0   # off\n", "   2 | max_grad_norm: 0   # off", "0"),
        ("a.yaml", "x: 1\r\na: {b: 1, grad_clip: '0'}\r\n", "   2 | a: {b: 1, grad_clip: '0'}", "'0'"),
        ("a.toml", "[train]\n\tmax_grad_norm = 0\n", "   2 |  max_grad_norm = 0", "0"),
        ("a.json", '{"a": [{"max_grad_norm": 1}], "max_grad_norm":\t0}', None, "0"),
        ("a.json", '{"note": "' + 300 * "é漢" + '\\u001b[31m", "max_grad_norm": 0}', None, "0"),
    ],
)
def test_the_line_is_shown_with_carets_under_the_value(
    tmp_path: Path, name: str, text: str, line: str | None, word: str
) -> None:
    """Cut to the width, without what a terminal would obey, in ASCII too."""
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    for more in ({}, {"PYTHONIOENCODING": "ascii"}):
        lines = run("check", str(tmp_path / name), "--full", COLUMNS="70", **more).stdout.splitlines()
        at = next(index for index, one in enumerate(lines) if set(one.strip()) == {"|", "^", " "})
        shown, carets = lines[at - 1][8:], lines[at][8:]
        assert line in (None, shown)
        before = shown[: shown.rindex(word) + len(word)]
        assert cell_len(shown) <= 62
        assert cell_len(before) == len(carets), (shown, carets)
        assert carets.count("^") == len(word)


@pytest.mark.parametrize(
    ("name", "text", "quoted"),
    [
        ("a.json", '// a\n{/*b*/"lr": 1 5}', '   2 | {/*b*/"lr": 1 5}\n     |               ^\n'),
        ("a.yaml", "lr: 1: 5\r\n", "   1 | lr: 1: 5\n     |      ^\n"),
        ("a.toml", "a = 1\nlr = 1 x\n", "   2 | lr = 1 x\n     |        ^\n"),
        ("tree.yaml", "name: t\ntitel: T\n", "   2 | titel: T\n     | ^^^^^\n"),
    ],
)
def test_an_error_with_a_place_shows_its_line(tmp_path: Path, name: str, text: str, quoted: str) -> None:
    """Of a configuration, and of a tree by `tree check`."""
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    words = ("tree", "check") if name == "tree.yaml" else ("check",)
    assert quoted in run(*words, str(tmp_path / name)).stderr


FIXABLE = "# mine\r\nlr: 1e-4 # ok\r\nmax_grad_norm: '0'\t# off\r\nweight_decay: 0.5\r\noptimizer: adamw"
FIXED = FIXABLE.replace("'0'", "'1.0'").replace("0.5", "0.1")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_fix_writes_the_one_right_value_and_no_other_byte(tmp_path: Path, encoding: str) -> None:
    """--diff shows it and writes nothing; a second --fix changes nothing; a link and a read-only file stay."""
    path, link = tmp_path / "a.yaml", tmp_path / "link.yaml"
    path.write_bytes(FIXABLE.encode(encoding))
    path.chmod(0o640)
    link.symlink_to(path)
    done = run("check", str(path), "--diff")
    assert "\n-weight_decay: 0.5\n" in done.stdout
    assert (done.returncode, "would fix 2 of" in done.stderr) == (1, True)
    assert "was not changed: it is a link" in run("check", str(link), "--fix").stderr
    path.chmod(0o440)
    assert "read-only" in run("check", str(path), "--fix").stderr
    assert path.read_bytes() == FIXABLE.encode(encoding)
    path.chmod(0o640)
    done = run("check", str(path), "--fix")
    assert (done.returncode, "fixed 2 of" in done.stderr, "no-clipping" in done.stdout) == (0, True, False)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (FIXED.encode(encoding), 0o640)
    assert "fixed 0 of" in run("check", str(path), "--fix").stderr
    assert path.read_bytes() == FIXED.encode(encoding)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "base: &off 0\nmax_grad_norm: *off\n"),
        ("a.yaml", "max_grad_norm: &off 0\nother: *off\n"),
        ("a.json", '{"framework": "axolotl", "learning_rate": 0.1}'),
    ],
)
def test_fix_leaves_what_has_no_one_right_place_or_value(tmp_path: Path, name: str, text: str) -> None:
    """A value that others refer to, or one that depends on the run."""
    (tmp_path / name).write_text(f"{text}", encoding="utf-8")
    assert "fixed 0 of" in run("check", str(tmp_path / name), "--fix").stderr
    assert (tmp_path / name).read_text(encoding="utf-8") == text
