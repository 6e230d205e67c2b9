"""The settings of a project: `stabtree.toml`, or `[tool.stabtree]` of `pyproject.toml`.

They are read from the working directory or from the file that `--config` names, never from the folder of a log: what is
judged must not decide how strictly. The command line overrides them.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import fields, replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near
from stabtree.judging import toml
from stabtree.judging.accepted import Acceptance
from stabtree.judging.levels import levels_of
from stabtree.loaders.assemble.steps import MAX_STEP
from stabtree.metrics.names import named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE, SHARED = "stabtree.toml", "pyproject.toml"
LARGEST_BYTES = 1_000_000
NOTED = 200  # characters of the values in the note


class Settings(Struct, frozen=True):
    """The options of `diagnose` that a project sets; each field after the first two is a key of the file.

    Attributes:
        source: the file; empty if there is none.
        folder: the file's folder: its paths are relative to that.
        column: columns by metric.
        step_column: the column that holds the steps.
        tree: a shipped tree or a file.
        trees: a folder of trees.
        set: parameters, `Q2.1.sigma` -> value.
        fail_on: levels.
        ignore: leaves to ignore, in addition to those of the command line.
        accept: leaves that are accepted in some runs, with the reason.
        baseline: the file of accepted findings.
        accept_partial: whether a run passes if every check that could run passed.
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
        """Return the settings that the command line does not override, given its options by the names of the keys."""
        given = {key: value for key, value in options.items() if value}
        if given.keys() & {"tree", "trees"}:  # they are mutually exclusive
            given |= {"tree": True, "trees": True}
        left: dict[str, Any] = {key: type(getattr(self, key))() for key in given}
        for key in given.keys() & {"column", "set"}:
            names = {item.partition("=")[0].strip() for item in given[key]}
            left[key] = {name: value for name, value in getattr(self, key).items() if name not in names}
        return replace(self, **left)

    def for_reading(self) -> Settings:
        """Return only the settings that decide how a log is read."""
        return Settings(self.source, self.folder, self.column, self.step_column, checkpoint_every=self.checkpoint_every)

    def reading(
        self,
        columns: Mapping[str, str] = MappingProxyType({}),
        step_column: str | None = None,
        checkpoint_every: int | None = None,
    ) -> dict[str, Any]:
        """Return options of `stabtree.loaders.load_run`: those that are given, else those of the settings."""
        if checkpoint_every is None:
            checkpoint_every = self.checkpoint_every or None
        return {
            "columns": {**self.column, **columns},
            "step_column": step_column or self.step_column or None,
            "checkpoint_every": checkpoint_every,
        }

    @contextmanager
    def blamed(self, key: str, hint: str = "") -> Iterator[None]:
        """Attribute errors raised inside to a key of the file."""
        try:
            yield
        except StabtreeError as error:
            raise StabtreeError(error.problem, where=f"{self.source}: {key}", hint=hint or error.hint) from None

    @property
    def note(self) -> str:
        """What is set, in a line; empty if nothing is."""
        values = {key: getattr(self, key) for key in ("step_column", "tree", "trees", "baseline")}
        values |= {key: ", ".join(map(str, getattr(self, key))) for key in ("fail_on", "ignore", "accept")}
        values |= {"accept_partial": "true" if self.accept_partial else ""}
        values |= {"checkpoint_every": self.checkpoint_every or ""}
        values |= {f"column.{metric}": name for metric, name in self.column.items()} | dict(self.set)
        listed = ", ".join(f"{key} = {value}" for key, value in values.items() if value != "")
        if listed:
            return f"Set by {self.source}: {clean(listed, NOTED)}."
        return ""


def read_settings(file: str | None = None) -> Settings:
    """Read the settings from a file, else from the working directory; return empty ones if there are none.

    Raises:
        StabtreeError: for a file that can't be read, an unknown key, or an invalid value.
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
    except OSError:  # a working directory without read permission
        return False


def _table(path: Path, name: str) -> dict[str, Any] | None:
    """Parse the settings in a file; None for a `pyproject.toml` that holds none."""
    where = clean(name)
    shared = path.name == SHARED
    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StabtreeError(f"it can't be read: {reason}", where=where, hint="check its name and rights") from None
    if shared and b"stabtree" not in raw:
        return None  # as most of them: the parser need not be loaded
    if len(raw) > LARGEST_BYTES:
        raise StabtreeError("it is over 1 MB, too large for a configuration", where=where, hint="name another file")
    try:
        table: Any = toml.parse(raw.decode("utf-8-sig"))
    except ValueError as error:
        raise StabtreeError(f"not valid TOML: {clean(error)}", where=where, hint="correct it") from None
    if not shared:
        return dict(table)
    tools = table.get("tool")
    own = tools.get("stabtree") if isinstance(tools, dict) else None
    if own is not None and not isinstance(own, dict):
        raise StabtreeError("must be a table", where=f"{where}: tool.stabtree", hint="write [tool.stabtree]")
    return own


def _checked(table: Mapping[str, Any], path: Path, source: str) -> Settings:
    """Return the settings of a table, with paths relative to the working directory."""
    values = {key: _read_value(key, value, source) for key, value in table.items()}
    settings = Settings(source, path.parent, **values)
    with settings.blamed("column"):
        named(settings.column)
    with settings.blamed("fail_on"):
        levels_of(list(settings.fail_on))
    if settings.tree and settings.trees:
        raise StabtreeError("tree and trees don't go together", where=source, hint="leave one of them out")
    # The baseline need not exist yet, and a file of that name in the working directory is a different one.
    baseline = str(path.parent / settings.baseline) if settings.baseline else ""
    tree, trees = (_beside(path.parent, name) for name in (settings.tree, settings.trees))
    return replace(settings, tree=tree, trees=trees, baseline=baseline)


def _read_value(key: str, value: Any, source: str) -> Any:
    """Return a key's value in its type.

    Raises:
        StabtreeError: for an unknown key or a value of another type.
    """
    where = f"{source}: {clean(key, 60)}"
    if key not in KEYS:
        hint = near(key, KEYS).removeprefix("; ") or f"the keys are {', '.join(KEYS)}"
        raise StabtreeError("there is no such key", where=where, hint=hint)
    read, (kind, example) = KEYS[key]
    try:
        with Settings(source).blamed(clean(key, 60)):
            return read(value)
    except ValueError:
        raise StabtreeError(f"{clean(value, 60)!r} is not {kind}", where=where, hint=f"write {example}") from None


def _beside(folder: Path, name: str) -> str:
    """Return the path of a file of that name in a folder, or the name if there is none."""
    path = folder / name
    try:
        if name and path.exists():
            return str(path)
    except (OSError, ValueError):
        pass
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
    if isinstance(value, list) and value:
        return tuple(map(_text, value))
    return (_text(value),)


def _parameters(value: Any) -> dict[str, Any]:
    """Flatten `{"Q2": {"1": {"sigma": 4}}}`, as TOML reads `Q2.1.sigma = 4`, to dotted names."""
    if not isinstance(value, dict):
        raise ValueError
    found: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            found |= {f"{key}.{name}": deep for name, deep in _parameters(inner).items()}
        else:
            found[key] = inner
    return found


def _acceptances(value: Any) -> tuple[Acceptance, ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError
    return tuple(_acceptance(item, number) for number, item in enumerate(value, 1))


def _acceptance(item: dict[str, Any], number: int) -> Acceptance:
    """Check an item of `accept`.

    Raises:
        StabtreeError: for a key that is unknown, is missing, or holds no text.
    """
    known = [one.name for one in fields(Acceptance)]
    for key, value in item.items():
        if key not in known:
            hint = near(key, known).removeprefix("; ") or f"its keys are {', '.join(known)}"
            raise StabtreeError(f"item {number} has the unknown key {clean(key, 60)!r}", hint=hint)
        if not isinstance(value, str | date) or not str(value).strip():
            raise StabtreeError(f"item {number}: {key} is not a text", hint=f'write {key} = "..."')
    for key in ("leaf", "reason"):
        if key not in item:
            raise StabtreeError(f"item {number} has no {key}", hint=f"write {ACCEPT}")
    return Acceptance(**{key: clean(value) for key, value in item.items()})


def _flag(value: Any) -> bool:
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
    "accept_partial": (_flag, ("true or false", "accept_partial = true")),
    "checkpoint_every": (_count, ("a number of steps", "checkpoint_every = 500")),
}
"""The keys: the function that reads each (`ValueError` if it can't), what it holds, and an example."""
