#!/bin/sh
# DVCLive 3.49.1 (pip install dvclive==3.49.1): log_metric without next_step appends a row a call, and each has step 0,
# in the file as in metrics.json. Nothing warns of it, and `dvc plots` draws all values above one step.
# Seen: "0 2.0", "0 1.5", "0 1.0". This script fails if that changes.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install -q dvclive==3.49.1 2>/dev/null
cat > "$place/run.py" <<'PY'
from pathlib import Path

from dvclive import Live

with Live("out", save_dvc_exp=False, dvcyaml=None, report=None) as live:
    for value in (2.0, 1.5, 1.0):
        live.log_metric("loss", value)
rows = Path("out/plots/metrics/loss.tsv").read_text().split("\n")[:-1]
print("\n".join(rows))
assert rows == ["step\tloss", "0\t2.0", "0\t1.5", "0\t1.0"], rows
PY
cd "$place"
DVC_NO_ANALYTICS=1 "$place/venv/bin/python" run.py
