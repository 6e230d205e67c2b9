"""How a loaded run becomes an outcome, the same way for one run, for several, and in other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common import extensions
from stabtree.common.errors import StabtreeError, too_little_memory
from stabtree.judging.settings import Settings, pairs
from stabtree.run import CONFIG

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.verdict import KnownFindings, Outcome
    from stabtree.loaders import Loaded
    from stabtree.measures.registry import Param, Parameter
    from stabtree.run import Run
    from stabtree.tree.model import Question, Tree

    Overrides = dict[str, dict[str, Param]]
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
        from stabtree.diagnosis.result import check_ignored
        from stabtree.diagnosis.walk import diagnose
        from stabtree.judging.verdict import Accepting

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
        from stabtree.judging.verdict import Outcome

        if isinstance(loaded.run, StabtreeError):
            return Outcome(loaded.name, loaded.run)
        try:
            return Outcome(loaded.name, self.diagnosed(loaded.run, asker))
        except MemoryError:
            return Outcome(loaded.name, too_little_memory(loaded.name))

    def _tree(self, run: Run) -> Tree:
        from stabtree.tree.load import load_tree, load_trees

        tree, trees, *_ = self.rules
        if tree:
            return load_tree(tree)
        # What is set, answered, or ignored must exist, whether or not this run needs its tree.
        given = (self.set, self.answers, self.ignore, self.settings.set, self.settings.ignore, self.settings.accept)
        return load_trees(None if any(given) else run, trees)


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


def of_tree(settings: Settings, tree: Tree) -> Settings:
    """Return the settings without those for trees that are not walked here: one file serves logs and configurations.

    Ids that no tree knows stay: they are mistakes, and are reported as such.
    """
    ids = {*(_split(key)[0] for key in settings.set), *settings.ignore, *(item.leaf for item in settings.accept)} - {""}
    unknown = ids - _nodes(tree)
    if not unknown:
        return settings
    from stabtree.tree.load import load_preflight, load_trees

    folder = settings.trees or None
    elsewhere = unknown & _nodes(load_trees(None, folder) if CONFIG in tree.when else load_preflight(folder))
    return replace(
        settings,
        set={key: value for key, value in settings.set.items() if _split(key)[0] not in elsewhere},
        ignore=tuple(id_ for id_ in settings.ignore if id_ not in elsewhere),
        accept=tuple(item for item in settings.accept if item.leaf not in elsewhere),
    )


def _nodes(tree: Tree) -> set[str]:
    return {*tree.questions, *tree.leaves, *tree.facts}


def overrides(tree: Tree, items: Sequence[str], settings: Settings) -> Overrides:
    """Return the parameters to set in a tree; the command line overrides the project's settings.

    Raises:
        StabtreeError: for a value of the wrong type, and for any mistake in the project's settings. Unknown parameters
            of the command line are left to the walk.
    """
    from stabtree.tree.params import apply_overrides

    given = _typed(tree, items)
    taken = {_owner(tree, id_, name) for id_, params in given.items() for name in params}
    for key, value in settings.set.items():
        id_, name = _split(key)
        with settings.blamed(f"set.{key}", hint=f"`stabtree explain {id_ or 'Q2.1'}` shows what can be set"):
            if not id_:
                raise StabtreeError("names no parameter")
            apply_overrides(tree, {id_: {name: value}})
        if _owner(tree, id_, name) not in taken:
            given.setdefault(id_, {})[name] = value
    return given


def _split(key: str) -> tuple[str, str]:
    """Return the id and the parameter of `Q2.1.sigma`; the id is empty if there is but one word."""
    id_, _, name = key.rpartition(".")
    return id_, name


def _owner(tree: Tree, id_: str, name: str) -> tuple[str, str]:
    """Return what a parameter belongs to, as `spike` for `Q2.1.sigma`, and its name."""
    from stabtree.tree.params import declared

    owner = declared(tree, id_).get(name)
    return (owner and owner[0]) or id_, name


def _typed(tree: Tree, items: Sequence[str]) -> Overrides:
    """Parse `Q2.1.sigma=4`, each value by the type of its parameter."""
    from stabtree.tree.params import declared

    found: Overrides = {}
    for key, text in pairs(items, "--set", "Q2.1.sigma=4").items():
        id_, name = _split(key)
        if not id_ or key in tree.questions:
            raise StabtreeError(f"{key!r} names no parameter", where="--set", hint=_set_hint(tree, key, text))
        known = declared(tree, id_)
        value: Param = text
        if name in known:
            value = _parse(text, known[name][1], key)
        found.setdefault(id_, {})[name] = value
    return found


def _set_hint(tree: Tree, key: str, text: str) -> str:
    """Return what to type if only a node was named, without a parameter."""
    from stabtree.tree.params import declared

    if key not in tree.questions:
        return f"type --set {key or 'Q2.1'}.sigma={text}"
    names = list(declared(tree, key))
    if not names:
        return f"{key} has no parameters; `stabtree explain {key}` shows what it asks"
    return f"type --set {key}.{names[0]}={text}; `stabtree explain {key}` lists its parameters"


def _parse(text: str, parameter: Parameter, key: str) -> Param:
    """Convert a text to the type of its parameter.

    Raises:
        StabtreeError: if it is of another type or out of range.
    """
    from stabtree.tree.params import LARGEST, fits

    kind = parameter.kind
    try:
        value = {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        wanted = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind.__name__]
        raise StabtreeError(f"{text!r} is not {wanted}", where=f"--set {key}", hint=f"give {wanted}") from None
    if not fits(value, parameter):
        hint = f"give a number from {parameter.minimum} to {LARGEST:,}"
        raise StabtreeError(f"{text!r} is out of range", where=f"--set {key}", hint=hint)
    return value
