"""How a run that was loaded becomes an outcome: the same for one, for several, and for those of other processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.accepted import Known
    from stabtree.judging.baseline import Baseline
    from stabtree.judging.outcome import Outcome
    from stabtree.loaders import Loaded
    from stabtree.run import Run
    from stabtree.tree.model import Question, Tree

    Asker = Callable[[Tree], Callable[[Question], str | None]]


@dataclass(frozen=True, slots=True)
class Judging:
    """All that says how runs are judged: plain data, so that another process can be handed it.

    Attributes:
        settings: those of the project that the command line leaves in force.
        tree: the one tree to walk, a shipped one or a file.
        trees: a folder of trees to walk beside the shipped ones.
        literal: judge by the bare thresholds.
        set: parameters, each `ID.PARAM=VALUE`.
        answers: what a person answered, by question.
        applied: nodes whose fixes did not help.
        ignore: leaves that count for nothing; those of the settings come to them.
        baseline: findings that are accepted; what the settings accept comes to them.
        why_not: a node to tell of why the walk did not come to it.
    """

    settings: Settings = field(default_factory=Settings)
    tree: str | None = None
    trees: str | None = None
    literal: bool = False
    set: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    applied: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: Known | None = None
    why_not: str = ""

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises:
            StabtreeError: for one tree and a folder of them.
        """
        if self.tree and self.trees:
            raise StabtreeError("--tree and --trees don't go together", where="--trees", hint="leave one of them out")

    @property
    def rules(self) -> tuple[str | None, ...]:
        """The files that it is judged by."""
        trees = self.tree or self.settings.tree or None, self.trees or self.settings.trees or None
        return *trees, self.settings.source, self.baseline.source if self.baseline else None

    def diagnosed(self, run: Run, asker: Asker | None = None) -> Diagnosis:
        """What is found in a run.

        Args:
            run: the run.
            asker: makes of a tree what asks a person its questions, each once; None to ask nobody.

        Raises:
            StabtreeError: where a tree can't be read, or something is set, answered or ignored that does not exist.
        """
        return self.judged(run, self._tree(run), asker)

    def judged(self, run: Run, tree: Tree, asker: Asker | None = None) -> Diagnosis:
        """What a tree finds in a run; all else as in `diagnosed`."""
        from stabtree.diagnosis.ignored import check_ignored
        from stabtree.diagnosis.walk import diagnose
        from stabtree.judging.accepted import Accepting
        from stabtree.judging.applied import of_tree
        from stabtree.judging.overrides import overrides

        settings = of_tree(self.settings, tree)
        with settings.blamed("ignore"):
            check_ignored(tree, settings.ignore)
        with settings.blamed("accept"):
            check_ignored(tree, [item.leaf for item in settings.accept])
        noted = replace(run, notes=(*filter(None, [settings.note]), *run.notes))
        given = overrides(tree, self.set, settings)
        ask = _once(asker(tree)) if asker else None

        def judge(accepted: tuple[str, ...]) -> Diagnosis:
            return diagnose(
                noted,
                tree,
                literal=self.literal,
                overrides=given,
                answers=self.answers,
                applied=self.applied,
                ignore=(*self.ignore, *settings.ignore, *accepted),
                ask=ask,
            )

        found = Accepting(settings.accept, settings.source, self.baseline).judged(judge)
        if not self.why_not:
            return found
        from stabtree.diagnosis.why.not_reached import why_not

        return replace(found, why_not=why_not(found, self.why_not))

    def outcome(self, loaded: Loaded, asker: Asker | None = None) -> Outcome:
        """What became of a file that was loaded, or why it could not be.

        Raises:
            StabtreeError: as in `diagnosed`: for what is wrong with how to judge, not with the log.
        """
        from stabtree.judging.outcome import Outcome

        run = loaded.run
        return Outcome(loaded.name, run if isinstance(run, StabtreeError) else self.diagnosed(run, asker))

    def _tree(self, run: Run) -> Tree:
        from stabtree.tree.load import load_tree, load_trees

        tree, trees, *_ = self.rules
        if tree:
            return load_tree(tree)
        # What is set, answered, ignored or asked about must exist, whether or not this run needs its tree.
        settings = self.settings
        given = self.set or self.answers or self.ignore or self.why_not
        named = given or settings.set or settings.ignore or settings.accept
        return load_trees(None if named else run, trees)


def _once(ask: Callable[[Question], str | None]) -> Callable[[Question], str | None]:
    """What asks a person each question but once, however often a run is walked."""
    answers: dict[str, str | None] = {}

    def asked(question: Question) -> str | None:
        if question.id not in answers:
            answers[question.id] = ask(question)
        return answers[question.id]

    return asked


def accepted_by(baseline: str | None, settings: Settings) -> Baseline | None:
    """The findings that are accepted, by the file that is named and else the project's.

    Raises:
        StabtreeError: where that is no baseline.
    """
    if baseline is None and not settings.baseline:
        return None
    from stabtree.judging.baseline import read_baseline

    if baseline is not None:
        return read_baseline(baseline)
    try:
        return read_baseline(settings.baseline)
    except StabtreeError as error:
        where = f"{settings.source}: baseline"
        raise StabtreeError(f"{error.where}: {error.problem}", where=where, hint=error.hint) from None
