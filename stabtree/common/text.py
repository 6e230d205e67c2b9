"""Text from outside made safe to print: names of files and columns, cells, values of a manifest."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MOST_DIGITS = 17  # a float has no more
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.?)", re.DOTALL)


def clean(text: object, limit: int = 200) -> str:
    r"""One line of `text` without escape sequences and control characters, cut to `limit` characters.

    >>> clean("a\x1b[31mred\x1b[0m\tcell\0")
    'ared cell'
    """
    # What is cut off anyway is not worth scanning: a broken file can hold one line of many megabytes.
    head = str(text)[: 4 * limit + 1000]
    flat = "".join(
        char if char.isprintable() else " " if char.isspace() else "" for char in _ESCAPES.sub("", head)
    ).strip()
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


_COMMANDS = re.compile(r"^[^\S\n]*:(?=:)|#(?=#\w*\[)", re.MULTILINE)


def inert(text: str) -> str:
    r"""Lines in which no CI service sees a command: one reads `::name::` at their start, others `##[name]` anywhere.

    >>> inert("found in\n  ::set-output name=a::b ##[add-mask]c")
    'found in\n  : :set-output name=a::b # #[add-mask]c'
    """
    return _COMMANDS.sub(r"\g<0> ", text)


# A password may hold slashes; a number before one is the port of a host.
_LOGIN = re.compile(
    r"(?<=://)(?:[^/\s:@]{0,200}:(?!\d+/)[^\s@]{0,500}|[^/\s@]{1,500})(?:@[^\s@/]{0,99}(?=@)){0,9}(?=@)"
)
_SIGNED = re.compile(r"(?i)([?&](?:x-amz-[a-z-]+|x-goog-[a-z-]+|awsaccesskeyid|signature|sig|token|key)=)[^&\s]+")


def masked(text: str) -> str:
    """A text without the passwords and signatures of the addresses in it.

    >>> masked("ftp://me:secret@host/runs and s3://bucket/a@b")
    'ftp://***@host/runs and s3://bucket/a@b'
    """
    return _SIGNED.sub(r"\1***", _LOGIN.sub("***", text)) if "://" in text else text


_STEPS = re.compile(r"\bstep(?=s?(?: around| from| up to)? -?\d)|(?<=\d )step(?=s?\b)")


def counting(text: str, unit: str) -> str:
    """A sentence of ours whose numbers of steps count something else.

    >>> counting("up to 4 at step 812, 3 steps before", "row")
    'up to 4 at row 812, 3 rows before'
    """
    return text if unit == "step" else _STEPS.sub(unit, text)


_SPELLED = {
    **dict(zip("–—−‑‘’·“”×›≈µ§✓✗●◐○◀▲↑↓┊│┤└─▶", "----''-\"\"x>~uS+x*+o<^^v|||+->", strict=True)),
    "…": "~",
    "ε": "eps",
    "μ": "u",
    "√": "sqrt",
    "÷": "/",
    "→": "->",
    "←": "<-",
    "≥": ">=",
    "≤": "<=",
    "±": "+-",
    "σ": "sigma",
    "²": "^2",
}


def to_ascii(text: str) -> str:
    """A text in ASCII alone, for what can show nothing else: signs spelled out, letters without their accents.

    >>> to_ascii("2.1σ · 14.1 → 3×10² …")
    '2.1sigma - 14.1 -> 3x10^2 ~'
    """
    if text.isascii():
        return text
    spelled = unicodedata.normalize("NFKD", "".join(_SPELLED.get(char, char) for char in text))
    return "".join(char if char.isascii() else "?" for char in spelled if not unicodedata.combining(char))


def stays_inside(name: str) -> bool:
    """Whether a file's name, relative to a folder, stays within it as far as its words say; a link may yet lead out."""
    if not name or PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive:
        return False
    return ".." not in name.replace("\\", "/").split("/")


def docstring(function: Callable[..., Any]) -> str:
    """The docstring of a function, from its source where Python was told to leave docstrings out (`-OO`)."""
    if function.__doc__:
        return function.__doc__.strip()
    import ast
    from inspect import getsource
    from textwrap import dedent

    try:
        source = dedent(getsource(function))
        # `ast.parse` leaves them out as well, since 3.14.
        tree = compile(source, "source", "exec", ast.PyCF_ONLY_AST, optimize=0)
    except (OSError, SyntaxError):  # no source lies beside the bytecode
        return ""
    made = tree.body[0] if isinstance(tree, ast.Module) else tree
    return ast.get_docstring(made) or "" if isinstance(made, ast.FunctionDef) else ""


def near(name: str, known: Iterable[str]) -> str:
    """A did-you-mean clause for a name, empty where nothing is near."""
    import difflib  # only a mistake needs it

    found = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def plain(text: str) -> bool:
    """Whether a text can only be a number as all programs write it: Python alone takes `1_234` and `٣` for numbers."""
    return text.isascii() and "_" not in text


def against(value: float, limit: float, form: str = ".3g") -> str:
    """A number in few digits, or in as many as tell it from a limit that it did not reach or is beyond.

    Args:
        value: the number.
        limit: what it was compared with, which stands beside it.
        form: the least digits, as in a format: `.3g`, `.1f` or `.0%`.

    >>> against(29.996, 30.0), against(0.7996, 0.8, ".0%"), against(30.0, 30.0)
    ('29.996', '79.96%', '30')
    """
    digits, kind = int(form[1:-1]), form[-1]
    while digits < MOST_DIGITS:
        shown = f"{value:.{digits}{kind}}"
        if all(
            _side(_read(shown), other) == _side(value, limit) for other in (limit, _read(f"{limit:.{digits}{kind}}"))
        ):
            return shown
        digits += 1
    return f"{value:.{digits}{kind}}"


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def _read(shown: str) -> float:
    return float(shown.removesuffix("%")) / (100 if shown.endswith("%") else 1)


def in_words(names: Sequence[str]) -> str:
    """All names, of which there is at least one.

    >>> in_words(["lr"]), in_words(["lr", "loss", "step"])
    ('lr', 'lr, loss and step')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
