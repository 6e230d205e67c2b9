"""What every worker needs, imported and parsed: importing this module judges a run that is made up.

Workers are forked from a process that has imported it, so that they begin at once, and share the memory of it.
"""

from __future__ import annotations

import gc
from contextlib import suppress

import numpy as np

from stabtree.judging.judge import Judging
from stabtree.loaders.formats import choose
from stabtree.loaders.paths.joined import Loaded
from stabtree.loaders.paths.read import LoadOptions
from stabtree.loaders.source import in_memory
from stabtree.loaders.tensorboard import loader as events  # noqa: F401 - for those that are forked
from stabtree.run import Run, Series, Setting
from stabtree.tools.fleet import examine  # noqa: F401 - for those that are forked
from stabtree.tools.fleet.outputs.records import record

ROWS = 64
TEXTS = {
    "made-up.csv": "step,loss\n0,3.5\n1,3.25\n",
    "made-up.jsonl": '{"step": 0, "loss": 3.5}\n{"step": 1, "loss": 3.25}\n',
    "made-up.log": "step 0: loss 3.5\nstep 1: loss 3.25\n",
}


def prepare() -> None:
    """Judge runs that learn, without settings and with some, and one that spikes, and read logs of two rows."""
    steps = np.arange(ROWS)
    falling = 3.0 * np.exp(-steps / ROWS)
    spiking = np.where(steps == ROWS // 2, 9.0, falling)
    known = {"max_steps": Setting(ROWS, "made-up"), "lr": Setting(1e-3, "made-up")}
    for loss, config in ((falling, {}), (falling, known), (spiking, known)):
        columns = {"loss": loss, "grad_norm": 1 + falling, "lr": np.full(ROWS, 1e-3)}
        run = Run("made-up", {name: Series(name, steps, values, name) for name, values in columns.items()}, config)
        record(Judging().outcome(Loaded("made-up", run, "made-up")), "made-up")
    names = LoadOptions().names()
    for name, text in TEXTS.items():
        source = in_memory(name, text)
        choose(source, names).read(source, names)


with suppress(Exception):  # what is wrong is reported where a run is judged
    prepare()
gc.freeze()  # what lasts is not worth looking through again and again
