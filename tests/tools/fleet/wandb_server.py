"""What W&B's service answers, so that its own library can be asked: recorded of wandb 0.31, and as 0.25 asks."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler
from typing import Any

RUNS = ("ab12cd34", "ef56ab78", "cd90ef12")  # the newest first
ERROR = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
USER = {"id": "u", "entity": "team", "username": "me", "name": "me", "email": "a@b.c", "flags": "{}"}


class Service(BaseHTTPRequestHandler):
    """Answers what `wandb.Api` asks of a project of three runs, whose steps count tokens."""

    protocol_version = "HTTP/1.1"
    rows: list[dict[str, Any]] = []  # noqa: RUF012 - set by the test
    status = 200
    asked: list[str] = []  # noqa: RUF012 - the queries

    def do_GET(self) -> None:
        """Send what the run printed."""
        self._send(f"Traceback (most recent call last):\n{ERROR}".encode())

    def do_POST(self) -> None:
        """Answer a query."""
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/graphql":  # usage statistics
            self._send(b"{}")
            return
        body = json.loads(asked)
        query, known = str(body["query"]), dict(body.get("variables") or {})
        self.asked.append(query.partition("(")[0].split()[-1])
        if self.status != 200:  # the library prints what the service says
            self._send(json.dumps({"errors": [{"message": self.headers["Authorization"]}]}).encode(), self.status)
            return
        answer: dict[str, Any] = {"viewer": {**USER, "teams": {"edges": []}, "apiKeys": {"edges": []}}}
        for name in re.findall(r"(\w+): *__type", query):
            answer[name] = {"fields": [{"name": "projectId"}, {"name": "internalId"}], "inputFields": []}
        run = self._run(next((known[key] for key in ("name", "run", "runName") if key in known), RUNS[0]), known)
        edges = [{"node": self._run(name, {}), "cursor": name} for name in RUNS]
        listing = {"edges": edges, "totalCount": len(edges), "pageInfo": {"hasNextPage": False, "endCursor": "x"}}
        answer["project"] = {"internalId": "1", "runCount": len(edges), "runs": listing, "run": run}
        self._send(json.dumps({"data": answer}).encode())

    def _run(self, name: str, known: dict[str, Any]) -> dict[str, Any] | None:
        if name not in RUNS:
            return None
        config = {"lr": {"value": 1e-3 * (1 + RUNS.index(name))}, "dtype": {"value": "fp16"}, "_wandb": {"value": {}}}
        asked = range(known.get("minStep", 0), known.get("maxStep", 0))
        file = {"id": "f", "name": "output.log", "url": f"http://{self.headers['Host']}/f", "sizeBytes": "105"}
        return {
            **dict.fromkeys(("group", "jobType", "commit", "notes", "sweepName", "description", "heartbeatAt")),
            "id": "x",
            "projectId": "1",
            "name": name,
            "displayName": f"sun-{name}",
            "state": "crashed",
            "tags": [],
            "config": json.dumps(config),
            "systemMetrics": "{}",
            "summaryMetrics": "{}",
            "user": USER,
            "historyLineCount": len(self.rows),
            "historyKeys": {"lastStep": self.rows[-1]["_step"]},
            "readOnly": False,
            "createdAt": "2026-01-01T00:00:00Z",
            "fileCount": 1,
            "history": [json.dumps(row) for row in self.rows if row["_step"] in asked][: known.get("pageSize")],
            "parquetHistory": {"liveData": [], "parquetUrls": []},
            "files": {"edges": [{"node": file, "cursor": "a"}], "pageInfo": {"hasNextPage": False, "endCursor": "a"}},
        }

    def _send(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
