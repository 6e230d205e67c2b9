"""A configuration that a trainer prints as YAML: sections, and below them one setting a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.loaders.text.lines.grammar import past_prefix

if TYPE_CHECKING:
    from stabtree.metrics.names import Names

_TITLE = re.compile(r"[^\W\d][\w .-]{0,60}:\s*")
_SETTING = re.compile(r"(?:- )?[\"']?[\w./-]{1,120}[\"']?:(?:\s+(?P<value>\S.*))?|-\s.*|[\]}),]+\s*")
_SECTION = re.compile(r"[A-Z][A-Z_]+:\s*")
_CONFIG = re.compile(r"config|setting|option|argument|\bargs\b|param", re.IGNORECASE)
# What may stand above metrics as well.
_MEASURED = re.compile(
    r"train|val|eval|test|metric|result|epoch|step|iter|stat|score|summary|performance|loss|episode", re.IGNORECASE
)
_PAIR = re.compile(r"\w[:=] ?[-+]?\.?\d")


class PrintedSettings:
    """Recognises the lines of such a configuration.

    Args:
        names: what names mean; a step or a loss that is not indented ends the configuration.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._inside = False

    def look(self, line: str, *, begun: bool) -> bool:
        """Return whether a line belongs to the configuration; `begun` says whether there are rows of metrics."""
        text = line[past_prefix(line) :]
        if self._inside:
            self._inside = self._goes_on(line, text)
        if not self._inside:
            self._inside = self._begins(text, begun=begun)
        return self._inside

    def _goes_on(self, line: str, text: str) -> bool:
        found = _SETTING.fullmatch(text)
        if not found:
            return not text.strip()
        if found["value"] and _PAIR.search(found["value"]):
            return False
        return line[:1].isspace() or self._names.role(text.partition(":")[0]) not in (
            "step",
            "epoch",
            "loss",
            "eval_loss",
        )

    def _begins(self, text: str, *, begun: bool) -> bool:
        if not _TITLE.fullmatch(text):
            return False
        if _CONFIG.search(text) or _SECTION.fullmatch(text):
            return True
        return not begun and not _MEASURED.search(text) and " " not in text.strip()
