"""What the exit codes say, apart from 0: every run was judged, and nothing is as bad as `--fail-on`."""

from __future__ import annotations

FOUND, UNUSABLE, NOT_JUDGED, OUR_FAULT = 1, 2, 3, 4
PRECEDENCE = (FOUND, OUR_FAULT, UNUSABLE, NOT_JUDGED)
"""Of the exit codes of several runs, the one that counts first."""
