"""What the files of trainers say, one YAML file each beside this module; read once, when the first one is asked for."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read when a file is converted
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from stabtree.common.yaml12 import Dotted, Words, WordSet, read, typed


class Described(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a trainer's file: a key that it does not have is a mistake."""


class Rule(Described, frozen=True):
    """A value of a configuration that sets a key of ours to another one.

    Attributes:
        at: the keys that lead to the value, outermost first.
        key: the canonical key that it sets.
        when: the rule applies to one of these values only, to `any` (null too), to a `list`, or to a value that is set.
        value: what that is set to; None for the value itself.
        words: pattern -> what the value is called here, the first that fits.
    """

    at: Dotted
    key: str
    when: Literal["", "any", "list"] | list[Any] = field(name="is", default="")
    value: Any = None
    words: Mapping[str, str] = {}

    @property
    def equals(self) -> tuple[Any, ...] | None:
        """The values that it applies to; None where it applies to any."""
        return tuple(self.when) if isinstance(self.when, list) else None

    @property
    def kind(self) -> str:
        """`any`, `list`, or nothing."""
        return "" if isinstance(self.when, list) else self.when


class ConfigSigns(Described, frozen=True):
    """How a configuration of the trainer is known and read.

    Attributes:
        order: trainers with a lower one are tried first; one whose files hold the words of another comes before it.
        marks: sets of keys, `a.b` for one inside another; all keys of one set must be there.
        keys: what a key means to this trainer -> canonical key.
        ignored: keys that mean nothing here, though they mean something to others.
        rules: values that set a key of ours to another value.
        classes_in: the section that names the classes to build: loggers and callbacks.
        named_by: keys by which the configuration of another trainer names the file of this one.
        targets: classes that a section with `_target_` or `class_path` builds.
        own_loop: keys of scripts with a loop of their own, for which the defaults of the trainer don't hold.
        adds: whether the file says how another trainer's run is launched, and is no training by itself.
        example: a small configuration, as YAML; tests read it.
    """

    order: int = 0
    marks: tuple[WordSet, ...] = ()
    keys: Mapping[str, str] = {}
    ignored: Words = Words()
    rules: tuple[Rule, ...] = ()
    classes_in: str = ""
    named_by: Words = Words()
    targets: Words = Words()
    own_loop: Words = Words()
    adds: bool = False
    example: str = ""


class LogSigns(Described, frozen=True):
    """How a log of the trainer is known and read.

    Attributes:
        order: trainers with a lower one are tried first.
        marks: sets of columns, normalised; all columns of one set must be there.
        path: a part of the path that no other trainer writes to.
        prefix: how a column begins that no other trainer writes, as it is spelled.
        format: the format that no other trainer writes.
        csv_logger: whether its CSV has the epoch from 0, then all metrics by alphabet, each with its `val_` twin.
        sparse_csv: whether its CSV has `epoch` and `step`, and keeps training and validation in rows of their own.
        beside: a part of a column's name; a log of the trainer that this one is built on, with such a column, is its.
        prints: pieces of lines that no other trainer prints -> the setting that such a line stands for (`dtype=bf16`),
            empty where it only says which trainer it is.
        errors: a pattern of its errors that holds none of the usual words for an error.
        example: the columns of a log, separated by commas; tests read it.
    """

    order: int = 0
    marks: tuple[WordSet, ...] = ()
    path: str = ""
    prefix: str = ""
    format: str = ""
    csv_logger: bool = False
    sparse_csv: bool = False
    beside: str = ""
    prints: Mapping[str, str] = {}
    errors: str = ""
    example: str = ""


class Defaults(Described, frozen=True):
    """What a trainer does where its configuration says nothing of it; a trainer takes over those that it is built on.

    Attributes:
        scales_fp16: scales the loss of fp16 by itself, unless a static scale is set.
        dtype: what its `dtype` is the precision of: `weights`, `autocast`, `all`, or nothing where that is open.
        bare_precision_is_mixed: whether `precision: 16` is mixed precision.
        mean_rows: whether a row of the log is the mean since the row before.
        shares: whether a count of steps below 1 is a share of all steps.
        steps_over_epochs: whether the epochs mean nothing where the steps are given.
        fine_tunes: whether it is mostly used to train models on that were trained before, with a cross-entropy.
        task: what it trains where neither columns nor settings show another task.
        pretrains: whether it is mostly used to train models from scratch.
        takes_beside: the trainer whose single file beside the configuration is part of it without being named.
    """

    scales_fp16: bool = False
    dtype: Literal["", "weights", "autocast", "all"] = ""
    bare_precision_is_mixed: bool = False
    mean_rows: bool = False
    shares: bool = False
    steps_over_epochs: bool = False
    fine_tunes: bool = False
    task: str = ""
    pretrains: bool = False
    takes_beside: str = ""


class Framework(Described, frozen=True):
    """A trainer.

    Attributes:
        id: the name of its file, by which settings, trees and notes call it.
        name: the name that people know it by.
        built_on: the trainer whose loop it runs; it logs and is spelled as that one where nothing else is said.
        library: what its models are written in.
        may_run_on: the trainers that may do its steps without a word of it in the log.
        config: how its configurations are known and read.
        log: how its logs are known and read.
        defaults: what it does where nothing is said.
        unset: canonical setting -> the value that it has where a configuration does not say it; null for none.
        unset_by_task: the same for single tasks, by task.
        checkpoint_steps: parts of a checkpoint's name that hold the step, where the usual words for it don't find it.
        knobs: knob of a fix -> how it is spelled here, the inherited ones included.
        general: the knobs that are named in general words on purpose: it has no setting for them.
    """

    id: str
    name: str
    built_on: str = ""
    library: str = "torch"
    may_run_on: Words = Words()
    config: ConfigSigns = ConfigSigns()
    log: LogSigns = LogSigns()
    defaults: Defaults = Defaults()
    unset: Mapping[str, Any] = {}
    unset_by_task: Mapping[str, Mapping[str, Any]] = {}
    checkpoint_steps: tuple[str, ...] = ()
    knobs: Mapping[str, str] = {}
    general: Words = Words()

    @property
    def base(self) -> str:
        """The trainer whose loop it runs, itself where it has its own."""
        return self.built_on or self.id


FOLDER = Path(__file__).parent
OTHER = "other"  # the file of any trainer that is not known, which names each knob in general words
# What a trainer takes over from the one that it is built on, as a whole or key by key.
_TAKEN = ("library", "may_run_on", "general")
_MERGED = ("defaults", "unset", "unset_by_task", "knobs")


@cache
def frameworks() -> Mapping[str, Framework]:
    """Return the known trainers by id, without the one that stands for all others."""
    return {id_: one for id_, one in all_trainers().items() if id_ != OTHER}


def framework(id_: str) -> Framework:
    """Return the trainer of that id; the one that stands for all others where none is called so."""
    return all_trainers().get(id_, all_trainers()[OTHER])


@cache
def all_trainers() -> Mapping[str, Framework]:
    """Return the known trainers by id, with the one that stands for all others."""
    return trainers_in(FOLDER)


def trainers_in(folder: Path) -> Mapping[str, Framework]:
    """Return the trainers of a folder by id.

    Raises:
        StabtreeError: with the first mistake.
    """
    files = {path.stem: read(path) for path in sorted(folder.glob("*.yaml"))}
    return {id_: typed(_whole(id_, files), Framework, f"{id_}.yaml") for id_ in files}


def _whole(id_: str, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a file holds, with what it does not say as the trainer that it is built on has it."""
    own = files[id_]
    base = files.get(own.get("built_on", ""), {})
    merged = {key: {**base.get(key, {}), **own.get(key, {})} for key in _MERGED}
    return {**{key: base[key] for key in _TAKEN if key in base}, **own, **merged, "id": id_}


def knobs() -> Mapping[str, str]:
    """Return what fixes may change, each with how it is called where nothing is known of the trainer."""
    return framework(OTHER).knobs


def spelling(knob: str, id_: str) -> str:
    """Return how a trainer spells a knob; empty where that is not known."""
    return frameworks()[id_].knobs.get(knob, "") if id_ in frameworks() else ""
