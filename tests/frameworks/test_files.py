"""Each trainer's file is complete, and says so where it is not."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.context.model import TASKS
from stabtree.frameworks.load import FOLDER, frameworks, knobs, read
from stabtree.loaders.config import KEYS as LOGGED_KEYS
from stabtree.tools.check.tables import SETTINGS as KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.frameworks.model import Framework


def lacking(one: Framework) -> Iterator[str]:
    """Return what a trainer's file lacks."""
    if one.config.marks and not one.config.example:
        yield "config.example: a small configuration that tests recognise"
    if (one.log.marks or one.log.beside) and not one.log.example:
        yield "log.example: the columns of a log that tests recognise"
    for knob in knobs():
        if knob not in one.knobs and knob not in one.general:
            yield f"knobs.{knob}: how it is spelled; or name it under `general`"
    for knob in set(one.general) & one.knobs.keys():
        yield f"a choice: {knob} is under `general` and spelled as well"


@pytest.mark.parametrize("one", frameworks().values(), ids=lambda one: one.id)
def test_a_trainer_s_file_lacks_nothing(one: Framework) -> None:
    """It has examples to recognise, and spells each knob or leaves it to general words on purpose."""
    assert not list(lacking(one)), f"{one.id}.yaml lacks {list(lacking(one))}"


@pytest.mark.parametrize("one", frameworks().values(), ids=lambda one: one.id)
def test_what_a_file_names_is_known(one: Framework) -> None:
    """Keys of settings, metrics and other trainers."""
    set_ = {*one.config.keys.values(), *(rule.key for rule in one.config.rules)}
    assert set_ <= KEYS.keys()
    assert one.defaults.task in (*TASKS, "")
    settings = {setting.partition("=")[0] for setting in one.log.prints.values() if setting}
    assert settings <= LOGGED_KEYS.keys()
    assert {*one.may_run_on, one.defaults.takes_beside} <= {*frameworks(), ""}


def test_every_knob_has_words_for_any_other_trainer() -> None:
    """Where the trainer is not known, or spells it in no way of its own; an empty text leaves it out."""
    assert set(knobs()) >= {knob for one in frameworks().values() for knob in one.knobs}
    assert knobs()["lr"] == "lr"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("name: X\nconfig: {marks: [a], exmaple: b}\n", "x.yaml:2: config.exmaple is not a known key; did you mean"),
        ("config: {marks: [a]}\n", "x.yaml:1: name is missing"),
        ("name: X\n", "x.yaml:1: nothing says how the trainer is recognised"),
        ("name: X\nconfig: {marks: a}\n", "x.yaml:2: config.marks is not a list of texts"),
        ("name: X\nconfig: {marks: [a], order: first}\n", "config.order is not a whole number"),
        ("name: X\nconfig: [a]\n", "x.yaml:2: config is not a mapping"),
        ("name: X\nlog: {marks: [a], csv_logger: maybe}\n", "log.csv_logger is not true or false"),
        ("name: X\nlog: {marks: [a]}\nknobs: {lrr: lr}\n", "x.yaml:3: knobs.lrr is not a known key; did you mean 'lr'"),
        ("name: X\nlog: {marks: [a]}\ngeneral: lr speed\n", "general names 'speed', which is not a knob"),
        ("name: X\nlog: {marks: [a]}\nbuilt_on: hugginface\n", "x.yaml:3: built_on is not one of "),
        ("name: X\nlog: {marks: [a]}\ndefaults: {dtype: half}\n", "defaults.dtype is not one of weights, "),
        ("name: X\nname: Y\nlog: {marks: [a]}\n", "x.yaml:2: the key 'name' is given here a second time"),
        ("name: X\nconfig: {marks: [a], rules: [{at: a.b}]}\n", "config.rules.0.key is missing"),
        ("name: X\nconfig: {marks: [a], rules: [{at: a, key: lr, is: set}]}\n", "is 'set' is not any, list or a list"),
        ("- a\n", "x.yaml:1: the file is not a mapping"),
        ("name: [\n", "x.yaml:2: not valid YAML"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_file_and_line(tmp_path: Path, text: str, mistake: str) -> None:
    """Whatever is wrong in a trainer's file."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(StabtreeError) as caught:
        read(tmp_path)
    assert mistake in str(caught.value)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    """Those of one file and those of others."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "x.yaml").write_text("nmae: X\nknobs: {speed: v}\n", encoding="utf-8")
    (tmp_path / "y.yaml").write_text("name: Y\n", encoding="utf-8")
    with pytest.raises(StabtreeError) as caught:
        read(tmp_path)
    assert caught.value.problem.count("x.yaml") == 4
    assert caught.value.problem.count("y.yaml") == 1
