"""Writes `expected.json` anew and tells which cases changed."""

from __future__ import annotations

import json
import sys

from tests import corpus

if __name__ == "__main__":
    before = corpus.expected() if corpus.EXPECTED.exists() else {}
    now = {case: corpus.told(corpus.found(case)) for case in corpus.cases()}
    lines = (f"{json.dumps(case)}: {json.dumps(said)}" for case, said in now.items())
    corpus.EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    for case in dict.fromkeys([*before, *now]):
        if before.get(case) != now.get(case):
            sys.stdout.write(f"{case}\n  was {before.get(case)}\n  now {now.get(case)}\n")
    sys.stdout.write(f"{len(now)} cases\n")
