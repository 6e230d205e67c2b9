"""Text from outside made safe to print: names of files and columns, cells, values of a manifest."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stabtree.common.files import Place

# Codes of a terminal never reach over a line end, whatever follows: no row may be lost to a stray one.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])?")


def clean(text: object, limit: int = 200) -> str:
    r"""Return `text` as one line without escape sequences and control characters, cut to `limit` characters.

    >>> clean("a\x1b[31mred\x1b[0m\tcell\0")
    'ared cell'
    """
    # What is cut off anyway is not worth scanning: a broken file can hold one line of many megabytes.
    head = str(text)[: 4 * limit + 1000]
    flat = head.strip() if head.isprintable() else "".join(map(_printable, without_escapes(head))).strip()
    if len(flat) <= limit:
        return flat
    return flat[: limit - 1] + "…"


def without_escapes(text: str) -> str:
    """Return a text without the codes that colour it or move the cursor."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char.isspace() else ""


_COMMANDS = re.compile(r"^[^\S\n]*:(?=:)|#(?=#\w*\[)", re.MULTILINE)


def inert(text: str) -> str:
    r"""Return lines without commands of CI services: some read `::name::` at their start, others `##[name]` anywhere.

    >>> inert("found in\n  ::set-output name=a::b ##[add-mask]c")
    'found in\n  : :set-output name=a::b # #[add-mask]c'
    """
    return _COMMANDS.sub(r"\g<0> ", text)


# A password may hold slashes; a number before one is the port of a host. A path of the system has one slash of two.
_LOGIN = re.compile(
    r"(?:(?<=://)|(?<=[\w+]{2}:/)(?!/))"
    r"(?:[^/\s:@]{0,200}:(?!\d+/)[^\s@]{0,500}|[^/\s@]{1,500})(?:@[^\s@/]{0,99}(?=@)){0,9}(?=@)"
)
_HIDDEN_NAMES = r"token|key|secret|passw(?:or)?d|pwd|passphrase|signature|credential|auth|x-amz-|x-goog-"
_SIGNED = re.compile(rf"(?i)([?&;#](?:[\w.-]{{0,80}}(?:{_HIDDEN_NAMES})[\w.-]{{0,80}}|sig)=)([^&;\s\"'<>`]+)")
SHORTEST_SECRET = 6  # characters; a shorter one may stand in any word


def masked(text: str) -> str:
    """Return a text without the passwords, tokens and signatures of the addresses in it.

    >>> masked("ftp://me:secret@host/runs and s3://bucket/a@b")
    'ftp://***@host/runs and s3://bucket/a@b'
    >>> masked("simplecache::http:/me:secret@host/a?access_token=secret&part=1")
    'simplecache::http:/***@host/a?access_token=***&part=1'
    """
    if ":/" in text:
        return _SIGNED.sub(r"\1***", _LOGIN.sub("***", text))
    return text


_SLASHES = re.compile(r"(?<=\w{2}):(?=/|[^@/]*:)/*")
_secrets: set[str] = set()


def hide(texts: Iterable[str]) -> None:
    """Keep the passwords, tokens and signatures of the addresses in some texts out of whatever is `hidden` from now on.

    In an address that somebody typed, any number of slashes may follow its scheme.
    """
    for text in texts:
        address = _SLASHES.sub("://", text, count=1) if "@" in text else text
        logins = _LOGIN.findall(address)
        found = (
            *logins,
            *(login.partition(":")[2] for login in logins),
            *(value for _, value in _SIGNED.findall(address)),
        )
        if found:
            from urllib.parse import quote, quote_plus, unquote  # few commands are given a secret

            spelled = (spell(secret) for secret in found for spell in (str, quote, quote_plus, unquote))
            _secrets.update(secret for secret in spelled if len(secret) >= SHORTEST_SECRET)


def hidden(text: str) -> str:
    """Return a text that goes out without those secrets, however a library wrote them into it."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = re.sub(re.escape(secret), "***", text, flags=re.IGNORECASE)
    return text


_STEPS = re.compile(r"\bstep(?=s?(?: around| from| up to)? -?\d)|(?<=\d )step(?=s?\b)")


def counting(text: str, unit: str) -> str:
    """Return a sentence of ours whose numbers of steps count something else.

    >>> counting("up to 4 at step 812, 3 steps before", "row")
    'up to 4 at row 812, 3 rows before'
    """
    if unit == "step":
        return text
    return _STEPS.sub(unit, text)


_SPELLED = {
    **dict(zip("–—−‑‘’·“”×›≈µμ§✓✗●◐○◀▲↑↓┊│┤└─▶…÷‖Δ", "----''-\"\"x>~uuS+x*+o<^^v|||+->~/|d", strict=True)),
    "ε": "eps",
    "√": "sqrt",
    "→": "->",
    "←": "<-",
    "≥": ">=",
    "≤": "<=",
    "±": "+-",
    "σ": "sigma",
    "²": "^2",
}


def to_ascii(text: str) -> str:
    """Return a text in ASCII, for outputs that show nothing else: signs spelled out, letters without accents.

    >>> to_ascii("2.1σ · 14.1 → 3×10² …")
    '2.1sigma - 14.1 -> 3x10^2 ~'
    """
    if text.isascii():
        return text
    spelled = unicodedata.normalize("NFKD", "".join(_SPELLED.get(char, char) for char in text))
    plain_letters = "".join(char for char in spelled if not unicodedata.combining(char))
    return plain_letters.encode("ascii", "replace").decode()


def quoted(place: Place, width: int, *, ascii: bool = False) -> tuple[str, str]:  # noqa: A002 - as in `RenderOptions`
    """Return the line of a place, safe to print, and one of carets under its word, both cut to a width."""
    from rich.cells import cell_len, set_cell_size  # few commands quote a line

    text, most = place.text, 4 * width  # characters beyond these are cut off anyway
    parts = [*map(masked, (text[: place.start], text[place.start : place.end], text[place.end :]))]
    if "".join(parts) != masked(text):  # the word is a part of an address with a password
        parts = [masked(text), "", ""]
    near_by = (parts[0][-most:], parts[1][:most], parts[2][:most])
    before, word, after = (inert("".join(map(_printable, part))) for part in near_by)
    if ascii:
        before, word, after = map(to_ascii, (before, word, after))
    margin = f"{place.line:>4} | "
    room = width - len(margin)
    while cell_len(before) > room // 2 and cell_len(before + word + after) > room:
        before = f"~{before[2:]}"
    line = before + word + after
    if cell_len(line) > room:
        line = f"{set_cell_size(line, room - 1)}~"
    carets = "^" * max(1, min(cell_len(word), room - cell_len(before)))
    return f"{margin}{line}".rstrip(), f"{'| ':>{len(margin)}}{' ' * cell_len(before)}{carets}"


def stays_inside(name: str) -> bool:
    """Return whether a relative file name stays inside its folder; a link may still lead out."""
    if not name or PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive:
        return False
    return ".." not in name.replace("\\", "/").split("/")


def docstring(function: Callable[..., Any]) -> str:
    """Return the docstring of a function; nothing where Python leaves docstrings out (`-OO`)."""
    return (function.__doc__ or "").strip()


def near(name: str, known: Iterable[str], share: float = 0.6) -> str:
    """Return a did-you-mean clause for a name, empty if no known name has that share of it."""
    import difflib  # only a mistake needs it

    found = difflib.get_close_matches(name, list(known), 1, share)
    return "".join(f"; did you mean {name!r}?" for name in found)


def plain(text: str) -> bool:
    """Return whether a text has no number that only Python reads, such as `1_234` and `٣`."""
    return text.isascii() and "_" not in text


def in_words(names: Sequence[str]) -> str:
    """Join names, of which there is at least one.

    >>> in_words(["lr"]), in_words(["lr", "loss", "step"])
    ('lr', 'lr, loss and step')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def first_few(names: Sequence[object], count: int, limit: int = 60) -> str:
    """Return the first names, safe to print and each cut to `limit` characters, and how many more there are.

    >>> first_few(["lr", "loss", "step"], 2), first_few(["lr"], 2)
    ('lr, loss and 1 more', 'lr')
    """
    shown = ", ".join(clean(name, limit) for name in names[:count])
    return shown + f" and {len(names) - count} more" * (len(names) > count)
