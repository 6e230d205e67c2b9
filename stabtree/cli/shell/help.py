"""`--help`: the options of a command in groups, by the `rich_help_panel` that each was declared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

INPUT, JUDGING, OUTPUT = "Input", "Judging", "Output"
ARGUMENTS, OPTIONS = "Arguments", "Options"
ROOT_EPILOG = "`stabtree PATH` diagnoses a log; `stabtree help COMMAND` tells of a command."
DIAGNOSE_EPILOG = """\b
Examples:
  stabtree run.csv                       one run; `diagnose` may be left out
  stabtree 'sweep/*' -q                  a line a run
  tail -n 5000 train.log | stabtree -    standard input
  stabtree run.csv --dtype fp16 --json   for machines

\b
Exit codes:
  0  all runs judged, nothing at or above --fail-on
  1  something is
  2  a mistake in what was typed, or a log that can't be read
  3  too little was logged to judge
  4  stabtree itself failed; --debug shows where
"""
CHECK_EPILOG = """\b
Examples:
  stabtree check config.yaml                    before a GPU is touched
  stabtree check train.yaml zero3.json --merge  one configuration in two files
  stabtree check 'configs/*.yaml' -q            a line each
  stabtree check config.yaml --trees rules      with the rules of a team

\b
Exit codes:
  0  judged, nothing at or above --fail-on
  1  something is
  2  a mistake in what was typed, or a file that is no configuration
  3  no rule could be judged by what it says
  4  stabtree itself failed; --debug shows where
"""
COMPARE_EPILOG = """\b
Examples:
  stabtree compare good.csv bad.csv        the last one is the bad one
  stabtree compare 'good/*' --bad bad.csv  several good runs make an envelope
  stabtree compare a.csv b.csv --by time   rows matched by the clock

\b
Exit codes:
  0  they do not part beyond noise
  1  they part
  2  a mistake in what was typed, or a log that can't be read
  3  nothing in common, or too few rows to tell
  4  stabtree itself failed; --debug shows where
"""

SCAN_EPILOG = """\b
Examples:
  stabtree scan runs                        every run below, worst first
  stabtree scan runs --by folder            grouped by folder
  stabtree scan runs --output csv=runs.csv --output html=runs.html
  stabtree scan runs --output jsonl         a line of JSON a run

\b
What did not change since the last scan is not read again.
Exit codes are those of diagnose.
"""

WATCH_EPILOG = """\b
Examples:
  stabtree watch run.jsonl                     until Ctrl-C
  stabtree watch run.jsonl --until-found --stall 30m && next-job
  stabtree watch runs/7 --exec ./alarm --json  a line of JSON an event

\b
Exit codes are those of diagnose, for the log as it is at the end;
1 also for what --until-found waited for, and for a stall.
"""

ANONYMIZE_EPILOG = """\b
Examples:
  stabtree anonymize run.csv > sent.csv  in the log's own format
  stabtree anonymize runs/7 -o sent      a folder, to a new folder

\b
Exit codes:
  0  written
  2  a mistake in what was typed, or a file that can't be read or written
  4  stabtree itself failed; --debug shows where
"""


def write_groups(params: Iterable[Any], context: Any, formatter: Any) -> None:
    """Write arguments, then what a run is read from, how it is judged and what is printed, then all other options."""
    groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (ARGUMENTS, INPUT, JUDGING, OUTPUT, OPTIONS)}
    for param in params:
        record = param.get_help_record(context)
        if record and param.param_type_name == "argument":
            groups[ARGUMENTS].append((_spelled(param), record[1]))
        elif record:
            groups[getattr(param, "rich_help_panel", None) or OPTIONS].append(record)
    for name, records in groups.items():
        if records:
            with formatter.section(name):
                formatter.write_dl(records)


def _spelled(param: Any) -> str:
    """An argument as it is typed; typer adds the type of its function, which says nothing to a user."""
    return str(param.metavar or param.name).upper() + ("..." if param.nargs == -1 else "")
