"""All trainers, from the YAML files beside this module; read once, when the first one is asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.yaml12 import read, typed
from stabtree.frameworks.model import Framework

if TYPE_CHECKING:
    from collections.abc import Mapping

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
