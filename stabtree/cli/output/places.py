"""`--output NAME[=FILE]`: which outputs are wanted, and where each goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.report.outputs import HEADLINE, JSON, RUN, SCREEN, SVG, names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stabtree.cli.options.output import OutputOptions
    from stabtree.run import Run

    Targets = dict[Path | None, str]
    """Outputs by the file that each goes to; None is standard output."""

OTHER_FILE = "name another file to write to"


def wanted(out: OutputOptions, kind: str = RUN) -> Targets:
    """Return what goes where.

    Args:
        out: what was typed.
        kind: the kind of result, which has its own outputs.

    Raises:
        StabtreeError: where a name is unknown, a FILE can't be written to, or two outputs go to one place.
    """
    items = [*out.output]
    if out.json:
        items.append(JSON)
    if out.quiet:
        items.append(HEADLINE)
    items = items or [SCREEN]
    if out.plot is not None:
        items.append(_picture(out.plot))
    found: Targets = {}
    for item in items:
        name, target = parsed(item, names(kind))
        if target in found:
            stream, other = ("standard output", "FILE") if target is None else (item.partition("=")[2], "another FILE")
            hint = f"send one of them elsewhere: --output {name}={other}"
            raise StabtreeError(f"{found[target]} and {name} can't both go to {stream}", where="--output", hint=hint)
        found[target] = name
    return found


def parsed(item: str, known: Collection[str]) -> tuple[str, Path | None]:
    """Return the name and the file of `NAME[=FILE]`; None for standard output.

    Raises:
        StabtreeError: where the name is unknown, or the file can't be written to.
    """
    name, equals, file = item.partition("=")
    if equals and not file:
        raise StabtreeError("no file is named after =", where=f"--output {item}", hint=f"type --output {name}=FILE")
    if name not in known:
        import difflib  # only a mistake needs it

        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean --output {near[0]}?" if near else "`--help` lists the outputs"
        raise StabtreeError(f"{name!r} is not an output", where="--output", hint=hint)
    if file in ("", "-", "/dev/stdout"):
        return name, None
    try:
        return name, Path(file).resolve()
    except (OSError, RuntimeError, ValueError):  # links in a loop, a name with a NUL
        raise StabtreeError("it can't be written to", where=f"--output {file}", hint="name another file") from None


def _picture(plot: str) -> str:
    """Return `--plot FILE` as what it is short for."""
    path = Path(plot)
    if path.suffix.lower() != ".svg":
        hint = f"type --plot {path.stem or 'run'}.svg"
        raise StabtreeError("the name of a picture ends in .svg", where=f"--plot {plot}", hint=hint)
    return f"{SVG}={plot}"


def protect_run(targets: Iterable[Path | None], run: Run, *rules: str | None) -> None:
    """Refuse to overwrite what is diagnosed, or the trees and settings it is diagnosed by.

    Raises:
        StabtreeError: where a file to write is one of them.
    """
    runs = [run, run.rerun] if run.rerun else [run]
    logs: set[Path] = set()
    names: set[str] = set()
    for one in runs:
        logs.update(Path(source.path).resolve() for source in one.sources)
        names.update(setting.source for setting in one.config.values())
    protect_rules(targets, *rules)
    beside: set[Path] = set()
    for log in logs:
        beside.update(log.parent / name for name in names)  # a manifest is in the folder of its log
    _refuse(targets, logs | beside)


def protect_log(targets: Iterable[Path | None], name: str, option: str = "--output") -> None:
    """Refuse to overwrite a log that can't be read: it may be all that is left of a run.

    Raises:
        StabtreeError: where a file to write is that log.
    """
    try:
        log = Path(name).resolve()
    except (OSError, RuntimeError, ValueError):
        return  # no path leads to it, so none overwrites it
    _refuse(targets, {log}, option)


def _refuse(targets: Iterable[Path | None], read: Collection[Path], option: str = "--output") -> None:
    for target in targets:
        if target in read:
            raise StabtreeError("is a file of the run itself", where=f"{option} {target}", hint=OTHER_FILE)


def protect_rules(targets: Iterable[Path | None], *rules: str | None, option: str = "--output") -> None:
    """Refuse to overwrite what runs are judged by.

    Raises:
        StabtreeError: where a file to write is a tree, the settings or a baseline.
    """
    used = {Path(rule).resolve() for rule in rules if rule}
    for target in targets:
        if target and (target in used or target.parent in used):
            problem = "is in use: a tree, the settings, or a baseline"
            raise StabtreeError(problem, where=f"{option} {target}", hint=OTHER_FILE)
