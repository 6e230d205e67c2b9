"""`--serve PORT`: the page of a watch on this machine's own address, under a path that only its user knows."""

from __future__ import annotations

import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    import socket

    Request = socket.socket | tuple[bytes, socket.socket]

HOST = "127.0.0.1"
MAX_AT_ONCE = 8
LIMIT_SECONDS = 10.0
TOKEN_BYTES = 16
MAX_PORT = 65_535
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.path = f"/{secrets.token_urlsafe(TOKEN_BYTES)}/"
        self.page = b""
        self._free = threading.BoundedSemaphore(MAX_AT_ONCE)

    def process_request(self, request: Request, client_address: object) -> None:
        """Answer in a thread; where so many answer already, the connection is closed."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Request, client_address: object) -> None:
        """Answer, and leave the thread's place to another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a browser that goes away is no event."""


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the one path; anything else is not found."""

    server: _Server
    timeout = LIMIT_SECONDS
    server_version, sys_version = "stabtree", ""

    def do_GET(self) -> None:
        """Send the page."""
        # Another site that is open in the browser can reach this address under a name of its own.
        named = self.headers.get("Host", "")
        port = self.server.server_address[1]
        known = named in (f"{HOST}:{port}", f"localhost:{port}")
        if not known or not secrets.compare_digest(self.path.encode(), self.server.path.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        page = self.server.page
        self.send_response(HTTPStatus.OK)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Print nothing: the path is a secret."""


class PageServer:
    """Serves the last page from threads of its own.

    Args:
        port: the port; 0 takes any that is free.

    Raises:
        StabtreeError: where the port is none, or is taken.
    """

    def __init__(self, port: int) -> None:
        if not 0 <= port <= MAX_PORT:
            raise StabtreeError(f"{port} is no port", where="--serve", hint="type --serve 0 for any free one")
        try:
            self._server = _Server(port)
        except OSError as error:
            problem = f"port {port} can't be used: {error.strerror or error}"
            raise StabtreeError(problem, where="--serve", hint="type --serve 0 for any free one") from None
        threading.Thread(target=self._server.serve_forever, name="stabtree-serve", daemon=True).start()

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self._server.server_address[1]}{self._server.path}"

    def show(self, page: str) -> None:
        """Serve a page from now on."""
        self._server.page = page.encode("utf-8", "replace")

    def close(self) -> None:
        """Serve nothing more."""
        self._server.shutdown()
        self._server.server_close()
