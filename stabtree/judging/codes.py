"""The exit codes besides 0, which means that every run was judged and none is at or above `--fail-on`."""

from __future__ import annotations

FOUND, UNUSABLE, NOT_JUDGED, OUR_FAULT = 1, 2, 3, 4
PRECEDENCE = (FOUND, OUR_FAULT, UNUSABLE, NOT_JUDGED)
"""The order in which the exit codes of several runs count."""
