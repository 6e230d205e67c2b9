"""`--webhook URL`: each change is posted as JSON to an address of the user's, in the background."""

from __future__ import annotations

import queue
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPMessage
    from typing import IO

LIMIT_SECONDS = 10.0
WAIT_SECONDS = 20.0
"""So long the end of a watch waits for what is still to be posted."""
MAX_WAITING = 100
SCHEMES = ("http", "https")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: what a log says goes to the address that the user named, and nowhere else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Return no further request: the redirect is an error."""


class Webhook:
    """Posts events one after the other from a thread of its own; whatever becomes of it is a note.

    Args:
        address: as it was typed; without any, nothing is posted.
        limit_seconds: after which a post is given up.
        clock: seconds that do not go back.

    Raises:
        StabtreeError: for an address that is none of HTTP.
    """

    def __init__(
        self,
        address: str | None,
        *,
        limit_seconds: float = LIMIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        if address is not None:
            _check(address)
        self._limit = limit_seconds
        self._clock = clock
        self._waiting: queue.Queue[str] = queue.Queue(MAX_WAITING)
        self._notes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._opener = urllib.request.build_opener(_NoRedirect)

    def start(self, event: str) -> Iterator[str]:
        """Post a text when those before it were; the note where too many wait."""
        if self._address is None:
            return
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            yield f"--webhook is too slow: {MAX_WAITING} events wait, and one was left out"
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._post_all, name="stabtree-webhook", daemon=True)
            self._thread.start()

    def ended(self) -> Iterator[str]:
        """Yield the notes on what failed since."""
        while not self._notes.empty():
            yield self._notes.get()

    def wait(self) -> Iterator[str]:
        """Wait for what is still to be posted, but not for long."""
        until = self._clock() + WAIT_SECONDS
        while self._waiting.unfinished_tasks and self._clock() < until:
            time.sleep(0.02)
        yield from self.ended()
        if self._waiting.unfinished_tasks:
            yield f"--webhook: {self._waiting.unfinished_tasks} events were not posted before the end"

    def kill(self) -> None:
        """Do nothing: the thread ends with the program."""

    def _post_all(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                self._post(event)
            finally:
                self._waiting.task_done()

    def _post(self, event: str) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "stabtree"}
        try:
            request = urllib.request.Request(str(self._address), event.encode(), headers, method="POST")  # noqa: S310 - checked
            with self._opener.open(request, timeout=self._limit):
                pass
        except urllib.error.HTTPError as error:
            error.close()
            self._notes.put(f"--webhook failed: the server answered {error.code}")
        except Exception as error:  # whatever the network or its libraries do, the watch goes on
            reason = getattr(error, "reason", None) or error
            self._notes.put(f"--webhook failed: {clean(str(reason), 200)}")


def _check(address: str) -> None:
    hint = "type --webhook https://HOST/PATH, in ASCII and without a user name or password"
    try:
        parts = urlsplit(address)
        valid = parts.scheme in SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        valid &= "@" not in parts.netloc  # urllib takes a password for a port, and says so in its errors
    except ValueError:
        valid = False
    # An address often holds a secret: it is never printed.
    if not valid or not address.isascii() or any(sign.isspace() or not sign.isprintable() for sign in address):
        raise StabtreeError("this is not an http or https address that can be posted to", where="--webhook", hint=hint)
