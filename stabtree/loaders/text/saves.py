"""The lines of a text log that report a saved checkpoint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.loaders.table import Save

if TYPE_CHECKING:
    from stabtree.common.lazy import Ints

_WHAT = r"(?:checkpoints?|ckpt|models?|weights|(?:training|train) state)\b"
_SAVED = re.compile(
    rf"\bsav(?:ing|ed)\b[^,;.=]{{0,40}}?\b{_WHAT}(?!/)|\b{_WHAT}[^,;.=]{{0,40}}?\b(?:was |is )?saved\b", re.IGNORECASE
)
# What is not written yet, is no checkpoint, is an exception's own text, or is only mentioned in source code.
_NOT = re.compile(
    r"\b(?:not|will|would|won't|don't|if|to be|no|skip\w*|fail\w*|\w*(?:error|exception)|unable|config\w*|tokenizer"
    r"|plots?|figures?|results?|tensors?|every|can|should)\b|[({]\s*[\"'f]",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{1,12}")
MAX_SAVES = 100_000


class Saves:
    """Collects these lines while a log is read."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int, tuple[int, ...]]] = []

    def look(self, text: str, number: int, row: int) -> None:
        """Keep a line if it reports a checkpoint, saved after the first `row` rows."""
        # Looking for a word is far cheaper than for a pattern.
        may = row and len(self._found) < MAX_SAVES and ("sav" in text or "Sav" in text)
        if may and _SAVED.search(text) and not _NOT.search(text):
            self._found.append((row, number, tuple(map(int, _NUMBER.findall(text)))))

    def within(self, begin: int, end: int, kept: Ints) -> tuple[Save, ...]:
        """Return those after the rows `begin` to `end`, with the indices of their rows among those kept."""
        return tuple(
            Save(int(np.searchsorted(kept, row - 1 - begin, side="right")) - 1, line, numbers)
            for row, line, numbers in self._found
            if begin < row <= end and len(kept) and kept[0] <= row - 1 - begin
        )
