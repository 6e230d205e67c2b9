"""What a text says: its step, its settings, what it asks to log, and on what it depends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE = "the rate"
SAID = 0.5  # of the words of a text: with so many of them another one says the same
_TITLE = re.compile(r"\b(?:Step|Epoch|Row) ([\d,]+):")
_CLOSING = re.compile(r" at (?:step|epoch|row) ([\d,]+)")
_CHANGE = re.compile(r"([\w.-]+) (\d\S*) → (\d[\d.e+-]*\d|\d)")
_VALUE = re.compile(r"\b([a-z]+_[a-z_]+)(?:: |=)(\d[\d.e+-]*\d|\d)")
_CLIP = re.compile(r"[Cc]lip the gradient (?:by norm )?at (\d[\d.]*\d)")
_LEAP = re.compile(r"[Ff]ind what sets? .*?→ \S+")  # what the rate did, and not what it should be
_RATES = re.compile(r"(^|[_./-])(lr\d?|learning_rate)($|[_./-])", re.IGNORECASE)
_LOG = re.compile(r"\b[Ll]og (?!\w+\.)([^.;:]+)")
_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\blr\b|\bloss\b|\breward\b|\bentropy\b")
_IF = re.compile(
    r"\b[Ii]f (?:the |its )?(eval loss|held-out loss|grad_norm|gradient norm|loss scale|reward|entropy|lr)\b"
)
METRICS = {
    "eval loss": "eval_loss",
    "held-out loss": "eval_loss",
    "gradient norm": "grad_norm",
    "loss scale": "loss_scale",
}
_BEST = re.compile(r"\b(?:minimum|lowest|best|nearest to)\b[^.]*?\b(?:step|epoch|row) ([\d,]+\d|\d)")
_TOPICS = ((r"learning rate.*too high|rate.*too high", "rate too high"), (r"learning rate.*too low", "rate too low"))
AGREE = (
    (r"(?<!not )finite\?", "no", r"^all "),
    (r"(?<!not )finite\?", "yes", r"\bare not finite|\bis NaN"),
    (r"NaN or inf\?", "yes", r"^all .* finite"),
    (r"NaN or inf\?", "no", r"first is (NaN|inf)"),
    (r"falling, flat or rising", "falling", r"^loss rises by"),
    (r"falling, flat or rising", "rising", r"^loss falls by"),
    (r"falling, flat or rising", "flat", r"^loss (falls|rises) by (9\d|[1-9]\d\d)"),
    (r"rising", "no", r"^loss rises by \d\d"),
)
"""Short questions -> an answer -> evidence that contradicts it."""


def number(text: str) -> int:
    """A whole number as people write it."""
    return int(text.replace(",", ""))


def shares_words(text: str, other: str) -> bool:
    """Whether most of the longer words of a text are in another one."""
    found = set(re.findall(r"[a-z_]{4,}", text.lower()))
    return not found or sum(word in other for word in found) >= SAID * len(found)


def step_of_title(title: str) -> int | None:
    """The step that a title begins with."""
    found = _TITLE.search(title)
    return number(found[1]) if found else None


def step_of_closing(closing: str) -> int | None:
    """The step of a last line."""
    found = _CLOSING.search(closing)
    return number(found[1]) if found else None


def settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings that a text gives a value, the rate under one name."""
    text = _LEAP.sub("", text)
    for name, _, value in _CHANGE.findall(text):
        yield RATE if _RATES.search(name) else name, value
    for name, value in _VALUE.findall(text):
        yield RATE if _RATES.search(name) else name, value
    yield from (("clipping", value) for value in _CLIP.findall(text))


def asked_to_log(text: str) -> list[str]:
    """The metrics that a text asks to log."""
    return [name for part in _LOG.findall(text) for name in _NAME.findall(part)]


def conditions(text: str) -> list[str]:
    """The metrics on which a text makes its advice depend."""
    return [METRICS.get(name, name) for name in _IF.findall(text)]


def best_steps(text: str) -> list[int]:
    """The steps that a text calls the best."""
    return [number(step) for step in _BEST.findall(text)]


def topic(text: str) -> str:
    """What a cause is about, where several causes are about it; else empty."""
    return next((name for pattern, name in _TOPICS if re.search(pattern, text)), "")


def plain(text: str) -> str:
    """A text without what a page or Markdown sets it in."""
    return re.sub(r"[`*\\\s]", "", text)
