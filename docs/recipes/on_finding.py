#!/usr/bin/env python3
"""Adds each change to alarms.txt: stabtree watch run.jsonl --exec "python3 on_finding.py".

It is given the change as a line of JSON on its standard input. It posts nothing anywhere: what does goes here.
"""

import json
import sys
from pathlib import Path

event = json.load(sys.stdin)
finding, restart = event["finding"], event["finding"]["restart"]
line = f"{event['time']} {event['run']}: {event['change']}, {finding['severity']} {finding['id']}: {finding['title']}"
if finding["onset_step"] is not None:
    line += f", step {finding['onset_step']}"
if restart and restart["checkpoint_step"] is not None:
    line += f", restart from {restart['checkpoint_step']}"
with Path("alarms.txt").open("a", encoding="utf-8") as file:
    file.write(f"{line}\n")
