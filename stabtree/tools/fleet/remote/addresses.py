"""Folders of other machines by their addresses, such as `s3://bucket/runs`, as fsspec lists them."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked, stays_inside

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+(?:://[^\s:]*)?::)*[A-Za-z][A-Za-z0-9+.-]+://")
STAMPS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "md5Hash", "created")
"""What differs when a file was written again, by the names that kinds of storage have for it."""
LONGEST_NAME = 255
SHOWN = 300


@dataclass(frozen=True, slots=True)
class Listed:
    """What is in a remote folder.

    Attributes:
        name: its name there.
        size: its bytes.
        folder: whether it is a folder.
        stamp: what differs when it was written again.
    """

    name: str
    size: int = 0
    folder: bool = False
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or folder of another machine.

    Attributes:
        system: the file system of fsspec that holds it.
        prefix: what comes before its path in an address: `s3://`.
        path: its path there, without a slash at its ends: `bucket/runs`.
    """

    system: Any
    prefix: str
    path: str

    @property
    def address(self) -> str:
        """What to type to open it."""
        return self.prefix + self.path

    @property
    def stored(self) -> str:
        """Its path as its file system calls it."""
        return str(self.system._strip_protocol(self.address))  # noqa: SLF001 - what fsspec calls it in its own guide

    def inner(self, name: str) -> Remote:
        """Return what is in it."""
        return Remote(self.system, self.prefix, f"{self.path}/{name}".lstrip("/"))


def is_address(path: str) -> bool:
    """Return whether a path is an address: a scheme, `://` and what follows it."""
    return _ADDRESS.match(path) is not None


def shown(address: str) -> str:
    """Return an address, safe to print: without its password."""
    return clean(masked(address[: 4 * SHOWN]), SHOWN)


def opened(address: str) -> Remote:
    """Return the file or folder at an address; nothing is asked of it yet.

    Raises:
        StabtreeError: where nothing is installed that can, or it is no address of a file.
    """
    if "::" in address.partition("?")[0]:
        hint = "name the last address of the chain"
        raise StabtreeError("chained addresses are not read", where=shown(address), hint=hint)
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        from stabtree.loaders.source import open_source

        open_source(address)  # says how to do without
        raise
    with asked(address):
        # Nothing is kept of what a folder held: a file in it may be written again at any time.
        system, path = url_to_fs(address, use_listings_cache=False)
    scheme = address[: address.index("://") + 3]
    inner = str(path).removeprefix(scheme).strip("/")
    typed = address.rstrip("/")
    if inner and typed.endswith(inner):
        prefix = typed[: len(typed) - len(inner)]
    else:
        prefix = scheme
    if inner and not all(map(_is_name, inner.split("/"))):
        raise StabtreeError("is not the address of a file or folder", where=shown(address), hint="write it out")
    return Remote(system, prefix, inner)


@contextmanager
def asked(address: str) -> Iterator[None]:
    """Tell in our words what a storage answers.

    Raises:
        StabtreeError: for whatever goes wrong within.
    """
    where = shown(address)
    try:
        yield
    except StabtreeError:
        raise
    except FileNotFoundError:
        raise StabtreeError("there is nothing at this address", where=where, hint="check it") from None
    except ImportError as error:
        hint = "type `pip install 'stabtree[remote]'` for s3://"
        raise StabtreeError(f"can't be reached: {clean(error, 120)}", where=where, hint=hint) from None
    except Exception as error:  # each kind of storage raises errors of its own
        reason = clean(masked(clean(error, 400)), 160) or type(error).__name__
        hint = "check the address, and that you may read there"
        raise StabtreeError(f"can't be read: {reason}", where=where, hint=hint) from None


def listed(folder: Remote) -> tuple[list[Listed], list[str]]:
    """Return what is in a folder, in order, and names there that no file of this machine may have.

    Raises:
        StabtreeError: where it can't be listed.
    """
    own = folder.stored.rstrip("/")
    with asked(folder.address):
        found = folder.system.ls(folder.stored, detail=True)
    entries: dict[str, Listed] = {}
    refused = []
    for item in found:
        path = str(item["name"])
        name = path.removeprefix(f"{own}/").removesuffix("/")
        if path.rstrip("/") == own or not name or item.get("islink"):
            continue  # an object store keeps a folder as an empty object in itself
        if not path.startswith(f"{own}/") or not _is_name(name) or name in entries:
            refused.append(name)
            continue
        stamp = next((str(item[key]) for key in STAMPS if item.get(key) is not None), "")
        entries[name] = Listed(name, int(item.get("size") or 0), item.get("type") == "directory", stamp)
    return sorted(entries.values(), key=lambda entry: entry.name), refused


def _is_name(name: str) -> bool:
    """Return whether this can be the name of one file in a folder, and leads nowhere else."""
    fits = 0 < len(name.encode("utf-8", "surrogateescape")) <= LONGEST_NAME
    return fits and name != "." and "/" not in name and "\0" not in name and stays_inside(name)


def expanded(address: str) -> list[tuple[str, bool]]:
    """Return the addresses that match a pattern, each with whether it is a folder; of any other address itself.

    Raises:
        StabtreeError: where there is nothing.
    """
    remote = opened(address.removesuffix("/**"))
    magic = any(sign in remote.path for sign in "*?[")
    with asked(address):
        if magic:
            paths = sorted(remote.system.glob(remote.stored))
        else:
            paths = [remote.stored]
        scheme = address[: address.index("://") + 3]
        places = [Remote(remote.system, remote.prefix, path.removeprefix(scheme).strip("/")) for path in paths]
        found = [(place.address, bool(remote.system.isdir(place.stored))) for place in places]
        if not found or not (found[0][1] or remote.system.exists(places[0].stored)):
            raise FileNotFoundError
    folders = tuple(f"{place}/" for place, folder in found if folder)
    return [(place, folder) for place, folder in found if not place.startswith(folders)]
