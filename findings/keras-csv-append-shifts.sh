#!/bin/sh
# Keras 3.12.0 on JAX 0.10.2 (pip install keras==3.12.0 jax==0.10.2): CSVLogger(append=True) writes no second header, and
# the columns are those of the new model in alphabetic order. Where a metric was added between two calls of fit(), its
# values stand below another name: here those of mae below val_loss, a column that CSVLogger writes (as NA) although
# nothing is validated (keras/src/callbacks/csv_logger.py, on_epoch_end). The rows are wider than the header, and nothing
# warns of it.
# Seen: "epoch,loss,val_loss", rows such as "0,<loss>,NA", then "0,<loss>,<mae>,NA,NA". This script fails if that changes.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install -q keras==3.12.0 jax==0.10.2 2>/dev/null
cat > "$place/run.py" <<'PY'
import keras
import numpy as np

keras.utils.set_random_seed(0)
inputs = np.random.rand(64, 4).astype("float32")
targets = inputs.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(inputs, targets, epochs=2, verbose=0, callbacks=[keras.callbacks.CSVLogger("log.csv")])
model.compile("sgd", "mse", metrics=["mae"])
logger = keras.callbacks.CSVLogger("log.csv", append=True)
history = model.fit(inputs, targets, epochs=2, verbose=0, callbacks=[logger]).history
with open("log.csv") as stream:
    rows = [line.split(",") for line in stream.read().split()]
print("\n".join(map(",".join, rows)))
assert rows[0] == ["epoch", "loss", "val_loss"], rows[0]
assert [row[2:] for row in rows[1:3]] == [["NA"], ["NA"]], rows
assert [row[3:] for row in rows[3:]] == [["NA", "NA"], ["NA", "NA"]], rows
assert [float(row[2]) for row in rows[3:]] == history["mae"], (rows, history)
PY
cd "$place"
KERAS_BACKEND=jax "$place/venv/bin/python" run.py
