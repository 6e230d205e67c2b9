"""All that is said of a run, in every output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from stabtree.report.html import html
from stabtree.report.json import to_dict
from stabtree.report.markdown import markdown, postmortem
from stabtree.report.model import Report
from stabtree.report.outputs import RenderOptions
from stabtree.report.screen import screen
from stabtree.tools.ci.services import junit

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.report.advice import Action

WIDE = 400  # columns: nothing is cut


@dataclass(frozen=True)
class Outputs:
    """A diagnosis in every output; each is made when it is first asked for."""

    diagnosis: Diagnosis

    @cached_property
    def report(self) -> Report:
        """What the renderers are given."""
        return Report(self.diagnosis)

    @property
    def finding(self) -> Incident | None:
        """What the verdict rests on."""
        return self.report.finding

    @cached_property
    def screen(self) -> str:
        """The screen, so wide that no line is broken."""
        return screen(self.diagnosis, RenderOptions(width=WIDE, plots=False))

    @cached_property
    def full(self) -> str:
        """The full report."""
        return screen(self.diagnosis, RenderOptions(width=WIDE, plots=False, full=True))

    @cached_property
    def json(self) -> dict[str, Any]:
        """What `--json` writes."""
        return to_dict(self.diagnosis)

    @cached_property
    def markdown(self) -> str:
        """The Markdown, without what escapes its signs."""
        return re.sub(r"\\(.)", r"\1", markdown(self.diagnosis))

    @cached_property
    def postmortem(self) -> str:
        """The draft of a post-mortem."""
        return postmortem(self.diagnosis)

    @cached_property
    def html_text(self) -> str:
        """The page's text, without its tags."""
        return unescape(re.sub(r"<[^>]+>", "", html(self.diagnosis)))

    @cached_property
    def junit_sections(self) -> set[str]:
        """The numbered sections in which JUnit reports a failure."""
        cases = ET.fromstring(junit(self.diagnosis)).iter("testcase")  # noqa: S314 - our own
        failed = (case.get("name", "") for case in cases if case.find("failure") is not None)
        return {found[1] for name in failed if (found := re.match(r"§(\d+)", name))}

    @cached_property
    def actions(self) -> list[str]:
        """What to do now: each action with its branches, without the restart."""
        return [_whole(action) for action in self.report.do_now if not action.strong]

    @cached_property
    def restart(self) -> str:
        """The restart as it is advised; empty where none is."""
        return next((action.text for action in self.report.do_now if action.strong), "")

    @property
    def advised(self) -> list[str]:
        """What to do."""
        return self.actions


def _whole(action: Action) -> str:
    """An action with what may come out of it."""
    return " ".join((action.text, *(f"{word}: {text}" for word, text in action.branches)))
