"""A configuration before its run: `load_config` reads its files or its folder, and adds what follows from them."""

from __future__ import annotations

import math
import os
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, first_few, masked, stays_inside
from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.load import frameworks
from stabtree.frameworks.recognise import plain_word
from stabtree.loaders.folder import entries, is_file, size_of
from stabtree.measures.settings import DEFAULT
from stabtree.run import REDUCED, FileUse, Run, Setting
from stabtree.tools.check.document import HINT, MAX_BYTES, SUFFIXES, ConfigFile, read_document
from stabtree.tools.check.settings import FileSettings, Settings, is_model, read_settings
from stabtree.tools.check.tables import SCALERS, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_UNSAID = Setting("", "")
# What the configuration of a model says too.
_NOT_TRAINING = {"vocab_size", "n_classes", "weights_dtype", "framework", "name"}


def load_config(*paths: str | Path) -> Run:
    """Read what a run is going to be from its configuration, before it starts.

    Args:
        paths: the files of one configuration, or its folder. What a later one says goes before an earlier one's.

    Returns:
        A run without series. Its `config` holds what the files say, the trainer's defaults, and what follows.

    Raises:
        StabtreeError: if a file can't be read, or none holds a setting that is known.
    """
    if not paths:
        raise StabtreeError("no configuration to read", hint=HINT)
    settings: Settings = {}
    notes: list[str] = []
    used: list[FileSettings] = []
    named = {os.path.realpath(path) for path in paths}
    for path in map(Path, paths):
        readings, more = _read(path)
        notes += more
        for one in readings:
            if one.file.path != path and os.path.realpath(one.file.path) in named:
                continue  # it lies beside this one, and is named itself
            notes += one.notes
            settings = _merged(settings, one.settings, notes)
            used.append(one)
    if not settings.keys() - _NOT_TRAINING:
        where = masked(clean(paths[0]))
        raise StabtreeError("holds no setting of a training that stabtree knows", where=where, hint=HINT)
    known = [f"configuration{f' ({one.framework})' if one.framework else ''}" for one in used]
    sources = [FileUse(masked(clean(one.file.path)), format_, 0) for one, format_ in zip(used, known, strict=True)]
    name = settings.pop("name", Setting(Path(sources[-1].path).stem, ""))
    left_open = None if any(one.partial for one in used) else {*chain.from_iterable(one.open for one in used)}
    full, told = completed(settings, left_open), tuple(dict.fromkeys(notes))
    return Run(str(name.value), {}, full, sources=tuple(sources), notes=told)


def _read(path: Path) -> tuple[list[FileSettings], list[str]]:
    """Read a path with what belongs to it; of one that is no configuration but a log, what its header says."""
    try:
        if path.is_dir():
            return _in_folder(path)
        one = read_settings(read_document(path))
    except StabtreeError as error:
        if path.suffix.lower() in SUFFIXES or error.problem.startswith("is a program") or not path.exists():
            raise
        settings = _logged(path)
        if not settings:
            problem = "is no configuration, and no log whose header says how it was trained"
            raise StabtreeError(problem, where=masked(clean(path)), hint=HINT) from None
        return [FileSettings(ConfigFile(path), settings=settings, partial=True)], []
    others, notes = _named_by(one)
    return [*others, one], notes


def _merged(settings: Settings, later: Settings, notes: list[str]) -> Settings:
    """Return what two files say together: what is added to a trainer takes nothing of its defaults from it."""
    for key in later.keys() & settings.keys() - {"framework", "name"}:
        first, last = settings[key], later[key]
        if first.value != last.value:
            notes.append(f"{first.source} says {first.value}; {last.source} says {last.value}, which counts.")
    merged = {**settings, **later}
    trainers = [str(one.get("framework", _UNSAID).value) for one in (settings, later)]
    adds = [framework_called(trainer).config.adds for trainer in trainers]
    if adds[1] and trainers[0]:
        merged["framework"] = settings["framework"]
    pair = [one["dtype"] for one in (settings, later) if "dtype" in one]
    if any(adds) and {one.value for one in pair} == {"bf16", "fp16"}:
        merged["precisions"] = Setting("fp16+bf16", " and ".join(one.source for one in pair))
    return merged


def _logged(path: Path) -> Settings:
    """Return what the header of a log says of how the run is trained; empty if it has none, or says too little."""
    from stabtree.loaders import load_run  # which a configuration needs none of

    try:
        config = load_run(path).config
    except StabtreeError:
        return {}
    # What the batch is of is not said there, and a warm-up of 0 may be one by a share of all steps.
    unsure = ("batch_size", ("warmup_steps", 0))
    settings = {key: one for key, one in config.items() if key in SETTINGS and not {key, (key, one.value)} & {*unsure}}
    if len(settings) < _FEW:  # as a column named after an optimizer, a seed in a file's name
        return {}
    if "framework" in config:  # it logs all that it trains with, whoever chose it
        trainer = framework_called(str(config["framework"].value))
        for key, one in settings.items():
            if key in trainer.unset and trainer.unset[key] == one.value:
                settings[key] = replace(one, source=f"{DEFAULT} of {trainer.name}")
    return settings


# ---- the files of a folder

# Where a trainer writes the configuration that it was started with, best first; a folder of its own counts as the
# folder.
_OWN_FOLDERS = (".hydra", "files")
_USUAL = (
    *("training_args.json", "manifest.json", "config.yaml", "config.yml", "hparams.yaml", "hparams.yml", "args.json"),
    *("args.yaml", "hparams.json", "params.json", "config.json", "config.toml"),
)
# Files that hold no settings of a training, whatever their keys are called.
_OTHERS = ("hydra.yaml", "overrides.yaml", "tokenizer_config.json", "generation_config.json", "package.json")
_STATE = "trainer_state.json"  # holds its log, too, and may be large
_MAX_FILES = 200
_FEW = 3  # fewer known settings than these are no configuration, unless its name says so


def _in_folder(folder: Path) -> tuple[list[FileSettings], list[str]]:
    """Return the files of the configuration in a folder, the one that counts most last; and notes.

    Raises:
        StabtreeError: if there is none.
    """
    readings: list[FileSettings] = []
    notes: list[str] = []
    places = (folder, *(folder / own for own in _OWN_FOLDERS))
    paths = [place / name for place in places for name in sorted(entries(place)[1]) if name not in _OTHERS]
    paths = [path for path in paths if path.suffix.lower() in SUFFIXES]
    for path in [path for path in paths if path.name == _STATE or 0 < size_of(path) <= MAX_BYTES][:_MAX_FILES]:
        try:
            one = read_settings(read_document(path))
        except StabtreeError as error:
            if path.name in _USUAL:
                notes.append(f"{clean(path.name)} was not used: it {clean(error.problem, 120)}.")
            continue
        known = len(one.settings.keys() - {"framework", "name"})
        if known >= (1 if path.name in _USUAL or one.framework else _FEW):
            readings.append(one)
    if not readings:
        where = masked(clean(folder))
        raise StabtreeError("no configuration lies in this folder", where=where, hint=HINT)
    whole = [one for one in readings if not _adds(one)]
    # The one that says most; of several, the one whose name is the more usual.
    rank = {name: -place for place, name in enumerate(_USUAL)}
    main = max(whole or readings, key=lambda one: (len(one.settings), rank.get(one.file.path.name, -len(_USUAL))))
    added = [one for one in readings if one is not main and _adds(one) and _belongs(one, main, readings)]
    rest = [one.file.name for one in readings if one is not main and one not in added]
    if rest:
        notes.append(f"{main.file.name} is the configuration that was read; beside it lie {first_few(rest, _FEW)}.")
    return [*added, main], notes


def _adds(one: FileSettings) -> bool:
    """Return whether a file says how another one's training is launched or how far it came, and is none by itself."""
    values = one.file.values
    partial = "log_history" in values or "peft_type" in values or is_model(values)
    return partial or framework_called(one.framework).config.adds


def _belongs(one: FileSettings, main: FileSettings, readings: list[FileSettings]) -> bool:
    """Return whether a file that adds something is of the main one's run."""
    keys = framework_called(one.framework).config.named_by
    if not keys:
        return True
    name = main.file.values.get(keys[0])
    if isinstance(name, str):
        return Path(name).name == one.file.path.name
    alone = sum(other.framework == one.framework for other in readings) == 1
    takes = framework_called(main.framework).defaults.takes_beside == one.framework
    return alone and name is None and (takes or not main.framework)


def _named_by(one: FileSettings) -> tuple[list[FileSettings], list[str]]:
    """Return the configuration (DeepSpeed's) that another one names, if it is beside it or below; and notes."""
    keys = chain.from_iterable(other.config.named_by for other in frameworks().values())
    name = next(filter(None, map(one.file.values.get, keys)), None)
    if not isinstance(name, str) or not name.endswith((".json", ".yaml", ".yml")):
        return [], []
    folder, shown = one.file.path.parent, masked(clean(name, 80))
    for place in (folder / name, folder / Path(name).name):
        if place.is_relative_to(folder) and stays_inside(str(place.relative_to(folder))) and is_file(place):
            try:
                return [read_settings(read_document(place))], []
            except StabtreeError as error:
                return [], [f"{one.file.name} names {shown}, which {error.problem}: not used."]
    return [], [f"{one.file.name} names {shown}, which does not lie beside it: name both files to have both checked."]


# ---- what follows from the settings

# A strategy -> the count of steps that is not looked at under any other than `steps`.
_STRATEGIES = {"save_strategy": "checkpoint_every", "eval_strategy": "eval_every", "log_strategy": "log_interval"}
_FACTORS = ("micro_batch_size", "accumulation_steps", "world_size")  # of the batch size
_SCALING = ("loss_scaling", "loss_scale", "initial_loss_scale", "min_loss_scale", "scale_window")
# A default -> the settings that say the same otherwise.
_REPLACED_BY: Mapping[str, tuple[str, ...]] = {
    "warmup_steps": ("warmup_ratio",),
    "micro_batch_size": ("batch_size",),
    "checkpoint_every": ("save_strategy",),
    "epochs": ("max_steps",),
    "dtype": ("mixed", "precisions", "weights_dtype"),
}


def completed(settings: Settings, left_open: Collection[str] | None = None) -> Settings:
    """Return the settings with the trainer's defaults and what follows, without those that others switch off.

    Args:
        settings: those that are said.
        left_open: those that are made elsewhere, of which no default counts; None if none of any counts.
    """
    full = dict(settings)
    if "optimizer" not in full and {"beta1", "beta2"} <= full.keys():
        full["optimizer"] = Setting("adam-like", f"it has betas: {full['beta2'].source}")
    if left_open is not None:
        full = {**_defaults(full, left_open), **full}
    for strategy, count in _STRATEGIES.items():
        if strategy in full and full[strategy].value != "steps":
            full.pop(count, None)
    _drop_constant(full)
    _scaling(full)
    if "lora_rank" in full and "adapter" not in full:
        full["adapter"] = Setting("lora", full["lora_rank"].source)
    factors = [full[key] for key in _FACTORS if key in full]
    if "batch_size" not in full and len(factors) == len(_FACTORS):
        size = math.prod(one.value for one in factors if isinstance(one.value, int))
        full["batch_size"] = Setting(size, " x ".join(one.source for one in factors))
    return full


def _defaults(said: Settings, left_open: Collection[str]) -> Settings:
    """Return what the trainer does if nothing is said, unless another setting replaces it."""
    trainer = framework_called(str(said.get("framework", _UNSAID).value))
    task = str(said.get("task", _UNSAID).value)
    defaults: Settings = {}
    for key, value in {**trainer.unset, **trainer.unset_by_task.get(task, {})}.items():
        by = {*_REPLACED_BY.get(key, ()), key}
        if value == "epoch":  # a count of steps is what such a trainer goes by
            by.add(_STRATEGIES[key])
        if value is not None and by.isdisjoint(said) and by.isdisjoint(left_open):
            defaults[key] = Setting(value, f"{DEFAULT} of {trainer.name}")
    return defaults


def _drop_constant(full: Settings) -> None:
    """Drop the length and the end of a schedule that ends at its peak: the rate is constant."""
    lowest, peak = full.get("min_lr"), full.get("lr")
    if lowest and peak and isinstance(lowest.value, float) and isinstance(peak.value, float):
        # A rate called the first one need not be the peak: a test may raise it until the run diverges.
        rises = lowest.value > peak.value and plain_word(peak.spelled.rpartition(".")[2]).startswith("init")
        if rises or lowest.value == peak.value:
            del full["min_lr"]
        if rises:
            return
        if lowest.value == peak.value:
            full.pop("schedule_steps", None)
    # A schedule that is stepped once an epoch is as long as the run.
    steps, epochs = full.get("schedule_steps"), full.get("epochs")
    if steps and epochs and steps.value == epochs.value:
        del full["schedule_steps"]


def _scaling(full: Settings) -> None:
    """Set whether a scale is a dynamic one; of other precisions than fp16 keep only what switches a scaler."""
    scale = full.get("loss_scale")
    if scale and not scale.value:
        full["loss_scaling"] = replace(full.pop("loss_scale"), value="dynamic", spelled="")
    elif scale:  # times 1 is no scaling
        full["loss_scaling"] = replace(scale, value={1.0: "none"}.get(float(scale.value), "static"))  # type: ignore[arg-type]
    if "dtype" not in full or full["dtype"].value == "fp16":
        return
    # Said of the run itself, not in a section or by a flag that counts in fp16 alone.
    *sections, word = map(plain_word, full.get("loss_scaling", _UNSAID).spelled.split("."))
    switches = word.removeprefix("use_") in (*SCALERS, "loss_scale") and not {*REDUCED} & {*sections}
    for key in _SCALING:
        if key != "loss_scaling" or not switches:
            full.pop(key, None)
