"""The workers of a Dask cluster that is running already, as an executor; Dask is imported where it is asked for."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from distributed import Client

REACHED_SECONDS, WORKER_SECONDS = 5, 20
RETRIES = 2  # of a batch that raised an error; of one whose worker died Dask itself says how often


@contextmanager
def dask(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor on the workers of a cluster, and how many calls it runs together.

    Args:
        address: where its scheduler listens, such as `tcp://10.0.0.5:8786`.

    Raises:
        StabtreeError: where Dask is not installed, no scheduler answers, it has no workers, or a worker has another
            version of stabtree or none.
    """
    if not address:
        problem, hint = "needs the address of a scheduler", "add --scheduler tcp://HOST:8786"
        raise StabtreeError(problem, where="--engine dask", hint=hint)
    try:
        from distributed import Client
    except ImportError:
        problem, hint = "needs the package distributed", "type `pip install 'stabtree[dask]'`"
        raise StabtreeError(problem, where="--engine dask", hint=hint) from None
    where = f"--scheduler {clean(masked(address))}"
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what goes wrong raises exceptions
    try:
        try:
            client = Client(address, timeout=REACHED_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            problem = f"no Dask scheduler answers: {clean(masked(str(error)), 120)}"
            hint = "check the address, and that `dask scheduler` runs there"
            raise StabtreeError(problem, where=where, hint=hint) from None
        with client:
            _check_workers(client, where)
            yield client.get_executor(pure=False, retries=RETRIES), sum(client.nthreads().values())
    finally:
        logger.setLevel(level)


def _check_workers(client: Client, where: str) -> None:
    """Wait for a worker, as those that died are started again, and refuse one that would judge otherwise.

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
            has = f"has stabtree {clean(version, 40)}" if isinstance(version, str) else "can't import stabtree"
            hint = "type `pip install .` in the same checkout where the workers run, and start them again"
            problem = f"a worker on {clean(worker)} {has}, this machine has {__version__}"
            raise StabtreeError(problem, where=where, hint=hint)


def _version() -> str:
    return __version__
