"""A process that lacks what Windows lacks: `python -m tests.cli.shell.windows WORDS...` runs stabtree in it.

It shows that nothing asks for what is of POSIX alone. How Windows names, opens and locks files it does not show.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout

MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
FUNCTIONS = (
    *("chown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getuid", "killpg"),
    *("memfd_create", "mkfifo", "mknod", "nice", "openpty", "sched_getaffinity", "setsid", "sysconf", "uname"),
    *("set_blocking", "statvfs"),
)
SIGNALS = ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGPROF", "SIGQUIT", "SIGUSR1", "SIGUSR2")
TIMERS = ("ITIMER_PROF", "ITIMER_REAL", "alarm", "pthread_sigmask", "setitimer")


def all_of(package: str) -> list[str]:
    """The modules of a package but those that start a program, and those that need a trainer."""
    place = importlib.import_module(package).__path__
    names = [found.name for found in pkgutil.walk_packages(place, f"{package}.", onerror=lambda _: None)]
    return [
        name
        for name in names
        if not any(word in name for word in ("__main__", ".callbacks.", ".doors.", ".integrations.", ".torch_stats"))
    ]


def forget(*packages: str) -> None:
    """Drop the modules of packages, so that they are imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        if name not in (__name__, "tests"):
            del sys.modules[name]


def without_posix() -> None:
    """Take away what Windows lacks; what other people's modules hold already stays with them."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for name in FUNCTIONS:
        vars(os).pop(name, None)
    for name in (*SIGNALS, *TIMERS):
        vars(signal).pop(name, None)
    sys.platform = "win32"


def main(words: list[str]) -> int:
    """Import all of stabtree, and run a command."""
    # Each once as it is: what it needs of others is there by then.
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        importlib.import_module("stabtree.cli").main(words)
    own = all_of("stabtree")
    for name in own:
        importlib.import_module(name)
    forget("stabtree")
    without_posix()
    for name in own:
        importlib.import_module(name)
    return int(importlib.import_module("stabtree.cli").main(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
