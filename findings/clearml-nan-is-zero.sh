#!/bin/sh
# ClearML 2.1.12 (pip install clearml==2.1.12), offline mode: Logger.report_scalar stores a NaN and an infinity as 0.0
# in metrics.jsonl (clearml/backend_interface/metrics/events.py, _convert_np_nan_inf). A line of its log says so
# once in many values, so that a broken run looks like one whose loss fell to a perfect 0.
# Seen: values 2.0, 1.0, 0.0, 0.0, 0.5 for 2.0, 1.0, nan, inf, 0.5. This script fails if that changes.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install -q clearml==2.1.12 2>/dev/null
cat > "$place/run.py" <<'PY'
import json
from pathlib import Path

from clearml import Task

Task.set_offline(True)
off = {"auto_connect_frameworks": False, "auto_resource_monitoring": False, "auto_connect_arg_parser": False}
task = Task.init("project", "task", **off)
logged = [2.0, 1.0, float("nan"), float("inf"), 0.5]
for step, value in enumerate(logged):
    task.get_logger().report_scalar("loss", "train", iteration=step, value=value)
folder = Path(task.get_offline_mode_folder())
task.flush(wait_for_uploads=True)
events = [event for line in (folder / "metrics.jsonl").read_text().splitlines() for event in json.loads(line)]
stored = [event["value"] for event in events if event.get("metric") == "loss"]
print("logged", logged)
print("stored", stored)
assert stored == [2.0, 1.0, 0.0, 0.0, 0.5], stored
task.close()
PY
CLEARML_CACHE_DIR="$place/cache" CLEARML_OFFLINE_MODE=1 "$place/venv/bin/python" "$place/run.py"
