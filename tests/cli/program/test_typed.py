"""What an option is declared to be, it is when the command gets it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from stabtree.cli.program import convert_without_pydantic
from stabtree.common.errors import StabtreeError


class Colour(StrEnum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


def received(*words: str) -> dict[str, Any]:
    """What a command with an option of each type gets from these words."""
    got: dict[str, Any] = {}
    app = typer.Typer(add_completion=False)

    @app.command()
    def command(
        place: int,
        more: Annotated[list[Path] | None, typer.Argument()] = None,
        text: str | None = None,
        whole: int | None = None,
        number: float = 0.5,
        path: Path | None = None,
        colour: Colour = Colour.RED,
        several: Annotated[list[int] | None, typer.Option()] = None,
        flag: bool = False,
        pair: tuple[int, int] = (1, 2),
    ) -> None:
        got.update(locals())

    made = typer.main.get_command(app)
    convert_without_pydantic(made.params)
    with made.make_context("made", list(words)) as context:
        made.invoke(context)
    del got["got"]
    return got


def test_an_option_has_the_type_it_was_declared_with() -> None:
    """Text, whole numbers, numbers, paths, choices, flags, lists of them, and what only typer can convert."""
    words = "7 a.csv b.csv --text 7 --whole 7 --number 1e-3 --path p --colour blue --several 1 --several 2 --flag"
    assert received(*words.split(), "--pair", "3", "4") == {
        "place": 7,
        "more": [Path("a.csv"), Path("b.csv")],
        "text": "7",
        "whole": 7,
        "number": 0.001,
        "path": Path("p"),
        "colour": Colour.BLUE,
        "several": [1, 2],
        "flag": True,
        "pair": (3, 4),
    }


@pytest.mark.parametrize(
    ("words", "where", "problem"),
    [
        (["x"], "PLACE", "'x' is not a whole number"),
        (["7", "--whole", "1.5"], "--whole", "'1.5' is not a whole number"),
        (["7", "--number", "much"], "--number", "'much' is not a number"),
        (["7", "--colour", "green"], "--colour", "'green' is not one of red, blue"),
        (["7", "--several", "1", "--several", "two"], "--several", "'two' is not a whole number"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], where: str, problem: str) -> None:
    """The message names the option, what was typed and what is wanted."""
    with pytest.raises(StabtreeError) as refused:
        received(*words)
    assert (refused.value.where, refused.value.problem) == (where, problem)
    assert refused.value.hint
