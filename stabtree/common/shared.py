"""The limits that many questions share: one number for one idea.

A keyword parameter of a measure takes its default from here wherever no real run needs another one, and a tree then
states nothing. A number that a document gives, or that was fitted, stands in the trees.
"""

from __future__ import annotations

ROWS_SHORT = 5
"""Rows that show a level: their median survives two that are off."""
ROWS_LONG = 20
"""Rows that show a lasting state."""
SHARE_SOME = 0.05
SHARE_HALF = 0.5
SHARE_MOST = 0.9
"""Shares of the rows, or of a range."""
TREND_Z = 2.33
"""Mann-Kendall score of a trend that one in a hundred series without one shows."""
LEVELS = 20
"""Block medians in which a trend is looked for."""
NOISE_TIMES = 2.0
"""How many times its own scatter a level must move to have moved."""
FACTOR_SMALL = 1.5
FACTOR = 3.0
FACTOR_LARGE = 10.0
FACTOR_HUGE = 100.0
"""How many times its usual size something is."""
