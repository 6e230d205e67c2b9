"""Runs at addresses, such as `s3://bucket/runs`: their files are copied to a temporary folder while they are read."""

from __future__ import annotations

import io
import pickle
import re
import tempfile
from collections import deque
from contextlib import contextmanager
from importlib import import_module
from itertools import chain, filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, hidden, masked, stays_inside
from stabtree.loaders import Loaded
from stabtree.loaders.folder import SETTINGS
from stabtree.loaders.paths.find import MAX_TOGETHER, Unit, is_hidden, is_log, may_be_log, place
from stabtree.loaders.paths.load import Contents, contents, find_runs, only_named
from stabtree.loaders.paths.read import LoadOptions
from stabtree.loaders.paths.stored import with_inputs
from stabtree.loaders.source import ADDRESS
from stabtree.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    # Units on this machine, what addresses begin with by what their copies begin with, and what else is to be told.
    Copy = tuple[list[Unit], dict[str, str], Contents]

T = TypeVar("T")
CHECK = "check the address, and that you may read there"
_AUTHORISED = re.compile(r"(?i)\b(basic|bearer) +[\w.~+/-]{8,}=*")  # as some servers send a request back
_ACCESS = {
    "wandb": "check the address, and log in: `wandb login`, or WANDB_API_KEY (and WANDB_BASE_URL)",
    "mlflow": "check the address, MLFLOW_TRACKING_URI and what MLflow logs in with",
}
MAX_BYTES = 1 << 30  # of one file that is copied
# What people type, what MLflow prints, and what the pages are at. Only the server of the environment is asked.
_PAGE = r"https?://(?:[\w.-]*\bwandb\b[\w.:-]*|[^/@]+/wandb)/"
_FORMS = (
    (r"wandb:/*([^/?#:@]+/[^/?#:@]+)(?:/(?:runs/)?([^/?#:@]+))?/?", "wandb://"),
    (rf"(?:wandb:/*|{_PAGE})([^/?#:@]+/[^/?#:@]+/sweeps/[\w-]+)(?:[/?].*)?", "wandb://"),
    (rf"{_PAGE}([^/?#:@]+/[^/?#:@.]+)(?:/(?:workspace|table|overview))?/?(?:\?.*)?", "wandb://"),
    (r"https?://[^/@]+/(?:wandb/)?([^/?#]+/[^/?#]+)/runs/([\w-]+)(?:[/?#][^.]*)?", "wandb://"),
    (r"(?:mlflow:/*|https?://[^#\s]+#/)(experiments/[^/?#]+)(?:[/?](?!runs/).*)?", "mlflow:"),
    (r"(?:mlflow:|runs:/|https?://[^#\s]+#/experiments/\d+/runs/)/*([\w-]+)(?:[/?#].*)?", "mlflow:"),
)
_MANY = re.compile(r"wandb://[^/]+/[^/]+(?:/sweeps/.*)?|mlflow:experiments/.*")
MAX_LISTED = 500  # runs of a project, a sweep or an experiment


def run_address(address: str) -> str:
    """Return the address of a run of a service, however it was typed; nothing for an address of files.

    Raises:
        StabtreeError: where it is one of a service, but of no run.
    """
    for form, service in _FORMS:
        if found := re.fullmatch(form, address):
            return service + "/".join(clean(unquote(part)) for part in filter(None, found.groups()))
    if address.startswith(("wandb:", "mlflow:", "runs:")):
        hint = "type wandb://ENTITY/PROJECT/RUN or mlflow:RUN_ID"
        raise StabtreeError("is not the address of a run", where=clean(masked(address)), hint=hint)
    return ""


def address_units(address: str) -> list[Unit]:
    """Return the folders and files that an address or a pattern of addresses names.

    Raises:
        StabtreeError: where there is nothing, or it can't be reached.
    """
    if run := run_address(address):
        return _listed(run)
    system, prefix, path = _opened(address.removesuffix("/**"))
    with _asked(address):
        paths = sorted(system.glob(path))
        folders = tuple(f"{path}/" for path in paths if system.isdir(path))
    if not paths:
        raise StabtreeError("there is nothing at this address", where=_shown(address), hint=CHECK)
    units = []
    for path in paths:
        folder, _, name = (prefix + path.strip("/")).rpartition("/")
        if not path.startswith(folders):
            units.append(Unit(f"{folder}/{name}") if f"{path}/" in folders else Unit(folder, (name,), named=True))
    return units


def read_remote(unit: Unit, options: LoadOptions) -> Contents:
    """Return the runs of a folder or of files at an address, and the folders below it that are better read alone.

    Raises:
        StabtreeError: where it can't be reached, or an option is wrong whatever the log.
    """
    copied = _copied
    if run_address(unit.folder):
        copied = _fetched
    with tempfile.TemporaryDirectory(prefix="stabtree-", ignore_cleanup_errors=True) as folder:
        copy, names, others = copied(unit, Path(folder).resolve())
        waiting, loaded = [*copy], list[Loaded]()
        while waiting:
            found = contents(waiting.pop(0), options, (copy[0].folder,))
            loaded += map(with_hashes, found.loaded)
            waiting[:0] = found.further
        return replace(others, loaded=(*_renamed(loaded, names), *others.loaded))


def fetched_runs(*paths: str, most: float, ranks: bool, **how: Any) -> Contents:
    """Return the runs at paths and addresses, named by their addresses, and what is still to be read where it is more.

    Args:
        paths: paths and addresses.
        most: as of `find_runs`.
        ranks: as of `find_runs`, for paths alone.
        how: as of `load_run`.

    Raises:
        StabtreeError: where an address can't be reached, or an option of `load_runs` is wrong.
    """
    far, near = [*filter(ADDRESS.match, paths)], [*filterfalse(ADDRESS.match, paths)]
    if ranks:
        hint = "copy them here, or name the folder that they are in"
        raise StabtreeError("goes with files of this machine", where=f"--ranks {_shown(far[0])}", hint=hint)
    found = find_runs(*near, most=most, **how) if near else Contents()
    name, options = how.get("run"), replace(LoadOptions(**how), run=None)
    waiting, loaded = deque(dict.fromkeys(chain.from_iterable(map(address_units, far)))), [*found.loaded]
    alone = len(waiting) == 1
    while waiting and len(loaded) <= most:
        unit = waiting.popleft()
        try:
            more = read_remote(unit, options)
        except StabtreeError as error:  # one that can't be read costs no other
            if alone:
                raise
            more = Contents((Loaded(unit.folder, error, unit.folder),))
        loaded += more.loaded
        waiting.extendleft(reversed(more.further))
    if name is not None:
        loaded = [only_named(loaded, name, far[0])]
    return replace(found, loaded=tuple(loaded), further=(*found.further, *waiting))


def with_hashes(item: Loaded) -> Loaded:
    """Return a run with what identifies its files, while they are here."""
    return replace(item, run=with_inputs(item.run)) if isinstance(item.run, Run) else item


def _opened(address: str) -> tuple[Any, str, str]:
    """Return the file system of an address, what stands before the path in it, and the path as the system calls it."""
    if "::" in address.partition("?")[0]:
        hint = "name the last address of the chain"
        raise StabtreeError("chained addresses are not read", where=_shown(address), hint=hint)
    with _asked(address):
        from fsspec.core import url_to_fs

        # Nothing is kept of what a folder held: a file in it may be written again at any time.
        system, path = url_to_fs(address, use_listings_cache=False)
    inner, typed = str(path).strip("/"), address.rstrip("/")
    if inner and not all(map(_is_name, inner.split("/"))):
        raise StabtreeError("is not the address of a file or folder", where=_shown(address), hint="write it out")
    scheme = address[: address.index("://") + 3]
    return system, typed.removesuffix(inner) if inner and typed.endswith(inner) else scheme, str(path).rstrip("/")


def _fetched(unit: Unit, root: Path) -> Copy:
    """Have the library of a service write a run."""
    address = unit.folder
    if _MANY.fullmatch(address):
        problem = f"holds more than {MAX_LISTED} runs: only the newest {MAX_LISTED} are read"
        raise StabtreeError(problem, where=address, hint="name others by their own addresses")
    run: Path | None = _told(address, "fetch", root)
    if run is None:
        problem = "is a run without metrics: nothing was logged"
        raise StabtreeError(problem, where=address, hint="name another run")
    file = (run.name,) * (run != root)
    return [Unit(str(root), file, named=True)], {str(run): address, str(root): address}, Contents()


def _copied(unit: Unit, root: Path) -> Copy:
    """Copy what may be logs and settings, and lay out empty files in place of all others: their names are enough."""
    system, prefix, path = _opened(unit.folder)
    with _asked(unit.folder):
        found = system.find(path, maxdepth=1 if unit.files else None, detail=True)
    files = {name.removeprefix(f"{path}/"): int(item.get("size") or 0) for name, item in sorted(found.items())}
    if not unit.files and (below := _below(unit.folder, files)):
        return [], {}, Contents(further=below)
    home = root / path.strip("/")
    home.mkdir(parents=True, exist_ok=True)
    refused, wanted = list[Loaded](), list[str]()
    for name, size in files.items():
        parts, last = name.split("/"), name.rpartition("/")[2]
        if problem := _problem(parts, size):
            where = masked(place(unit.folder, clean(name)))
            error = StabtreeError(problem, where=where, hint="copy it here, and name the copy")
            refused.append(Loaded(where, error, where))
        elif not any(map(is_hidden, parts)):
            home.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            log = last in unit.files or (not unit.files and may_be_log(last))
            if size and (log or last in SETTINGS or last.endswith((".yaml", ".yml"))):
                wanted.append(name)
            else:
                home.joinpath(name).touch()
    with _asked(unit.folder):
        system.get([f"{path}/{name}" for name in wanted], [str(home / name) for name in wanted])
    return [replace(unit, folder=str(home))], {f"{root}/": masked(prefix)}, Contents(tuple(refused))


def _below(folder: str, files: Iterable[str]) -> tuple[Unit, ...]:
    """Return what a folder is read as where it holds more logs than are read together; nothing where it does not."""
    direct = [name for name in files if "/" not in name]
    folders = sorted({name.partition("/")[0] for name in files} - set(direct))
    if not folders or sum(map(is_log, files)) <= MAX_TOGETHER:
        return ()
    found = [Unit(place(folder, name)) for name in filterfalse(is_hidden, folders)]
    if logs := tuple(filter(may_be_log, direct)):
        found.append(Unit(folder, logs))
    return tuple(found)


def _problem(parts: Sequence[str], size: int) -> str:
    """Return why a file is not copied, by the parts of its path and its size; nothing where it may be."""
    if not all(map(_is_name, parts)):
        return "its name would lead out of the folder, or is not a file name"
    if size > MAX_BYTES and may_be_log(parts[-1]):
        return f"is {size / 2**30:.1f} GiB, more than is copied"
    return ""


def _listed(address: str) -> list[Unit]:
    """Return a run, or the newest of a project, a sweep or an experiment; that itself after them where there are more.

    Raises:
        StabtreeError: where there is none.
    """
    if not _MANY.fullmatch(address):
        return [Unit(address)]
    runs: list[str] = _told(address, "listed", MAX_LISTED + 1)
    if not runs:
        raise StabtreeError("holds no runs", where=address, hint="name another one")
    return [*map(Unit, runs[:MAX_LISTED]), *[Unit(address) for _ in runs[MAX_LISTED:]]]


def _told(address: str, question: str, *how: Any) -> Any:
    """Return what a service's own library says of an address."""
    service, _, name = address.partition(":")
    with _asked(address):
        library, tracker = import_module(service), import_module(f"stabtree.loaders.trackers.{service}")
        return getattr(tracker, question)(library, name.lstrip("/"), *how)


def _is_name(name: str) -> bool:
    """Return whether this can be the name of one file in a folder, and leads nowhere else."""
    fits = 0 < len(name.encode("utf-8", "surrogateescape")) <= 255
    return fits and name != "." and "\0" not in name and stays_inside(name)


def _shown(address: str) -> str:
    """Return an address, safe to print: without its password."""
    return clean(masked(address[:1200]), 300)


@contextmanager
def _asked(address: str) -> Iterator[None]:
    """Tell in our words what a storage answers.

    Raises:
        StabtreeError: for whatever goes wrong within.
    """
    extra = address.partition(":")[0]
    hint = _ACCESS.get(extra, CHECK)
    try:
        yield
    except StabtreeError:
        raise
    except Exception as error:  # each kind of storage raises errors of its own
        told = _AUTHORISED.sub(r"\1 ***", hidden(masked(clean(error, 400))))
        problem = f"can't be read: {clean(told, 160) or type(error).__name__}"
        if isinstance(error, FileNotFoundError):
            problem = "there is nothing at this address"
        elif isinstance(error, ImportError):
            if extra not in _ACCESS:
                extra = "remote"
            problem = f"needs stabtree[{extra}], or other packages that are not installed: {clean(error, 120)}"
            hint = f"type `pip install 'stabtree[{extra}]'`"
        raise StabtreeError(problem, where=_shown(address), hint=hint) from None


def _renamed(value: T, names: Mapping[str, str]) -> T:
    """Return a value with addresses instead of the paths of copies, in every text in it, whatever classes it is of."""

    class Writer(pickle.Pickler):
        def persistent_id(self, item: object) -> str | None:
            """Return the text to read instead of an item; None where it stays as it is."""
            if type(item) is not str or not any(map(item.__contains__, names)):
                return None
            for copy, address in names.items():
                item = item.replace(copy, address)
            return item

    class Reader(pickle.Unpickler):  # noqa: S301 - of what was written a line before
        persistent_load = staticmethod(str)

    stream = io.BytesIO()
    Writer(stream).dump(value)
    stream.seek(0)
    found: T = Reader(stream).load()
    return found
