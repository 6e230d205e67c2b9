"""A worker begins with all that most units need."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import FIXTURES

CODE = """
import sys
import stabtree.tools.fleet.prepared
from stabtree.loaders.paths.find import Unit
from stabtree.tools.fleet.examine import Examiner

known = set(sys.modules)
(found,) = Examiner()([Unit(sys.argv[1])])
more = sorted(name for name in set(sys.modules) - known if name.startswith("stabtree"))
print(found.rows[0][1], more)
"""


def test_a_worker_imports_nothing_more_for_a_usual_run() -> None:
    """What is judged before workers are forked is shared by all of them."""
    run = str(FIXTURES / "phase19" / "healthy")
    told = subprocess.run([sys.executable, "-c", CODE, run], check=True, capture_output=True, text=True)
    assert told.stdout == "ok []\n"
