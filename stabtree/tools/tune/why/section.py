"""What `--why-not` adds to a diagnosis: each output shows it as this says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.tools.tune.why.data import why_not_dict
from stabtree.tools.tune.why.not_reached import why_not
from stabtree.tools.tune.why.screen import COMES, rows, why_not_text

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.page import Page
    from stabtree.tools.tune.why.model import WhyNot


@dataclass(frozen=True, slots=True)
class WhyNotSection:
    """Why a node was not reached, as part of a diagnosis."""

    found: WhyNot

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, as `--json` writes them."""
        return why_not_dict(self.found)

    def show(self, page: Page, diagnosis: Diagnosis) -> None:
        """Write it on a page of the screen."""
        why_not_text(page, diagnosis, self.found)

    def described(self, diagnosis: Diagnosis) -> tuple[str, list[tuple[str, str]]]:
        """Return its heading, and its rows: each a head, which may be empty, and a text."""
        return f"{self.found.node}: {COMES[self.found.status]}", list(rows(diagnosis, self.found))


def why_not_section(diagnosis: Diagnosis, node: str) -> WhyNotSection:
    """Find out why the walk did not reach a node.

    Raises:
        StabtreeError: where the tree has no such node.
    """
    return WhyNotSection(why_not(diagnosis, node))
