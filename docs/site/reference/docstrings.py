"""What docstrings say: the first line, and the attributes of a class, in the form in which this package writes them."""

from __future__ import annotations

import inspect
import re
from typing import Any

KEY = re.compile(r"^ {4}(\w+): ", re.MULTILINE)


def about(thing: Any) -> str:
    """The first paragraph."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def attributes(thing: type) -> dict[str, str]:
    """What the attributes of a class mean, by their names; empty where its docstring lists none."""
    _, _, listed = (inspect.getdoc(thing) or "").partition("Attributes:\n")
    names = list(KEY.finditer(listed))
    ends = [*(name.start() for name in names[1:]), len(listed)]
    return {name[1]: " ".join(listed[name.end() : end].split()) for name, end in zip(names, ends, strict=False)}
