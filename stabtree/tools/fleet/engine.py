"""What does the work: an engine is a context that gives a `concurrent.futures.Executor`."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

PATIENCE_SECONDS = 2.0
PREPARED = "stabtree.tools.fleet.prepared"
"""What a worker needs; where workers are forked, all of them share it."""


class Engine(Protocol):
    """Starts what does the work, and stops it."""

    def __call__(self, jobs: int, address: str = "") -> AbstractContextManager[Executor]:
        """Return the executor.

        Args:
            jobs: how many units may be worked at together.
            address: of what is running already, where the engine is of that kind.
        """


class Inline(Executor):
    """Does all in this process, at once: for few runs, and where no other process may be started."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the result, in a future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Pool(ProcessPoolExecutor):
    """Processes that import nothing of the script that runs, which need not be one that may be imported."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As of any executor; it is here that processes are started."""
        with _without_main():
            return super().submit(fn, *args, **kwargs)

    def stop(self) -> None:
        """Let the processes end what they are at, but wait for that no longer than people do."""
        running = [*(self._processes or {}).values()]
        manager: Any = self._executor_manager_thread
        self.shutdown(wait=False, cancel_futures=True)
        if manager is not None:
            manager.join(PATIENCE_SECONDS)
        if manager is not None and manager.is_alive():
            for process in running:
                process.kill()


@contextmanager
def serial(jobs: int, address: str = "") -> Iterator[Executor]:  # noqa: ARG001 - as an Engine
    """This process alone."""
    yield Inline()


@contextmanager
def processes(jobs: int, address: str = "") -> Iterator[Executor]:  # noqa: ARG001 - as an Engine
    """Processes of this machine, which begin with stabtree imported."""
    pool = Pool(jobs, mp_context=_context(), initializer=warm)
    try:
        yield pool
    except BaseException:
        pool.stop()
        raise
    pool.shutdown(wait=True, cancel_futures=True)


def _in(module: str, name: str) -> Engine:
    """Return an engine that is imported when it is asked for."""

    def engine(jobs: int, address: str = "") -> AbstractContextManager[Executor]:
        found: AbstractContextManager[Executor] = getattr(import_module(module), name)(jobs, address)
        return found

    return engine


ENGINES: dict[str, Engine] = {
    "processes": processes,
    "serial": serial,
    "dask": _in("stabtree.tools.fleet.dask", "dask"),
}
"""The engines by name."""

CLUSTERS = ("dask",)
"""Those that are reached at an address; their workers' threads can't be stopped at a log that takes too long."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1


def warm() -> None:
    """Begin a worker."""
    import signal

    # The one who typed Ctrl-C is asked by the process that was started; it ends these.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import_module(PREPARED)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the script that runs: a process that is started would run it again, to import what it defines."""
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {name: main.__dict__.pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        main.__dict__.update(hidden)


def _context() -> multiprocessing.context.BaseContext:
    """Return how processes are started: never by forking this one, which may have threads."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    multiprocessing.set_forkserver_preload([PREPARED])
    return multiprocessing.get_context("forkserver")
