"""What else the core can be used for. Each tool is a package here; the tables below are all the core knows about it.

An address is `module:name`; it is imported when it is used.
"""

from __future__ import annotations

COMMANDS = {
    "watch": ("stabtree.tools.live.command:watch", "Follow a growing log."),
    "check": ("stabtree.tools.check.command:check", "Check a configuration before its run."),
    "compare": ("stabtree.tools.compare.command:compare", "Show where a run departs from healthy ones."),
    "calibrate": ("stabtree.tools.calibrate.command:calibrate", "Print the limits that your healthy runs call for."),
    "anonymize": ("stabtree.tools.anonymize.command:anonymize", "Anonymize a log for sharing."),
    "baseline": (
        "stabtree.tools.ci.command:baseline",
        "Accept what is found now, so that only new findings fail.",
    ),
}
"""Commands, by name: the address of the function, and the line in the list of commands."""

TREE_COMMANDS = {"test": "stabtree.tools.cases:test"}
"""Commands of `stabtree tree`."""

FUNCTIONS = {
    "read_baseline": "stabtree.tools.ci.baseline:read_baseline",
    "record_of": "stabtree.tools.fleet.record:record_of",
    "tell": "stabtree.tools.ci.services:tell",
    "summary": "stabtree.tools.ci.services:summary",
    "judge_many": "stabtree.tools.fleet.command:judge_many",
    "fetched_runs": "stabtree.tools.fleet.remote:fetched_runs",
    "watch_contract": "stabtree.tools.live.messages:event_schemas",
}
"""Functions that the core calls where they are there."""

MEASURES = {
    "tools.check.plans": (
        "setting_outside setting_exceeds setting_misspelled rate_unusual "
        "starts_at_peak warms_up_beyond warms_up_briefly outlasts_schedule not_clipped averages_too_slowly "
        "epsilon_vanishes batch_differs groups_split eval_never saves_never saves_rarely keeps_too_few "
        "best_mismatched logs_too_little logs_too_rarely"
    ),
}
"""Measures, by the module that has them: questions that `trees/preflight.yaml` asks."""

_FLEET = "stabtree.tools.fleet"
_CHECK = "stabtree.tools.check.report"
_SERVICES = {name: f"stabtree.tools.ci.services:{name}" for name in ("github", "junit", "sarif")}

OUTPUTS = {
    "run": {
        "jsonl": f"{_FLEET}.outputs:one_jsonl",
        "csv": f"{_FLEET}.outputs:one_csv",
        **_SERVICES,
    },
    "runs": {
        "screen": f"{_FLEET}.table:screen",
        "headline": f"{_FLEET}.outputs:headlines",
        "json": f"{_FLEET}.outputs:to_json",
        "jsonl": f"{_FLEET}.outputs:jsonl",
        "csv": f"{_FLEET}.outputs:csv_lines",
        "markdown": f"{_FLEET}.outputs:markdown",
        "html": f"{_FLEET}.page:page",
        **_SERVICES,
    },
    "comparison": {
        "screen": "stabtree.tools.compare.outputs:screen",
        "headline": "stabtree.tools.compare.outputs:headline",
        "json": "stabtree.tools.compare.outputs:to_json",
        "markdown": "stabtree.tools.compare.outputs:markdown",
        "html": "stabtree.tools.compare.outputs:page",
    },
    "calibration": {
        "screen": "stabtree.tools.calibrate.command:screen",
        "toml": "stabtree.tools.calibrate.command:toml",
        "json": "stabtree.tools.calibrate.command:data",
    },
    "check": {
        **{name: f"{_CHECK}:{name}" for name in ("screen", "markdown", "headline", "json", "jsonl")},
        **_SERVICES,
    },
}
"""Outputs: of what kind of result, by the name of `--output`, the address of the function that writes it."""
