"""Each trainer's file is complete, and says so where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.context.model import TASKS
from stabtree.frameworks.load import frameworks, knobs, trainers_in
from stabtree.loaders.config import KEYS as LOGGED_KEYS
from stabtree.tools.check.tables import SETTINGS as KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.frameworks.load import Framework


def lacking(one: Framework) -> Iterator[str]:
    """Return what a trainer's file lacks."""
    log = one.log
    columns = log.marks or log.prefix or log.beside or log.csv_logger or log.sparse_csv
    if not (one.config.marks or columns or log.path or log.format or log.prints):
        yield "config.marks or log.marks: how the trainer is recognised"
    unknown = {*one.knobs, *one.general} - knobs().keys()
    if unknown:
        yield f"a knob that exists: {unknown}"
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
        ("name: X\nconfig: {marks: [a], exmaple: b}\n", "Object contains unknown field `exmaple` - at `$.config`"),
        ("config: {marks: [a]}\n", "Object missing required field `name`"),
        ("name: X\nconfig: {marks: a}\n", "Expected `array`, got `str` - at `$.config.marks`"),
        ("name: X\ndefaults: {dtype: half}\n", "Invalid enum value 'half' - at `$.defaults.dtype`"),
        ("name: X\nconfig: {rules: [{at: a, key: lr, is: set}]}\n", "at `$.config.rules[0].is`"),
        ("name: X\nname: Y\n", "x.yaml:2: the key 'name' is given here a second time"),
        ("- a\n", "x.yaml: the file is not a mapping"),
        ("name: [\n", "x.yaml:2: not valid YAML"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_file(tmp_path: Path, text: str, mistake: str) -> None:
    """Whatever is wrong in a trainer's file."""
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(StabtreeError) as caught:
        trainers_in(tmp_path)
    assert mistake in str(caught.value)
    assert str(caught.value).startswith("x.yaml")
