"""The workers of a Dask cluster that is running already, as an executor; Dask is imported where it is asked for."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked
from stabtree.tools.fleet.remote.addresses import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from distributed import Client

OPTION = "--scheduler"
REACHED_SECONDS = 5
WORKER_SECONDS = 20
RETRIES = 2  # of a batch that raised an error; of one whose worker died Dask itself says how often


@contextmanager
def dask(jobs: int, address: str = "") -> Iterator[Executor]:  # noqa: ARG001 - as an Engine
    """An executor on the workers of a cluster.

    Args:
        jobs: of no matter here; the cluster has the workers that it has.
        address: where its scheduler listens, such as `tcp://10.0.0.5:8786`.

    Raises:
        StabtreeError: where Dask is not installed, no scheduler answers, it has no workers, or a worker has another
            version of stabtree or none.
    """
    if not address:
        hint = f"add {OPTION} tcp://HOST:8786"
        raise StabtreeError("needs the address of a scheduler", where="--engine dask", hint=hint)
    where = f"{OPTION} {shown(address)}"
    try:
        from distributed import Client
    except ImportError:
        hint = "type `pip install 'stabtree[dask]'`"
        raise StabtreeError("needs the package distributed", where="--engine dask", hint=hint) from None
    with _quiet():
        _check_reached(address, where)
        with Client(address, timeout=REACHED_SECONDS, set_as_default=False) as client:
            _check_workers(client, where)
            executor = SameVersion(client.get_executor(pure=False, retries=RETRIES), sum(client.nthreads().values()))
            try:
                yield executor
            finally:
                executor.shutdown(wait=False)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask from writing between our lines: what goes wrong raises exceptions."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _check_reached(scheduler: str, where: str) -> None:
    """Ask who listens there before there is a client, which goes on trying long after its error.

    Raises:
        StabtreeError: where it is no scheduler.
    """
    from distributed.core import rpc
    from distributed.security import Security

    async def identity() -> dict[str, Any]:
        arguments = Security().get_connection_args("client")
        async with rpc(scheduler, timeout=REACHED_SECONDS, connection_args=arguments) as remote:
            return dict(await asyncio.wait_for(remote.identity(), REACHED_SECONDS))

    try:
        found = asyncio.run(identity())
    except (OSError, ValueError, TypeError) as error:
        hint = "check the address, and that `dask scheduler` runs there"
        reason = clean(masked(str(error)), 120) or f"none within {REACHED_SECONDS} seconds"
        raise StabtreeError(f"no Dask scheduler answers: {reason}", where=where, hint=hint) from None
    if found.get("type") != "Scheduler":
        hint = "name the address that `dask scheduler` prints"
        raise StabtreeError("is not a scheduler of Dask", where=where, hint=hint)


def _check_workers(client: Client, where: str) -> None:
    """Wait for a worker, as those do that died are started again, and refuse what would judge otherwise.

    Raises:
        StabtreeError: where there is none, or one has another version of stabtree or none.
    """
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        problem = f"the scheduler has no workers, after {WORKER_SECONDS} seconds"
        raise StabtreeError(problem, where=where, hint="start some: dask worker ADDRESS") from None
    for worker, version in client.run(_version, on_error="return").items():
        if version != __version__:
            raise _unlike(version if isinstance(version, str) else "", __version__, where, f" on {clean(worker)}")


def _version() -> str:
    return __version__


def _unlike(version: str, ours: str, where: str, worker: str = "") -> StabtreeError:
    if version:
        found = f"has stabtree {clean(version, 40)}"
    else:
        found = "can't import stabtree"
    hint = "type `pip install .` in the same checkout where the workers run, and start them again"
    return StabtreeError(f"a worker{worker} {found}, this machine has {ours}", where=where, hint=hint)


def _called(version: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a worker runs; it may have come to the cluster after the others were asked for their version."""
    if version != __version__:
        raise _unlike(__version__, version, OPTION)
    return function(*arguments)


class SameVersion(Executor):
    """The executor of a client, whose every call names to the worker which version of stabtree it is from.

    Attributes:
        workers: how many calls the cluster runs together.
    """

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor = executor
        self.workers = workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a call."""
        return self._executor.submit(_called, __version__, fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take back what was sent."""
        self._executor.shutdown(wait=wait and not cancel_futures)
