#!/bin/sh
# wandb 0.31.0 (pip install wandb==0.31.0), its public interface against a local server that answers its queries:
# Run.scan_history asks for the history in pages of 1,000 steps, not rows (wandb/apis/public/history.py, _load_next).
# Of a run whose steps count tokens or samples nearly every page is empty: 200 rows that are 2,000 steps apart take 399
# requests, and 1,000 rows up to step 10^9 a million, so that the call seems to hang. With page_size set to 1,000 times
# lastHistoryStep / historyLineCount the same rows come in one request. Nor has a request a time limit there: where the
# service answers 500, the library asks again for minutes, unless WANDB__GRAPHQL_RETRY_MAX is set.
# Seen: 200 rows in 399 requests; with page_size=400000 in 1. This script fails if that changes.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install -q wandb==0.31.0 2>/dev/null
cat > "$place/run.py" <<'PY'
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROWS = [{"_step": 2000 * index, "loss": 1.0} for index in range(200)]
pages = []


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = {}
        if self.path == "/graphql":
            asked = json.loads(asked)
            known = asked.get("variables") or {}
            steps = range(known.get("minStep", 0), known.get("maxStep", 0))
            if "HistoryPage" in asked["query"]:
                pages.append(steps)
            run = {"name": "ab12cd34", "displayName": "sun-1", "state": "finished", "config": "{}", "projectId": "1"}
            run |= {"historyKeys": {"lastStep": ROWS[-1]["_step"]}, "historyLineCount": len(ROWS)}
            run |= {"systemMetrics": "{}", "summaryMetrics": "{}", "user": {"name": "me", "username": "me"}}
            run |= {"history": [json.dumps(row) for row in ROWS if row["_step"] in steps][: known.get("pageSize")]}
            run |= {"parquetHistory": {"liveData": [], "parquetUrls": []}}
            viewer = {"id": "u", "entity": "team", "username": "me", "email": "a@b.c", "teams": {"edges": []}}
            data = {"data": {"viewer": viewer, "project": {"run": run}}}
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ |= {"WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}", "WANDB_API_KEY": "a" * 40}

import wandb

run = wandb.Api().run("team/project/ab12cd34")
seen = []
for size in (1000, 400_000):
    pages.clear()
    seen.append((len(list(run.scan_history(page_size=size))), len(pages)))
print("rows, requests", seen)
assert seen == [(200, 399), (200, 1)], seen
os._exit(0)
PY
"$place/venv/bin/python" "$place/run.py"
