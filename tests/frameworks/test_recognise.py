"""By which trainer a run was made, from its configuration or its log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from stabtree.common import yaml12
from stabtree.context.find import framework_of
from stabtree.frameworks.load import frameworks
from stabtree.frameworks.recognise import LoggedFile, config_words, of_config, of_log
from stabtree.metrics.table import normalize
from stabtree.run import ColumnUse, FileUse
from tests.conftest import make_run

if TYPE_CHECKING:
    from stabtree.frameworks.load import Framework

CONFIGURED = [one for one in frameworks().values() if one.config.marks]
LOGGED = [one for one in frameworks().values() if one.log.example]


def framework(columns: str, format_: str = "csv", path: str = "log", first: float | None = None) -> str:
    """Return the framework of a run with one file of these columns."""
    used = tuple(ColumnUse(name.strip(), name.strip(), first=first) for name in columns.split(","))
    return framework_of(replace(make_run({"loss": [1.0]}), sources=(FileUse(path, format_, 1, used),))).value or ""


@pytest.mark.parametrize(
    ("columns", "format_", "path", "expected"),
    [
        ("step, loss", "trainer_state", "out", "huggingface"),
        ("train/loss, train/learning_rate, train/epoch", "tfevents", "runs", "huggingface"),
        ("epoch, step, train_loss", "csv", "lightning_logs/version_0/metrics.csv", "lightning"),
        ("step, loss, lr, grad_norm", "csv", "metrics.csv", ""),
        ("epoch, loss, accuracy, val_loss, val_accuracy", "csv", "log.csv", ""),  # no alphabet: somebody's own loop
        ("epoch, loss", "csv", "log.csv", ""),
    ],
)
def test_a_framework_is_known_by_what_no_other_writes(columns: str, format_: str, path: str, expected: str) -> None:
    """By its columns, its format or its folder; where nothing tells, none is named."""
    assert framework(columns, format_, path) == expected


def test_an_own_loop_that_counts_epochs_from_one_is_not_keras() -> None:
    """CSVLogger begins at 0."""
    assert framework("epoch, loss, val_loss", first=0.0) == "keras"
    assert framework("epoch, loss, val_loss", first=1.0) == ""


@pytest.mark.parametrize("one", CONFIGURED, ids=lambda one: one.id)
def test_the_example_of_a_configuration_is_that_trainer_s_alone(one: Framework) -> None:
    """It is recognised, and of trainers that are tried at the same place no other one's marks fit it."""
    values = yaml12.parse(one.config.example, one.id).value
    assert of_config(values) == one.id
    words = config_words(values)
    level = [other for other in CONFIGURED if other.config.order == one.config.order]
    assert [other.id for other in level if any(mark <= words for mark in other.config.marks)] == [one.id]


@pytest.mark.parametrize("one", LOGGED, ids=lambda one: one.id)
def test_the_example_of_a_log_is_that_trainer_s_alone(one: Framework) -> None:
    """It is recognised, and of trainers that are tried at the same place no other one's marks fit it."""
    columns = [name.strip() for name in one.log.example.split(",")]
    assert of_log(LoggedFile(columns, format="csv")).id == one.id
    names = set(map(normalize, columns))
    level = [other for other in LOGGED if other.log.order == one.log.order and other is not one]
    assert [other.id for other in level if any(mark <= names for mark in other.log.marks)] == []
