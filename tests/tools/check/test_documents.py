"""Files of any format and in any state: the same settings, or two lines that say what is wrong; never a crash."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.common.errors import StabtreeError
from stabtree.loaders import config as header
from stabtree.tools.check.document import ConfigFile
from stabtree.tools.check.load import completed, load_config
from stabtree.tools.check.settings import read_settings
from stabtree.tools.check.tables import KINDS, SETTINGS
from tests.loaders.make import write
from tests.tools.check.test_trainers import CASES

if TYPE_CHECKING:
    from stabtree.run import Run

ONE = {"learning_rate": 1e-3, "max_steps": 100, "optim": "adamw", "seed": 3}
SPELLED = {
    "a.json": json.dumps(ONE),
    "a.yaml": "learning_rate: 1e-3\nmax_steps: 100\noptim: adamw\nseed: 3\n",
    "a.toml": 'learning_rate = 1e-3\nmax_steps = 100\noptim = "adamw"\nseed = 3\n',
    "a.conf": json.dumps(ONE, indent=1),
}


def values(run: Run) -> dict[str, object]:
    """The settings of a run without their sources."""
    return {key: one.value for key, one in run.config.items()}


@pytest.mark.parametrize("name", SPELLED)
def test_a_configuration_is_the_same_in_every_format(tmp_path: Path, name: str) -> None:
    """JSON, YAML, TOML, and JSON under another name hold the same settings."""
    run = load_config(write(tmp_path, SPELLED[name], name))
    assert values(run) == {"lr": 1e-3, "max_steps": 100, "optimizer": "adamw", "seed": 3}


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b"", "is empty"),
        ("a.json", b'{"lr": 1', "not valid JSON"),
        ("a.json", b"[" * 200_000, "nests too deeply"),
        ("a.json", b'{"lr": ' + b"9" * 5000 + b"}", "a number too long"),
        ("a.json", b"[1, 2]", "holds no settings"),
        ("a.json", b'{"colour": "red"}', "holds no setting of a training"),
        ("a.json", b'{"architectures": ["Net"], "model_type": "net", "dtype": "float16"}', "no setting of a training"),
        ("a.yaml", b"lr: [1\n", "not valid YAML"),
        ("a.yaml", b"[" * 100_000, "nests too deeply"),
        ("a.yaml", b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(
            b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("j"))
        ), "grows too large"),
        ("a.yaml", b"just words\n", "holds no settings"),
        ("a.yaml", b"lr: 1\n" + b"#" * (2 << 20), "larger than any configuration"),
        ("a.toml", b"lr = \n", "not valid TOML"),
        ("a.toml", b"lr = 1\na" + b".a" * 30_000 + b" = 1\n", "more than 32 parts (at line 2)"),
        ("a.toml", b"[a" + b" . 'b'" * 30_000 + b"]\n", "more than 32 parts"),
        ("a.toml", b"x = {" + b'"a".' * 30_000 + b"b = 1}\n", "more than 32 parts"),
        ("a.toml", b"a = " + b"[" * 100_000, "nests too deeply"),
        ("a.py", b"lr = 0.1\n", "is a program, not a configuration"),
        ("a.sh", b"python train.py --lr 0.1\n", "is a program, not a configuration"),
        ("a.bin", b"\x80\x04\x95\x00\x01\x02", "is no configuration"),
        ("a.log", b"step 1 loss 2.0\nstep 2 loss 1.0\n", "is no configuration"),
    ],
)  # fmt: skip
def test_what_is_no_configuration_is_refused_in_two_lines(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    """A broken, hostile or foreign file is an error that names the file and what is wrong."""
    with pytest.raises(StabtreeError) as caught:
        load_config(write(tmp_path, content, name))
    assert problem in caught.value.problem
    assert name in caught.value.where
    assert "metrics" not in caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A path without a file is an error, and so are no path and a folder without a configuration."""
    for paths, problem in (([tmp_path / "a.yaml"], "no such file"), ([], "no configuration"), ([tmp_path], "no log")):
        with pytest.raises(StabtreeError, match=problem):
            load_config(*paths)


@pytest.mark.parametrize(
    ("text", "key", "note"),
    [
        ("lr: fast\nseed: 1\n", "lr", "a.yaml:1, lr is 'fast'"),
        ("max_steps: 1.5\nseed: 1\n", "max_steps", "not a positive whole number"),
        ("seed: 1\nmax_grad_norm: [1, 2]\n", "grad_clip", "a.yaml:2, max_grad_norm"),
        ("seed: 1\nlr: .inf\n", "lr", "not a number"),
        ("seed: 1\nlr: 1e999\n", "lr", "not a number"),
    ],
)
def test_a_value_of_the_wrong_kind_is_a_note(tmp_path: Path, text: str, key: str, note: str) -> None:
    """A setting whose value can't be one is left out, and a note says where it stands."""
    run = load_config(write(tmp_path, text, "a.yaml"))
    assert key not in run.config
    assert run.config["seed"].value == 1
    assert [told for told in run.notes if note in told]


@pytest.mark.parametrize("text", ["lr: null", "lr: auto", "lr: ${base.lr}", "lr: ???", "lr: ''", "max_steps: -1"])
def test_what_is_left_open_is_not_there(tmp_path: Path, text: str) -> None:
    """Null, `auto`, an interpolation and -1 are no values and no mistakes."""
    run = load_config(write(tmp_path, f"seed: 1\n{text}\n", "a.yaml"))
    assert values(run) == {"seed": 1}
    assert not run.notes


@pytest.mark.parametrize(("name", "text"), [("a.json", '{"lr": 1, "lr": 2}'), ("a.yaml", "lr: 1\nlr: 2\n")])
def test_of_a_repeated_key_the_last_counts_and_a_note_says_so(tmp_path: Path, name: str, text: str) -> None:
    """Trainers take the last of two equal keys; whoever wrote them may not know."""
    run = load_config(write(tmp_path, text, name))
    assert run.config["lr"].value == 2
    assert any("lr" in note for note in run.notes)


def test_nothing_of_a_file_reaches_the_screen_raw(tmp_path: Path) -> None:
    """Escape codes, line ends and passwords in keys and values are gone from settings, sources and notes."""
    text = json.dumps(
        {
            "run_name": "a\x1b[31m\nb",
            "optimizer": {"type": "x\x1b]0;title\x07y"},
            "lr": "\x1b[2J\n::error::",
            "training\x1b[31m": {},
            "seed": "https://me:secret@host/",
        }
    )
    run = load_config(write(tmp_path, text, "a.json"))
    told = [run.name, *run.notes, *(f"{one.value}{one.source}" for one in run.config.values())]
    assert not any("\x1b" in text or "\n" in text or "secret" in text for text in told)
    assert len(run.notes) == 2


def test_bytes_that_are_no_text_are_replaced_with_a_note(tmp_path: Path) -> None:
    """A comment in another encoding costs no setting."""
    run = load_config(write(tmp_path, b"# caf\xe9\nlr: 0.1\n", "a.yaml"))
    assert run.config["lr"].value == 0.1
    assert any("replaced" in note for note in run.notes)


@pytest.mark.parametrize("trainer", CASES)
def test_a_cut_file_is_an_error_or_less_of_the_same(tmp_path: Path, trainer: str) -> None:
    """However much of a configuration is there: it is refused, or says something, and nothing crashes."""
    name, text, _ = CASES[trainer]
    for place in range(1, 10):
        content = text.encode()[: len(text) * place // 10]
        with contextlib.suppress(StabtreeError):
            assert load_config(write(tmp_path, content, name)).config


@pytest.mark.parametrize(
    "text",
    [
        "discriminator: {optimizer: {lr: 0.1}}",
        "model: {vision: {dtype: fp16}}",
        "profiler: {warmup_steps: 5}",
        "epsilon: 0.1",
        "zero_optimization: {stage: 2, batch_size: 4}",
        "optimizer: {name: adam, schedule_fn: {lr: 0.1}, name_of: {lr: 3}}",
        "val: {batch_size: 3}",
        "scheduler: {name: cosine, lr: {warmup: 3}}",
    ],
)
def test_a_key_in_a_section_of_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    """What the section of a key means is not guessed."""
    run = load_config(write(tmp_path, f"seed: 1\n{text}\n", "a.yaml"))
    said = {key for key, one in run.config.items() if not one.source.startswith("default of ")}
    assert said <= {"seed", "optimizer", "lr_schedule", "framework"}
    assert not run.notes


def test_no_spelling_means_two_settings() -> None:
    """A word stands for one setting, and each section knows only settings that there are."""
    words = [word for key, (_, others) in SETTINGS.items() for word in (key, *others)]
    assert sorted(words) == sorted(set(words))
    assert {key for kind in KINDS.values() for key in (*kind.own.values(), *kind.shared)} - {"*"} <= SETTINGS.keys()
    named = [name for kind in KINDS.values() for name in kind.named]
    assert sorted(named) == sorted(set(named))


@pytest.mark.parametrize("key", sorted(SETTINGS.keys() & header.KEYS.keys()))
def test_a_setting_of_a_log_header_is_read_here_as_there(key: str) -> None:
    """What both tables know takes the same values, but that names here are words in lower case."""
    same = SETTINGS[key][0] is header.KEYS[key][0]
    assert same or key in ("optimizer", "lr_schedule", "task", "save_strategy", "adapter")


NAMES = sorted({*SETTINGS, *(name for kind in KINDS.values() for name in kind.named)})
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    PLAIN | st.sampled_from(["auto", "16-true"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([*NAMES, "params", "enabled", "betas", "trainer/lr"]), inner),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(NAMES), JSON, min_size=1))
def test_any_values_give_settings_of_their_kind(values: dict[str, Any]) -> None:
    """Whatever stands at the known keys and in the known sections, what comes out can be read again as it is."""
    reading = read_settings(ConfigFile(Path("a.json"), values))
    for key, one in completed(reading.settings).items():
        assert key == "framework" or SETTINGS[key][0](one.value) == one.value
    assert all(note.isprintable() for note in reading.notes)


def test_comments_in_json_are_left_out(tmp_path: Path) -> None:
    """Trailing commas too; what is in a text stays, and a mistake stands in the line that it has."""
    text = '{"learning_rate": 0.1, // "x\n "name": "a//b, }", /* c\n */ "optimizer": "adam",}'
    run = load_config(write(tmp_path, text, "a.json"))
    assert (run.setting("lr"), run.setting("optimizer"), run.name) == (0.1, "adam", "a//b, }")
    assert "has comments or trailing commas" in run.notes[0]
    with pytest.raises(StabtreeError) as error:
        load_config(write(tmp_path, '{"a": 1, /* b\n */\n "c" 2}', "b.json"))
    assert str(error.value.where).endswith("b.json:3")
