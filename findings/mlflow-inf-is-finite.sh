#!/bin/sh
# MLflow 3.17.2 (of it mlflow-skinny, with what its database needs), its default store, an SQLite database: an infinity
# that is logged comes back from MLflow's own client as the largest finite float, while a NaN comes back as NaN (in the
# table it is the value 0 with is_nan = 1: mlflow/store/tracking/sqlalchemy_store.py, sanitize_metric_value). So a check
# with math.isinf on what the client returns never finds an overflow.
# Seen: inf -> 1.7976931348623157e+308, -inf -> -1.7976931348623157e+308, nan -> nan. This script fails if that changes.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install -q mlflow-skinny==3.17.2 sqlalchemy alembic 2>/dev/null
cat > "$place/run.py" <<'PY'
import math
import sqlite3

import mlflow

logged = [2.0, float("inf"), float("-inf"), float("nan")]
with mlflow.start_run() as run:
    for step, value in enumerate(logged):
        mlflow.log_metric("grad_norm", value, step=step)
history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "grad_norm")
values = [entry.value for entry in sorted(history, key=lambda entry: entry.step)]
print("logged", logged)
print("client", values)
assert values[:3] == [2.0, 1.7976931348623157e308, -1.7976931348623157e308] and math.isnan(values[3]), values
assert not any(map(math.isinf, values))
table = sqlite3.connect("mlflow.db").execute("SELECT value, is_nan FROM metrics ORDER BY step").fetchall()
print("table ", table)
assert table[3] == (0.0, 1), table
PY
cd "$place"
"$place/venv/bin/python" run.py 2>/dev/null
