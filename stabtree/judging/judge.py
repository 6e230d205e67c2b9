"""How a loaded run becomes an outcome, the same way for one run, for several, and in other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common import extensions
from stabtree.common.errors import StabtreeError
from stabtree.judging.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.accepted import KnownFindings
    from stabtree.judging.outcome import Outcome
    from stabtree.loaders import Loaded
    from stabtree.run import Run
    from stabtree.tree.model import Question, Tree

    Asker = Callable[[Tree], Callable[[Question], str | None]]


class Judging(Struct, frozen=True):
    """Everything that decides how runs are judged: plain data, so that it can be sent to another process.

    Attributes:
        settings: the project's settings that the command line does not override.
        tree: the one tree to walk, a shipped one or a file.
        trees: a folder of trees to walk beside the shipped ones.
        literal: judge by the bare thresholds.
        set: parameters, each `ID.PARAM=VALUE`.
        answers: what a person answered, by question.
        applied: nodes whose fixes did not help.
        ignore: leaves to ignore, in addition to those of the settings.
        baseline: accepted findings, in addition to those of the settings.
    """

    settings: Settings = field(default_factory=Settings)
    tree: str | None = None
    trees: str | None = None
    literal: bool = False
    set: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    applied: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: KnownFindings | None = None

    def __post_init__(self) -> None:
        """Reject options that are mutually exclusive.

        Raises:
            StabtreeError: for one tree and a folder of them.
        """
        if self.tree and self.trees:
            raise StabtreeError("--tree and --trees don't go together", where="--trees", hint="leave one of them out")

    @property
    def rules(self) -> tuple[str | None, ...]:
        """The files that runs are judged by, as the tree and the settings."""
        tree = self.tree or self.settings.tree or None
        trees = self.trees or self.settings.trees or None
        return tree, trees, self.settings.source, self.baseline.source if self.baseline else None

    def diagnosed(self, run: Run, asker: Asker | None = None) -> Diagnosis:
        """Diagnose a run.

        Args:
            run: the run.
            asker: takes a tree and returns what asks a person its questions; None to ask nobody.

        Raises:
            StabtreeError: if a tree can't be read, or something is set, answered or ignored that does not exist.
        """
        return self.judged(run, self._tree(run), asker)

    def judged(self, run: Run, tree: Tree, asker: Asker | None = None) -> Diagnosis:
        """Diagnose a run with a given tree; otherwise as `diagnosed`."""
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
        parameters = overrides(tree, self.set, settings)
        ask = _cached(asker(tree)) if asker else None

        def judge(accepted: tuple[str, ...]) -> Diagnosis:
            return diagnose(
                noted,
                tree,
                literal=self.literal,
                overrides=parameters,
                answers=self.answers,
                applied=self.applied,
                ignore=(*self.ignore, *settings.ignore, *accepted),
                ask=ask,
            )

        return Accepting(settings.accept, settings.source, self.baseline).diagnose(judge)

    def outcome(self, loaded: Loaded, asker: Asker | None = None) -> Outcome:
        """Return the outcome of a file: its diagnosis, or why it could not be loaded.

        Raises:
            StabtreeError: as in `diagnosed`, for mistakes in how to judge, not in the log.
        """
        from stabtree.judging.outcome import Outcome

        if isinstance(loaded.run, StabtreeError):
            return Outcome(loaded.name, loaded.run)
        return Outcome(loaded.name, self.diagnosed(loaded.run, asker))

    def _tree(self, run: Run) -> Tree:
        from stabtree.tree.load import load_tree, load_trees

        tree, trees, *_ = self.rules
        if tree:
            return load_tree(tree)
        # What is set, answered, or ignored must exist, whether or not this run needs its tree.
        settings = self.settings
        given = self.set or self.answers or self.ignore
        if given or settings.set or settings.ignore or settings.accept:
            return load_trees(None, trees)
        return load_trees(run, trees)


def _cached(ask: Callable[[Question], str | None]) -> Callable[[Question], str | None]:
    """Return a function that asks a person each question only once, however often a run is walked."""
    answers: dict[str, str | None] = {}

    def ask_once(question: Question) -> str | None:
        if question.id not in answers:
            answers[question.id] = ask(question)
        return answers[question.id]

    return ask_once


def accepted_by(baseline: str | None, settings: Settings) -> KnownFindings | None:
    """Read the accepted findings from the given file, or else the project's baseline.

    Raises:
        StabtreeError: if the file is not a baseline.
    """
    if baseline is None and not settings.baseline:
        return None
    read_baseline: Callable[[str], KnownFindings] = extensions.function("read_baseline")
    if baseline is not None:
        return read_baseline(baseline)
    try:
        return read_baseline(settings.baseline)
    except StabtreeError as error:
        where = f"{settings.source}: baseline"
        raise StabtreeError(f"{error.where}: {error.problem}", where=where, hint=error.hint) from None
