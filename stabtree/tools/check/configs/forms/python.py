"""What a Python file says of a training: constants, defaults of classes and flags, and calls; nothing is ever run."""

from __future__ import annotations

import ast
import warnings
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import chain
from typing import Any

from stabtree.common.dataclass import dataclass
from stabtree.tools.check.configs.forms.calls import HANDED, UNKNOWN, Call, argument_default, call_of
from stabtree.tools.check.configs.forms.nodes import assigned, default_of, head, is_main, own_name, statements
from stabtree.tools.check.configs.forms.values import MISTAKES, Scope, keywords, literal_of, open_value

_IMPORTS = ast.Import | ast.ImportFrom
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_CLASS_ENDS = ("config", "args", "arguments", "params", "hyperparameters", "settings", "options", "cfg")
# Classes of these names are the configuration of the run as a whole; others are a section of it.
_WHOLE = ("", "train", "training", "trainer", "hyper", "h", "experiment", "exp", "run", "script", "finetune", "gpt")
_HOLDERS = ("args", "opt", "opts", "flags", "hparams", "config", "cfg", "params", "conf")  # of parsed flags
_FLAGS = 1000  # a script with more is no training; each holder has a copy of all
_GIVEN = ("Arguments", "Config")  # how objects of a trainer's arguments are called
_PARTS = ("LoraConfig", "PeftConfig")  # those that are none
_STARTS = ("main", "train", "run", "finetune", "fine_tune")  # functions whose constants are the run's


class UnreadableError(ValueError):
    """A file that is no Python; `line` is where, 0 where that is not known."""

    def __init__(self, line: int) -> None:
        super().__init__("not valid Python")
        self.line = line


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was found in a file: the fields of a `ConfigFile`."""

    values: Mapping[str, Any]
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    first: frozenset[str] = frozenset()


def parsed(text: str) -> Parsed:
    """Read a Python file.

    Raises:
        UnreadableError: where it is no Python.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of the file's own escapes
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(getattr(error, "lineno", None) or 0) from None
    found = _File()
    imports = (node.names for node in tree.body if isinstance(node, _IMPORTS))
    imported = frozenset(name.asname or name.name for name in chain.from_iterable(imports))
    try:
        found.walk(tree.body, Scope({}, imported))
    except RecursionError:
        raise UnreadableError(0) from None
    return found.done()


@dataclass(slots=True)
class _File:
    """What was found so far.

    Attributes:
        constants: by name, those of the module and of the functions that start the run.
        defaults: those of classes and of flags, which count where nothing else says so.
        called: the sections that calls make.
        lines: the line of each value by its path.
        later: functions, which are read after all that stands outside of them.
    """

    constants: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    called: dict[str, Any] = field(default_factory=dict)
    lines: dict[tuple[str | int, ...], int] = field(default_factory=dict)
    later: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, Scope]] = field(default_factory=list)

    def done(self) -> Parsed:
        """Return all that was found: a call goes before a constant, and that before a default."""
        values = {**self.defaults, **self.constants}
        for section, inner in self.called.items():
            if isinstance(values.get(section), Mapping) and isinstance(inner, Mapping):
                inner = {**values[section], **inner}  # noqa: PLW2901
            values[section] = inner
        if HANDED in self.called and not any(name.endswith(_GIVEN) for name in self.called if name not in _PARTS):
            values[HANDED] = {**values[HANDED], UNKNOWN: "${args}"}  # they are made elsewhere
        return Parsed(values, self.lines, (), frozenset(self.called))

    def walk(self, body: list[ast.stmt], names: Scope) -> None:
        """Read the statements of the module, then those of its functions."""
        self._block(body, names, kept=True)
        while self.later:
            node, outer = self.later.pop(0)
            inner = replace(outer, values=ChainMap({}, outer.values), objects=ChainMap({}, outer.objects))
            inner.values.update(_defaults_of(node, outer))
            self._block(node.body, inner, kept=node.name.startswith(_STARTS))

    def _block(self, body: list[ast.stmt], names: Scope, *, kept: bool) -> None:
        for node in body:
            if isinstance(node, _FUNCTIONS):
                self.later.append((node, names))
            elif isinstance(node, ast.ClassDef):
                self._class(node, names)
            elif isinstance(node, ast.If):
                self._either(node, names, kept=kept)
            elif isinstance(node, ast.For | ast.While | ast.With | ast.Try | ast.AsyncFor | ast.AsyncWith):
                self._calls(head(node), names)
                for part in ("body", "handlers", "orelse", "finalbody"):
                    self._block([*statements(getattr(node, part, []))], names, kept=kept)
            else:
                self._calls([node], names)
                self._assign(node, names, kept=kept)

    def _either(self, node: ast.If, names: Scope, *, kept: bool) -> None:
        """Read both branches; a name that differs after them is not known."""
        self._calls([node.test], names)
        before = dict(names.values)
        self._block(node.body, names, kept=kept)
        if is_main(node.test):
            return
        after = dict(names.values)
        self._block(node.orelse, names, kept=kept)
        for name in {*after, *names.values}:
            values = [scope.get(name) for scope in (after, names.values, *([] if node.orelse else [before]))]
            if any(value != values[0] for value in values):
                names.values[name] = None
                self.constants.pop(name, None)

    def _assign(self, node: ast.stmt, names: Scope, *, kept: bool) -> None:
        target, value = assigned(node)
        if not isinstance(target, ast.Name) or value is None:
            return
        self._hold(target.id, value, names)
        try:
            found = literal_of(value, names)
        except MISTAKES:
            # What is assigned again counts, also where it can't be read.
            names.values[target.id] = None
            if kept:
                self.constants.pop(target.id, None)
            return
        names.values[target.id] = found
        if isinstance(found, Mapping):
            names.objects[target.id] = found
            if not kept and len(found) > 1:
                self.defaults.setdefault(target.id, found)
        if kept:
            self.constants[target.id] = found
            self.lines[(target.id,)] = node.lineno

    def _hold(self, name: str, value: ast.expr, names: Scope) -> None:
        """Note which settings an object holds that a class of the file makes: `cfg = TrainConfig(lr=0.1)`."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in names.objects:
            given = {key: one for key, one, _ in keywords(value, names)}
            names.objects[name] = {**names.objects[value.func.id], **given}

    def _class(self, node: ast.ClassDef, names: Scope) -> None:
        for inner in node.body:
            if isinstance(inner, _FUNCTIONS):
                self.later.append((inner, names))
        stem = _stem(node)
        if stem is None:
            return
        found: dict[str, Any] = {}
        section = tuple(part for part in (stem,) if part not in _WHOLE)
        for key, value, line in _attributes(node, names):
            found[key] = value
            self.lines[(*section, key)] = line
        names.objects[node.name] = found
        for holder in ("self", *_HOLDERS):
            names.objects.setdefault(holder, {})
            names.objects[holder] = {**found, **names.objects[holder]}
        if section:
            self.defaults[stem] = found
        else:
            self.defaults |= found

    def _calls(self, nodes: list[ast.stmt] | list[ast.expr], names: Scope) -> None:
        for node in chain.from_iterable(map(ast.walk, nodes)):
            if isinstance(node, ast.Call):
                flag = argument_default(node, names)
                if flag:
                    key, value, line = flag
                    self.defaults[key] = value
                    self.lines.setdefault((key,), line)
                    for holder in _HOLDERS if len(self.defaults) < _FLAGS else ():
                        names.objects[holder] = {**names.objects.get(holder, {}), key: value}
                elif found := call_of(node, names):
                    self._called(found)
                else:
                    self._held(node, names)

    def _held(self, node: ast.Call, names: Scope) -> None:
        """Read the settings that any other call is given as a whole: `wandb.init(config={...})`."""
        for key, value, line in keywords(node, names):
            if isinstance(value, Mapping) and len(value) > 1:
                self.defaults.setdefault(key, value)
                self.lines.setdefault((key,), line)

    def _called(self, call: Call) -> None:
        """Add what a call sets; of two calls that differ in a value, the value is open."""
        if call.listed:
            self.called.setdefault(call.section, {}).setdefault(call.listed, []).append(dict(call.values))
            return
        section, path = self.called, tuple(part for part in (call.section,) if part)
        if path:
            section = self.called.setdefault(call.section, {})
        for key, value in call.values.items():
            if section.get(key, value) != value:
                section[key] = f"${{{key}}}"
            else:
                section[key] = value
            self.lines[(*path, key)] = call.lines.get(key, call.line)


def _defaults_of(node: ast.FunctionDef | ast.AsyncFunctionDef, names: Scope) -> dict[str, Any]:
    """Return the parameters of a function with their defaults; None for what is not known."""
    parameters = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(reversed(parameters), reversed(node.args.defaults), strict=False)]
    pairs += [(one, value) for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value]
    found: dict[str, Any] = {one.arg: None for one in (*parameters, *node.args.kwonlyargs)}
    for parameter, value in pairs:
        try:
            found[parameter.arg] = literal_of(value, names)
        except MISTAKES:
            continue
    return found


def _stem(node: ast.ClassDef) -> str | None:
    """Return what a class of settings is about, by its name; None where it is no such class."""
    decorated = any("dataclass" in ast.unparse(one) for one in node.decorator_list)
    name = node.name.lower().strip("_")
    end = next((end for end in _CLASS_ENDS if name.endswith(end)), "")
    if not end and not decorated:
        return None
    return name.removesuffix(end)


def _attributes(node: ast.ClassDef, names: Scope) -> Iterator[tuple[str, Any, int]]:
    """Yield the attributes of a class that have a value, those that `__init__` sets included."""
    names = replace(names, values=ChainMap({}, names.values))
    body = list(node.body)
    for inner in node.body:
        if isinstance(inner, _FUNCTIONS) and inner.name == "__init__":
            names.values.update(_defaults_of(inner, names))
            body += inner.body
    for inner in body:
        target, value = assigned(inner)
        key = own_name(target)
        if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in ("field", "Field"):
            value = default_of(value)
        if not key or value is None:
            continue
        try:
            names.values[key] = literal_of(value, names)
            yield key, names.values[key], inner.lineno
        except MISTAKES:
            yield key, open_value(value), inner.lineno
