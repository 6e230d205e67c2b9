"""The settings of a project: `stabtree.toml`, or `[tool.stabtree]` of `pyproject.toml`.

They are read from the working directory or from the file that `--settings` names, never from the folder of a log: what
is judged must not decide how strictly. The command line overrides them.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import astuple, replace

from stabtree.common import toml
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near
from stabtree.judging.verdict import Acceptance, Text, levels_of
from stabtree.metrics.names import Names, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FILE, SHARED = "stabtree.toml", "pyproject.toml"
LARGEST_BYTES = 1_000_000
NOTED = 200  # characters of the values in the note
ACCEPT = 'accept = [{leaf = "spike-minor", run = "nightly-*", reason = "known, harmless"}]'
KEYS = {
    "column": ("a table of texts", 'column = {loss = "train/nll"}'),
    "step_column": ("a text", 'step_column = "iteration"'),
    "tree": ("a text", 'tree = "house.yaml"'),
    "trees": ("a text", 'trees = "rules"'),
    "set": ("a table of values", "set = {spike.sigma = 4}"),
    "fail_on": ("a text or a list of texts", 'fail_on = "critical"'),
    "ignore": ("a text or a list of texts", 'ignore = ["spike-minor"]'),
    "accept": ("a list of tables with a leaf and a reason", ACCEPT),
    "baseline": ("a text", 'baseline = "base.json"'),
    "accept_partial": ("true or false", "accept_partial = true"),
    "checkpoint_every": ("a number of steps", "checkpoint_every = 500"),
}
"""The keys of the file: what each holds, and an example."""

Texts = Annotated[tuple[Text, ...], Meta(min_length=1)]


class Settings(Struct, frozen=True):
    """The options of `diagnose` that a project sets; all but `source` and `folder` are keys of the file.

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
    column: dict[str, Text] = field(default_factory=dict)
    step_column: Text = ""
    tree: Text = ""
    trees: Text = ""
    set: dict[str, Any] = field(default_factory=dict)
    fail_on: Texts = ()
    ignore: Texts = ()
    accept: tuple[Acceptance, ...] = ()
    baseline: Text = ""
    accept_partial: bool = False
    checkpoint_every: Annotated[int, Meta(ge=1, lt=1 << 53)] = 0

    def without(self, options: Mapping[str, Any]) -> Settings:
        """Return the settings that the command line does not override, given its options by the names of the keys."""
        given = {key: value for key, value in options.items() if value}
        if given.keys() & {"tree", "trees"}:  # they are mutually exclusive
            given |= {"tree": True, "trees": True}
        left: dict[str, Any] = {key: type(getattr(self, key))() for key in given}
        for key in given.keys() & {"column", "set"}:
            names = {item.partition("=")[0].strip() for item in given[key]}
            names |= {Names().match(name).role for name in names if key == "column"}
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
        """Return options of `stabtree.loaders.load_run`: those that are given, else those of the settings.

        Raises:
            StabtreeError: where `columns` names an unknown metric.
        """
        every = self.checkpoint_every or None
        return {
            "columns": {**self.column, **dict(named(columns).columns)},
            "step_column": step_column or self.step_column or None,
            "checkpoint_every": every if checkpoint_every is None else checkpoint_every,
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
        values |= {"accept_partial": self.accept_partial and "true", "checkpoint_every": self.checkpoint_every}
        listed = [f"{key} = {value}" for key, value in values.items() if value]
        listed += [f"column.{metric} = {name}" for metric, name in self.column.items()]
        listed += [f"{key} = {value}" for key, value in self.set.items()]
        return f"Set by {self.source}: {clean(', '.join(listed), NOTED)}." if listed else ""


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
        # Unlike that of a path this raises nothing in a working directory without read permission.
        table = _table(Path(name), name) if os.path.isfile(name) else None  # noqa: PTH113
        if table is not None:
            return _checked(table, Path(name), name)
    return Settings()


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
    """Return the settings of a table, with paths relative to the working directory.

    Raises:
        StabtreeError: for an unknown key, or a value of another type.
    """
    for key in table:
        if key not in KEYS:
            hint = near(key, KEYS).removeprefix("; ") or f"the keys are {', '.join(KEYS)}"
            raise StabtreeError("there is no such key", where=f"{source}: {clean(key, 60)}", hint=hint)
    values = msgspec.to_builtins(table)  # a date as the text that it is written as
    values |= {key: [values[key]] for key in ("fail_on", "ignore") if isinstance(values.get(key), str)}
    if isinstance(values.get("set"), dict):
        values["set"] = _flat(values["set"])
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), source) from None
    settings = replace(settings, source=source, folder=path.parent)
    with settings.blamed("column"):
        settings = replace(settings, column=dict(named(settings.column).columns))
    with settings.blamed("fail_on"):
        levels_of(settings.fail_on)
    if settings.tree and settings.trees:
        raise StabtreeError("tree and trees don't go together", where=source, hint="leave one of them out")
    # The baseline need not exist yet, and a file of that name in the working directory is a different one.
    baseline = str(path.parent / settings.baseline) if settings.baseline else ""
    tree, trees = (_beside(path.parent, name) for name in (settings.tree, settings.trees))
    accept = tuple(Acceptance(*map(clean, astuple(item))) for item in settings.accept)
    return replace(settings, tree=tree, trees=trees, baseline=baseline, accept=accept)


def _mistake(message: str, source: str) -> StabtreeError:
    """Return the error for what msgspec refused, with the key that it is in."""
    problem, _, place = message.partition(" - at ")
    place = place.strip("`").removeprefix("$.")
    kind, example = KEYS[re.split(r"\W", place)[0]]
    unknown, missing = (re.search(rf"{words} field `(.+?)`", problem) for words in ("unknown", "missing required"))
    if unknown:
        hint = near(unknown[1], Acceptance.__struct_fields__).removeprefix("; ") or f"write {example}"
        where = f"{source}: {place}.{clean(unknown[1], 60)}"
        return StabtreeError("there is no such key", where=where, hint=hint)
    wrong = f"has no {missing[1]}" if missing else f"must be {kind}"
    return StabtreeError(wrong, where=f"{source}: {place}", hint=f"write {example}")


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten `{"Q2": {"1": {"sigma": 4}}}`, as TOML reads `Q2.1.sigma = 4`, to dotted names."""
    found: dict[str, Any] = {}
    for key, inner in table.items():
        if isinstance(inner, dict) and inner:
            found |= {f"{key}.{name}": deep for name, deep in _flat(inner).items()}
        else:
            found[key] = inner
    return found


def _beside(folder: Path, name: str) -> str:
    """Return the path of a file of that name in a folder, or the name if there is none."""
    path = folder / name
    try:
        if name and path.exists():
            return str(path)
    except (OSError, ValueError):
        pass
    return name


def pairs(items: Iterable[str], option: str, example: str) -> dict[str, str]:
    """Split `KEY=VALUE` options.

    Raises:
        StabtreeError: if the equals sign, the key or the value is missing, or a key is given twice.
    """
    found: dict[str, str] = {}
    for item in items:
        key, _, value = map(str.strip, item.partition("="))
        if not key or not value:
            raise StabtreeError(f"{item!r} is not of the form KEY=VALUE", where=option, hint=f"type {option} {example}")
        if key in found:
            raise StabtreeError(f"{key!r} is given twice", where=option, hint="leave one of them out")
        found[key] = value
    return found
