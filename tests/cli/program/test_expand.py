"""Options that are declared once, as the fields of a frozen struct."""

from __future__ import annotations

import inspect
from typing import Annotated

import pytest
from msgspec import Struct

from stabtree.cli.options import Only, expanded, option


class Options(Struct, frozen=True):
    """Three options."""

    name: Annotated[str | None, option("Input", "-n, --name NAME", "A name.")] = None
    many: Annotated[tuple[str, ...], option("Input", "--many WORD", "Words.")] = ()
    flag: Annotated[bool, option("Input", "--flag", "A flag.")] = False


def whole(path: str, options: Options) -> None:
    """Take all options."""
    RECEIVED.append((path, options))


def part(options: Annotated[Options, Only("flag", many=option("Input", "--much WORD", "Much."))]) -> None:
    """Take two options, one of them under another name."""
    RECEIVED.append(options)


def wrong(options: Annotated[Options, Only("nosuch")]) -> None:
    """Ask for an option that is not declared."""


RECEIVED: list[object] = []


def test_a_command_gets_its_options_as_one_value() -> None:
    """What was typed is in the fields, a list as a tuple; what was not typed is the default."""
    RECEIVED.clear()
    expanded(whole)(path="a", name="b", many=["c"], flag=False)
    expanded(whole)(path="a", name=None, many=None, flag=True)
    expanded(part)(flag=True, many=None)
    assert [("a", Options("b", ("c",))), ("a", Options(flag=True)), Options(flag=True)] == RECEIVED


def test_a_command_has_the_options_it_names_in_the_order_of_their_class() -> None:
    """All of them where it names none; those that it declares itself are spelled its own way."""
    assert [*inspect.signature(expanded(whole)).parameters] == ["path", "name", "many", "flag"]
    parameters = inspect.signature(expanded(part)).parameters
    assert [*parameters] == ["many", "flag"]
    assert parameters["many"].annotation.__metadata__[0].default == "--much"


def test_an_unknown_option_is_a_mistake_of_the_program() -> None:
    """It is found when the command is made."""
    with pytest.raises(TypeError, match="Options has no \\['nosuch'\\]"):
        expanded(wrong)
