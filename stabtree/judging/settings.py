"""The settings of a project: `stabtree.toml`, or `[tool.stabtree]` of `pyproject.toml`.

They are read from the working directory or from the file that `--config` names, never from the folder of a log: what is
judged must not say how strictly. What the command line says goes before them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near
from stabtree.judging.accepted import Acceptance
from stabtree.judging.levels import levels_of
from stabtree.loaders.assemble.steps import MAX_STEP
from stabtree.metrics.names import named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE, SHARED = "stabtree.toml", "pyproject.toml"
LARGEST_BYTES = 1_000_000
NOTED = 200  # characters of the values in the note


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project sets of the options of `diagnose`; each field after the first two is a key of the file.

    Attributes:
        source: the file; empty where there is none.
        folder: where it lies: its paths are relative to that.
        column: columns by metric.
        step_column: the column that holds the steps.
        tree: a shipped tree or a file.
        trees: a folder of trees.
        set: parameters, `Q2.1.sigma` -> value.
        fail_on: levels.
        ignore: leaves that count for nothing; those of the command line come to them.
        accept: leaves that are accepted of some runs, with the reason.
        baseline: the file of findings that are accepted.
        accept_partial: whether a run passes of which nothing is wrong in what could be judged.
        checkpoint_every: steps between two checkpoints, whatever a manifest says.
    """

    source: str = ""
    folder: Path = field(default_factory=Path)
    column: Mapping[str, str] = field(default_factory=dict)
    step_column: str = ""
    tree: str = ""
    trees: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)
    fail_on: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    accept: tuple[Acceptance, ...] = ()
    baseline: str = ""
    accept_partial: bool = False
    checkpoint_every: int = 0

    def without(self, options: Mapping[str, Any]) -> Settings:
        """The settings that the command line leaves in force, given its options by the names of the keys."""
        said = {key: value for key, value in options.items() if value}
        if said.keys() & {"tree", "trees"}:  # one goes without the other
            said |= {"tree": True, "trees": True}
        left: dict[str, Any] = {key: type(getattr(self, key))() for key in said}
        for key in said.keys() & {"column", "set"}:
            names = {item.partition("=")[0].strip() for item in said[key]}
            left[key] = {name: value for name, value in getattr(self, key).items() if name not in names}
        return replace(self, **left)

    def for_reading(self) -> Settings:
        """Those that say how a log is read."""
        read = {key: getattr(self, key) for key in ("column", "step_column", "checkpoint_every")}
        return Settings(self.source, self.folder, **read)

    def reading(
        self,
        columns: Mapping[str, str] = MappingProxyType({}),
        step_column: str | None = None,
        checkpoint_every: int | None = None,
    ) -> dict[str, Any]:
        """How a log is read, as was said and else as these say: options of `stabtree.loaders.load_run`."""
        return {
            "columns": {**self.column, **columns},
            "step_column": step_column or self.step_column or None,
            "checkpoint_every": (self.checkpoint_every or None) if checkpoint_every is None else checkpoint_every,
        }

    @contextmanager
    def blamed(self, key: str, hint: str = "") -> Iterator[None]:
        """Say of what is wrong within that the file's key is to blame."""
        try:
            yield
        except StabtreeError as error:
            raise StabtreeError(error.problem, where=f"{self.source}: {key}", hint=hint or error.hint) from None

    @property
    def note(self) -> str:
        """What is set, in a line; empty where nothing is."""
        values = {key: getattr(self, key) for key in ("step_column", "tree", "trees", "baseline")}
        values |= {key: ", ".join(map(str, getattr(self, key))) for key in ("fail_on", "ignore", "accept")}
        values |= {"accept_partial": "true" if self.accept_partial else ""}
        values |= {"checkpoint_every": self.checkpoint_every or ""}
        values |= {f"column.{metric}": name for metric, name in self.column.items()} | dict(self.set)
        said = ", ".join(f"{key} = {value}" for key, value in values.items() if value != "")
        return f"Set by {self.source}: {clean(said, NOTED)}." if said else ""


def read_settings(file: str | None = None) -> Settings:
    """The settings of a file, else of the working directory, else none.

    Raises:
        StabtreeError: for a file that can't be read, a key that is not known, a value that makes no sense.
    """
    if file is not None:
        table = _table(Path(file), file)
        if table is None:
            raise StabtreeError("holds no [tool.stabtree]", where=clean(file), hint=f"add that table, or name a {FILE}")
        return _checked(table, Path(file), clean(file))
    for name in (FILE, SHARED):
        table = _table(Path(name), name) if _is_file(name) else None
        if table is not None:
            return _checked(table, Path(name), name)
    return Settings()


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # a working directory that may not be looked at
        return False


def _table(path: Path, name: str) -> dict[str, Any] | None:
    """The settings in a file; None where it is one of many tools and holds none of ours."""
    where = clean(name)
    shared = path.name == SHARED
    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StabtreeError(f"it can't be read: {reason}", where=where, hint="check its name and rights") from None
    if shared and b"stabtree" not in raw:
        return None  # most are of no concern to us: the parser need not be loaded
    if len(raw) > LARGEST_BYTES:
        raise StabtreeError("it is over 1 MB, too large for a configuration", where=where, hint="name another file")
    import tomllib  # only where there is a file

    try:
        table: Any = tomllib.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise StabtreeError(f"not valid TOML: {clean(error)}", where=where, hint="correct it") from None
    if not shared:
        return dict(table)
    tools = table.get("tool")
    own = tools.get("stabtree") if isinstance(tools, dict) else None
    if own is not None and not isinstance(own, dict):
        raise StabtreeError("must be a table", where=f"{where}: tool.stabtree", hint="write [tool.stabtree]")
    return own


def _checked(table: Mapping[str, Any], path: Path, source: str) -> Settings:
    found: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{source}: {clean(key, 60)}"
        if key not in KEYS:
            hint = near(key, KEYS).removeprefix("; ") or f"the keys are {', '.join(KEYS)}"
            raise StabtreeError("there is no such key", where=where, hint=hint)
        read, described = KEYS[key]
        try:
            with Settings(source).blamed(clean(key, 60)):
                found[key] = read(value)
        except ValueError:
            raise StabtreeError(
                f"{clean(value, 60)!r} is not {described[0]}", where=where, hint=f"write {described[1]}"
            ) from None
    settings = Settings(source, path.parent, **found)
    with settings.blamed("column"):
        named(settings.column)
    with settings.blamed("fail_on"):
        levels_of(list(settings.fail_on))
    if settings.tree and settings.trees:
        raise StabtreeError("tree and trees don't go together", where=source, hint="leave one of them out")
    placed: dict[str, Any] = {key: _placed(path.parent, getattr(settings, key)) for key in ("tree", "trees")}
    if settings.baseline:
        placed["baseline"] = str(path.parent / settings.baseline)  # there or not: one of that name here is another
    return replace(settings, **placed)


def _placed(folder: Path, name: str) -> str:
    """A name, or its path from here where that lies beside the file."""
    path = folder / name
    try:
        return str(path) if name and path.exists() else name
    except (OSError, ValueError):
        return name


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError
    return {key: _text(name) for key, name in value.items()}


def _words(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, value)) if isinstance(value, list) and value else (_text(value),)


def _parameters(value: Any) -> dict[str, Any]:
    """`{"Q2": {"1": {"sigma": 4}}}`, as TOML reads `Q2.1.sigma = 4`, by dotted names."""
    if not isinstance(value, dict):
        raise ValueError
    found: dict[str, Any] = {}
    for key, inner in value.items():
        held = {f"{key}.{name}": deep for name, deep in _parameters(inner).items()} if isinstance(inner, dict) else {}
        found |= held or {key: inner}
    return found


def _acceptances(value: Any) -> tuple[Acceptance, ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError
    return tuple(_acceptance(item, place) for place, item in enumerate(value, 1))


def _acceptance(item: dict[str, Any], place: int) -> Acceptance:
    """What is accepted, by its keys.

    Raises:
        StabtreeError: for a key that is not known, lacks, or holds no text.
    """
    known = [one.name for one in fields(Acceptance)]
    for key, value in item.items():
        if key not in known:
            hint = near(key, known).removeprefix("; ") or f"its keys are {', '.join(known)}"
            raise StabtreeError(f"item {place} has {clean(key, 60)!r}, which is no key of it", hint=hint)
        if not isinstance(value, str | date) or not str(value).strip():
            raise StabtreeError(f"item {place}: {key} is not a text", hint=f'write {key} = "..."')
    for key in ("leaf", "reason"):
        if key not in item:
            hint = f"write {ACCEPT}"
            raise StabtreeError(f"item {place} has no {key}", hint=hint)
    return Acceptance(**{key: clean(value) for key, value in item.items()})


def _yes(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value < MAX_STEP:
        raise ValueError
    return value


ACCEPT = 'accept = [{leaf = "spike-minor", run = "nightly-*", reason = "known, harmless"}]'
KEYS: dict[str, tuple[Any, tuple[str, str]]] = {
    "column": (_texts, ("a table of texts", 'column = {loss = "train/nll"}')),
    "step_column": (_text, ("a text", 'step_column = "iteration"')),
    "tree": (_text, ("a text", 'tree = "house.yaml"')),
    "trees": (_text, ("a text", 'trees = "rules"')),
    "set": (_parameters, ("a table of values", "set = {spike.sigma = 4}")),
    "fail_on": (_words, ("a text or a list of texts", 'fail_on = "critical"')),
    "ignore": (_words, ("a text or a list of texts", 'ignore = ["spike-minor"]')),
    "accept": (_acceptances, ("a list of tables", ACCEPT)),
    "baseline": (_text, ("a text", 'baseline = "base.json"')),
    "accept_partial": (_yes, ("true or false", "accept_partial = true")),
    "checkpoint_every": (_count, ("a number of steps", "checkpoint_every = 500")),
}
"""The keys: how each is read (`ValueError`: it can't be), what it holds, and an example."""
