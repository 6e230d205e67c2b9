"""How high rows can be above the windows before them at most: by groups of rows, with a quarter of the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.passes import PART
from stabtree.facts.spikes.moments import window_sums

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.facts.spikes.moments import Windows

GROUP = 8  # no limit: rows
EDGES = 2  # no limit: groups before those that are whole in each window of a group's rows: there these windows begin
SLACK = 1e-12  # no limit: a share of the squares, far above what rounding makes of their sums


class _Groups(NamedTuple):
    """What groups of `GROUP` rows hold, without the center of the windows; all of (groups,).

    Attributes:
        total: the sum of their values.
        off: the sum of the squared distances from their mean, at most.
        rest: that from their straight line, at least.
        top: the highest of the values that are compared with windows.
    """

    total: Floats
    off: Floats
    rest: Floats
    top: Floats


def height_bounds(values: Floats, windows: Windows) -> Floats:
    """Return what no height of a group's rows exceeds, (groups + 1,): infinity for the first and for incomplete ones.

    A window is at least as rough as the groups that are whole in it are, each about a line of its own. Its mean is no
    lower than theirs, taken together with the lowest that its other rows can come to.
    """
    found, whole = _groups(values, windows), (windows.rows - GROUP + 1) // GROUP
    bounds, lead = np.full(len(found.top) + 1, np.inf), whole + EDGES
    if whole > 0:
        for begin in range(0, len(found.top) - lead, PART // 2):
            end = min(begin + PART // 2, len(found.top) - lead)
            part = _Groups(*(each[begin : end + lead] for each in found))
            bounds[begin + lead : end + lead] = _bounds(part, windows, whole, end - begin)
    return bounds


def _bounds(groups: _Groups, windows: Windows, whole: int, size: int) -> Floats:
    """Return the bounds of the last `size` groups; so many before each are `whole` in the windows of all its rows."""
    rows, last = windows.rows, slice(-size, None)
    inner, near, far = slice(EDGES, -1), slice(1, 1 + size), slice(size)
    mean, off = groups.total / GROUP, np.sqrt(GROUP / 4 * groups.off)  # how far some rows of a group sum up, at most
    low = window_sums(groups.total[inner], whole, size)
    low += (rows - GROUP * whole) * np.minimum(np.minimum(mean[last], mean[near]), mean[far])
    low -= off[last] + off[near] + off[far]
    low /= rows
    top = groups.top[last]
    height = top - low + SLACK * (np.abs(top) + np.abs(low) + abs(windows.center))
    rest = window_sums(groups.rest[inner], whole, size) / (rows - 2 if windows.detrend else rows)
    with np.errstate(all="ignore"):
        most: Floats = np.where(rest > 0, height / np.sqrt(rest) * (1 + SLACK), np.inf)
    return np.where(height > 0, most, 0.0)


def _groups(values: Floats, windows: Windows) -> _Groups:
    count = len(values) // GROUP
    found = _Groups(*np.empty((len(_Groups._fields), count)))
    places = np.arange(GROUP) - (GROUP - 1) / 2
    weights = np.stack((np.ones(GROUP), places), axis=1)
    for begin in range(0, count, PART // GROUP):
        part = slice(begin, min(begin + PART // GROUP, count))
        rows = slice(GROUP * part.start, GROUP * part.stop)
        cells = (windows.values[rows] - windows.center).reshape(-1, GROUP)
        found.total[part], tilt = (cells @ weights).T
        squares, level = np.einsum("ij,ij->i", cells, cells), found.total[part] ** 2 / GROUP
        found.off[part] = np.maximum(squares * (1 + SLACK) - level, 0.0)
        found.rest[part] = squares * (1 - SLACK) - level - tilt * tilt / float(places @ places)
        tops = values[rows]
        for _ in range(GROUP.bit_length() - 1):
            tops = np.maximum(tops[::2], tops[1::2])
        found.top[part] = tops - windows.center
    return found
