"""The diagnosis of a run: a tree is walked over it, and what was found is put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN, Answer, Evidence
from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import Later
from stabtree.diagnosis.missing import (
    deciding_settings,
    earned,
    lacking_for_ok,
    log_next,
    setting_notes,
    too_few,
    unanswered,
    walked,
    walked_trees,
    with_faults,
    worth_saying,
)
from stabtree.diagnosis.result import Diagnosis, Incident, near_facts, worst_first, worst_severity
from stabtree.diagnosis.walker import Walker, WalkOptions, start
from stabtree.measures.batches import Replay
from stabtree.measures.progress import Reading
from stabtree.measures.registry import any_floats
from stabtree.run import CONFIG, Run
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stabtree.diagnosis.result import Visit
    from stabtree.diagnosis.walker import Ask, Overrides
    from stabtree.tree.model import Leaf, Question, Tree


def diagnose(
    run: object,
    tree: Tree | None = None,
    *,
    literal: bool = False,
    overrides: Overrides | None = None,
    answers: Mapping[str, str] | None = None,
    applied: Iterable[str] = (),
    ignore: Iterable[str] = (),
    ask: Ask | None = None,
) -> Diagnosis:
    """Walk a tree over a run.

    Args:
        run: the run, from `load_run`, or what that takes: a path, a DataFrame, columns, records.
        tree: the tree; by default those that `load_trees` composes.
        literal: apply the document's rules literally, without the guards against noise.
        overrides: parameters by the id of a question, a cause or a fact, as `{"Q2.1": {"sigma": 4.0}}`; what a question
            sets of a fact applies to all that ask for it, and questions that are `like` it follow.
        answers: verdicts given by a person, by question id; they override the data, also where no walk comes by.
        applied: nodes whose fixes were applied without success, as `["Q1.4"]`.
        ignore: leaves that do not count, as `["spike-minor"]`: they are kept apart in `Diagnosis.ignored`.
        ask: called for a question that the data can't answer and a person can; None if nobody can be asked.

    Raises:
        StabtreeError: for an unknown id, verdict, parameter or type in `overrides`, `answers`, `applied` or
            `ignore`, and if the run can't be read.
    """
    if isinstance(run, Run):
        read = run
    else:
        from stabtree.loaders import load_run

        read = load_run(run)
    if tree is None:
        from stabtree.tree.load import load_trees

        tree = load_trees(read)
    if not tree.sections:
        hint = "it is walked with the others: leave --tree out"
        raise StabtreeError("holds no questions to walk", where=tree.name, hint=hint)
    options = WalkOptions(literal, overrides or {}, answers or {}, frozenset(applied), frozenset(ignore))

    def judge(one: Run) -> Diagnosis:
        with any_floats(one):
            return _diagnosis(start(one, tree, options, ask if one is read else None))

    return _with_worst_rank(judge(read), judge)


def _with_worst_rank(whole: Diagnosis, judge: Callable[[Run], Diagnosis]) -> Diagnosis:
    """Add the findings of the rank that is worse than the mean over all ranks, which may hide a failure."""
    worst, where, faults = whole, "", list(whole.faults)
    for rank, series in whole.run.ranks.items():
        alone = judge(replace(whole.run, series=series, ranks={}))
        faults += alone.faults
        if _badness(alone) > max(_badness(worst), 0):
            worst, where = alone, rank
    seen = {item.leaf.id for item in (*whole.reached, *whole.ignored)}
    shown = Evidence(f"on rank {where} alone; the mean over {len(whole.run.ranks)} ranks does not show it")
    added = [item for item in worst.findings if item.leaf.id not in seen]
    findings = worst_first([*whole.findings, *(replace(item, evidence=(shown, *item.evidence)) for item in added)])
    ignored = (*whole.ignored, *(item for item in worst.ignored if item.leaf.id not in seen))
    if where:
        whole = replace(whole, findings=tuple(findings), ignored=ignored, verdict=worst.verdict)
    return with_faults(whole, faults) if faults else whole


def _badness(diagnosis: Diagnosis) -> int:
    """Return the rank of the worst finding, 0 without one; -1 for a verdict of unknown."""
    if diagnosis.verdict == UNKNOWN or not diagnosis.findings:
        return -int(diagnosis.verdict == UNKNOWN)
    return worst_severity(diagnosis.findings).rank


def answering(diagnosis: Diagnosis) -> Callable[[Question, Overrides], Answer]:
    """Return a function that answers any question from the log of a diagnosis, with parameters of one's own."""

    def begin(overrides: Overrides) -> Walker:
        return start(diagnosis.run, diagnosis.tree, WalkOptions(diagnosis.literal, overrides))

    usual = begin(diagnosis.overrides)

    def ask(question: Question, overrides: Overrides) -> Answer:
        other = begin(overrides)
        if other.settings == usual.settings:
            other.facts = usual.facts  # they are the same, and take longest
        return other.by_data(question)

    return ask


def _diagnosis(walk: Walker) -> Diagnosis:
    """Walk the path, then all sections that apply to the run, and return what was found."""
    tree, (path, end) = walk.tree, walk.walk_path()
    sections = tuple(walked(walk.run, section) for section in tree.sections)
    further = list(walk.walk_further(sections[1:]))
    run, facts = walk.run, walk.facts  # with what a person answered on the way
    ends = [(path, end), *((visits, leaf) for visits, leaf in further if leaf is not None)]
    unknown = unanswered(run, walk.seen.values())
    lacking = lacking_for_ok(run, tree, ends, walk.seen.values(), unknown) or too_few(walk, path, end)
    near = near_facts(tree, walk.seen.values())
    reading, monitor = facts.get("reading"), facts.get("monitor")
    misread = reading.misread if isinstance(reading, Reading) else ""
    if not (lacking or misread):
        ends[0] = earned(walk, ends, near)
        end = ends[0][1]
    found, ignored = _found(walk, worth_saying(tree, ends))
    findings = _merged(found, walk)
    missing = tuple(item for item in unknown if item.applies)
    diagnosis = Diagnosis(
        run=run,
        tree=tree,
        path=path,
        end=end,
        further=tuple(visits for visits, _ in further),
        sections=sections,
        trees=walked_trees(tree, sections),
        findings=tuple(findings),
        ignored=tuple(ignored),
        missing=missing,
        # A report shows it, and walking for it takes a while.
        log_next=Later(
            lambda: log_next(
                tree, walk.seen, missing, lacking, worst_first(found), deciding_settings(path, walk.leaf_after)
            )
        ),
        lacking=lacking,
        verdict=_verdict(walk, end, findings, open_=bool(lacking or misread)),
        answer_notes=tuple(walk.answer_notes()),
        misread=misread,
        near=near,
        setting_notes=_setting_notes(walk, findings),
        monitor=monitor if isinstance(monitor, Replay) else None,
        literal=walk.options.literal,
        overrides=walk.options.overrides,
    )
    return with_faults(diagnosis, facts.faults)


def _merged(found: Sequence[Incident], walk: Walker) -> list[Incident]:
    """Return one incident for each event, worst first; each leaf's own where they can't be merged."""
    if not found:
        return []
    from stabtree.diagnosis.incidents import described, incidents_of

    facts, answers = walk.facts, {id_: visit.answer for id_, visit in walk.seen.items()}
    return facts.faults.attempt(
        "part",
        "events",
        lambda: incidents_of(found, facts, answers),
        lambda _fault: [described(item, facts) for item in worst_first(found)],
    )


def _setting_notes(walk: Walker, findings: Sequence[Incident]) -> tuple[str, ...]:
    """Return what of the configuration may make the run fail; beside an alarm it is one of the causes."""
    if walk.options.literal or CONFIG in walk.tree.when or any(item.is_alarm for item in findings):
        return ()
    return walk.facts.faults.attempt("part", "settings", lambda: setting_notes(walk.run), lambda _: ())


def _found(walk: Walker, ends: Iterable[tuple[tuple[Visit, ...], Leaf]]) -> tuple[list[Incident], list[Incident]]:
    """Return what was found at each leaf that is not ok, and apart what is ignored; the first walk to a leaf has it."""
    found: dict[str, Incident] = {}
    for visits, leaf in ends:
        if leaf.severity is not Severity.OK and leaf.id not in found:
            from stabtree.diagnosis.incidents import build_incident  # takes time, and most runs have none

            found[leaf.id] = build_incident(walk.facts, visits, leaf)
    ignored = [found.pop(id_) for id_ in list(found) if id_ in walk.options.ignore]
    return list(found.values()), worst_first(ignored)


def _verdict(walk: Walker, end: Leaf, findings: list[Incident], *, open_: bool) -> str:
    """Return the severity of the worst finding, else of the path's leaf; unknown if too little could be judged."""
    worst = end.severity
    if findings:
        worst = worst_severity(findings)
    elif end.id in walk.options.ignore:
        worst = Severity.OK
    if not worst.is_alarm and open_:
        return UNKNOWN
    return worst
