"""What the configuration of a run would be warned of, where its log shows no failure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.diagnosis.judged import STRONG
from stabtree.diagnosis.walker import Walker, WalkOptions, start
from stabtree.diagnosis.whole.coverage import walked
from stabtree.tree.load import load_preflight

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from stabtree.diagnosis.result import Incident
    from stabtree.diagnosis.visits import Visit
    from stabtree.run import Run
    from stabtree.tree.model import Leaf

_SOURCE = re.compile(r" \(([^()]*)\)")


def setting_notes(run: Run, findings: Iterable[Incident]) -> tuple[str, ...]:
    """Return one line on the settings that may make this run fail; none where `check` would warn of nothing.

    Only those that are the cause of some failure: how often the run logged or saved is past.

    Args:
        run: the run.
        findings: what its log shows, whose causes name the setting already.
    """
    if not run.config:
        return ()
    walk = start(run, load_preflight(), WalkOptions())
    named = {item.cause.id for finding in findings for item in finding.causes if item.state in STRONG}
    causes = {cause.like for cause in walk.tree.signatures if cause.id not in named}
    found = [(visits[-1], leaf) for visits, leaf in _ends(walk, causes) if visits and leaf.severity.is_alarm]
    found = [(visit, leaf) for visit, leaf in found if visit.question.id in causes]
    if not found:
        return ()
    text = _text(*found[0])
    if len(found) > 1:
        text = f"{text}; {len(found) - 1} more: stabtree check"
    return (text,)


def _ends(walk: Walker, causes: Collection[str]) -> Iterator[tuple[tuple[Visit, ...], Leaf]]:
    """Yield each walk over the configuration that comes to a leaf, through the sections of some questions."""
    yield walk.walk_path()
    wanted = {walk.tree.questions[id_].section for id_ in causes}
    sections = tuple(walked(walk.run, section) for section in walk.tree.sections[1:] if section.id in wanted)
    for visits, leaf in walk.walk_further(sections):
        if leaf is not None:
            yield visits, leaf


def _text(visit: Visit, leaf: Leaf) -> str:
    """Return what is unusual, with the values and without their sources."""
    return f"{leaf.title}: {_SOURCE.sub('', visit.answer.evidence[0].text)}"
