"""What every worker needs, imported and parsed: importing this module judges runs that are made up.

Workers are forked from a process that has imported it, so that they begin at once, and share the memory of it.
"""

from __future__ import annotations

import gc
import math
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from stabtree.loaders.paths.find import Unit
from stabtree.loaders.tensorboard import loader as events  # noqa: F401 - for those that are forked
from stabtree.tools.fleet.judge import UnitJudge

ROWS = 64
LINES = {
    "run.csv": "{},{},{}",
    "run.jsonl": '{{"step": {}, "loss": {}, "lr": {}}}',
    "run.log": "step {}: loss {} lr {}",
}


def prepare() -> None:
    """Judge runs that spike in three formats, the first with settings."""
    rows = [(step, 9.0 if step > ROWS // 2 else 3 * math.exp(-step / ROWS), 1e-3) for step in range(ROWS)]
    with TemporaryDirectory() as folder:
        for name, line in LINES.items():
            home = Path(folder, name.replace(".", "-"))
            home.mkdir()
            head = ["step,loss,lr"] * name.endswith(".csv")
            home.joinpath(name).write_text("\n".join([*head, *(line.format(*row) for row in rows)]), encoding="utf-8")
            if name == "run.csv":
                settings = '{"learning_rate": 0.001, "max_steps": 64}'
                home.joinpath("training_args.json").write_text(settings, encoding="utf-8")
            UnitJudge()([Unit(str(home))])


with suppress(Exception):  # what is wrong is reported where a run is judged
    prepare()
gc.freeze()  # what lasts is not worth looking through again and again
