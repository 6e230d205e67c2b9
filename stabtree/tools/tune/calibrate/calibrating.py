"""From healthy runs the thresholds that would not have alarmed: tried by walking, never computed."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.tools.tune.calibrate.faults import NAN
from stabtree.tools.tune.calibrate.knobs import knobs_of, way_to
from stabtree.tools.tune.calibrate.least import away, smallest_change
from stabtree.tools.tune.calibrate.refit import Strengths, strengths_of
from stabtree.tools.tune.calibrate.result import BROKEN, Calibration, Change, Left, typed
from stabtree.tools.tune.calibrate.share import Share
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.loaders import Loaded
    from stabtree.run import Run
    from stabtree.tools.tune.calibrate.faults import Faults
    from stabtree.tools.tune.calibrate.knobs import Tunable
    from stabtree.tools.tune.calibrate.walks import Set, Walks
    from stabtree.tree.model import Leaf

MAX_TRIES = 3  # for one leaf: what one threshold no longer says another may
MAX_OPTIONS = 4  # of which it is looked up what each would miss


def is_never(leaf: Leaf) -> bool:
    """Whether a finding must not be calibrated away: NaN, and a loss that rises to the end, are never healthy."""
    return NAN in leaf.events or (leaf.severity is Severity.CRITICAL and leaf.lasting and "rise" in leaf.events)


@dataclass(slots=True)
class Shift:
    """A threshold on its way: in one direction, as far as each run needs.

    Attributes:
        knob: the threshold.
        up: whether it grows.
        needs: the value nearest to the one in force at which a run is silent, by the run's index.
        leaves: the findings that it is moved for.
        strengths: what its question measured, as far as its answers have degrees.
    """

    knob: Tunable
    up: bool
    needs: dict[int, float] = field(default_factory=dict)
    leaves: dict[str, None] = field(default_factory=dict)
    strengths: Strengths = field(default_factory=Strengths)

    def far(self, value: float) -> float:
        """Return how far a value is from the one in force, in its logarithm, as a part of how far it may go."""
        return abs(math.log(value / self.knob.base)) / math.log(self.knob.factor)

    def extreme(self, without: int | None = None) -> int | None:
        """Return the run that needs the most; None where none needs anything."""
        return max((i for i in self.needs if i != without), key=lambda i: self.far(self.needs[i]), default=None)

    def margin(self, count: int, without: int | None = None) -> float:
        """Return by how much a run is above all others on average, each left out in turn, as `far` measures it.

        Only the one that needs the most is above the others, by its distance to the next.
        """
        distances = sorted((self.far(value) for i, value in self.needs.items() if i != without), reverse=True)
        first, second = [*distances, 0.0, 0.0][:2]
        return (first - second) / max(count, 1)

    def value(self, count: int, without: int | None = None) -> float | None:
        """Return what to set, of `count` runs; None where nothing needs it."""
        index = self.extreme(without)
        if index is None:
            return None
        factor = self.knob.factor ** self.margin(count, without)
        value = self.knob.moved(self.needs[index], factor, up=self.up)
        fitted = self.knob.moved(self.knob.base, 2 ** self.strengths.shift(without), up=self.up)
        return typed(self.knob, away(self.knob, max(value, fitted, key=self.far), up=self.up))


@dataclass(slots=True)
class _Calibrating:
    walks: Walks
    faults: Faults
    runs: list[tuple[str, Run]]
    level: Severity
    moves: dict[str, Shift] = field(default_factory=dict)
    left: dict[str, list[int]] = field(default_factory=dict)

    def settle(self) -> None:
        """Silence one leaf after the other, that of most runs first, until only those are left that must be."""
        tries: Counter[str] = Counter()
        while open_ := self._open():
            leaf = min(open_, key=lambda id_: (-len(open_[id_]), id_))
            tries[leaf] += 1
            if tries[leaf] > MAX_TRIES or not self._silence(leaf, open_[leaf]):
                self.left[leaf] = []
        for key in [*self.moves]:
            self._drop(key)
        for index in range(len(self.runs)):
            for leaf in self.alarms(index, self.set()):
                self.left.setdefault(leaf, []).append(index)
        self.left = {leaf: places for leaf, places in self.left.items() if places}

    def set(self, without: int | None = None) -> Set:
        """Return what is set, or would be without one of the runs."""
        count = len(self.runs) - (without is not None)
        values = {key: move.value(count, without) for key, move in self.moves.items()}
        return {key: value for key, value in values.items() if value is not None}

    def alarms(self, index: int, set_: Set) -> dict[str, Leaf]:
        """Return what of a run is an alarm."""
        return self.walks.reached(self.runs[index][1], set_).alarms(self.level)

    def _open(self) -> dict[str, list[int]]:
        """Return the leaves that are still to be silenced, each with its runs."""
        found: dict[str, list[int]] = {}
        for index in range(len(self.runs)):
            for id_, leaf in self.alarms(index, self.set()).items():
                if id_ not in self.left and not is_never(leaf):
                    found.setdefault(id_, []).append(index)
        return found

    def _silence(self, leaf: str, places: list[int]) -> bool:
        """Move the threshold that misses the fewest faults, of several such the one that has to move least."""
        options = sorted(self._options(leaf, places), key=lambda move: (self._reach(move), move.knob.key, move.up))
        options = options[:MAX_OPTIONS]
        missed = [self.faults.missed(self._with(move)) for move in options]
        # A NaN that would no longer be reported is too high a price, whatever it buys.
        costs = [
            (len(names), at)
            for at, (move, names) in enumerate(zip(options, missed, strict=True))
            if not self.faults.nan(names) and not self._hides(self._with(move))
        ]
        if not costs:
            return False
        chosen = options[min(costs)[1]]
        key = chosen.knob.key
        known = self.moves.setdefault(key, chosen)
        known.strengths = strengths_of(self.walks, self.runs, self.faults, known.knob.question)
        for index, value in chosen.needs.items():
            known.needs[index] = max(value, known.needs.get(index, value), key=known.far)
        known.leaves[leaf] = None
        return True

    def _hides(self, set_: Set) -> bool:
        """Return whether something that no threshold may hide would no longer be reported of one of the runs."""
        for index in range(len(self.runs)):
            never = {id_ for id_, leaf in self.alarms(index, {}).items() if is_never(leaf)}
            if never and never - self.alarms(index, set_).keys():
                return True
        return False

    def _options(self, leaf: str, places: list[int]) -> list[Shift]:
        """Return the thresholds that, moved alone and as little as needed, silence a leaf in all runs that have it."""
        shared: dict[str, Tunable] | None = None
        for index in places:
            own = knobs_of(self.walks.found(self.runs[index][1], self.set()), leaf)
            if shared is None:
                shared = own
            else:
                shared = {key: knob for key, knob in shared.items() if key in own}
        found = []
        for key, knob in (shared or {}).items():
            directions: tuple[bool, ...] = (True, False)
            if key in self.moves:  # what was moved goes on in its direction
                knob, directions = self.moves[key].knob, (self.moves[key].up,)  # noqa: PLW2901
            for up in directions:
                needs = self._needs(knob, leaf, places, up=up)
                if needs:
                    found.append(Shift(knob, up, needs))
        return found

    def _needs(self, knob: Tunable, leaf: str, places: list[int], *, up: bool) -> dict[int, float]:
        """Return how far each run needs a threshold to move; empty where one of them has the leaf all the same."""
        found: dict[int, float] = {}
        before = {key: value for key, value in self.set().items() if key != knob.key}
        for index in places:
            now = self.alarms(index, self.set()).keys() - {leaf}

            def silent(value: float, index: int = index, now: set[str] = now) -> bool:
                return self.alarms(index, {**before, knob.key: typed(knob, value)}).keys() <= now

            value = smallest_change(knob, silent, up=up)
            if value is None:
                return {}
            found[index] = value
        return found

    def _reach(self, move: Shift) -> float:
        return max(move.far(value) for value in move.needs.values())

    def _with(self, move: Shift) -> Set:
        set_, value = self.set(), move.value(len(self.runs))
        if value is not None:
            set_[move.knob.key] = value
        return set_

    def _drop(self, key: str) -> None:
        """Take a move back that another one has made needless."""
        before = [self.alarms(index, self.set()).keys() for index in range(len(self.runs))]
        move = self.moves.pop(key)
        if any(self.alarms(index, self.set()).keys() - alarms for index, alarms in enumerate(before)):
            self.moves[key] = move

    def expected(self) -> Share:
        """Return how many runs alarm with what the others alone would have set."""
        count = 0
        for index in range(len(self.runs)):
            without = None
            if any(index in move.needs for move in self.moves.values()):
                without = index
            count += bool(self.alarms(index, self.set(without)))
        return Share(count, len(self.runs))

    def change(self, move: Shift) -> Change:
        """Return a move as it is shown."""
        value, index = move.value(len(self.runs)), move.extreme()
        assert value is not None and index is not None  # noqa: S101, PT018 - a move is made for a run
        plain = self.walks.plain(self.runs[index][1])
        visits = chain.from_iterable(way_to(plain, leaf) for leaf in move.leaves)
        seen = next((v.answer.evidence[0].text for v in visits if v.question.id == move.knob.question), "")
        needed = typed(move.knob, move.needs[index])
        runs = tuple(self.runs[i][0] for i in sorted(move.needs))
        margin = 0.0
        if needed:
            margin = abs(value / needed - 1)
        return Change(move.knob, value, needed, margin, self.runs[index][0], seen, runs, tuple(move.leaves))

    def result(self, excluded: Sequence[tuple[str, str]]) -> Calibration:
        """Return all of it."""
        alarmed = sum(bool(self.alarms(index, {})) for index in range(len(self.runs)))
        set_ = self.set()
        left = []
        for leaf, places in self.left.items():
            never = is_never(self.alarms(places[0], set_)[leaf])
            missed: tuple[str, ...] = ()
            if not never:
                before = self.faults.missed(set_)
                missed = tuple(name for name in self.faults.missed(set_, (leaf,)) if name not in before)
            left.append(Left(leaf, tuple(self.runs[i][0] for i in places), never, missed))
        return Calibration(
            runs=tuple(name for name, _ in self.runs),
            excluded=tuple(excluded),
            alarmed=Share(alarmed, len(self.runs)),
            expected=self.expected(),
            changes=tuple(self.change(move) for move in self.moves.values()),
            left=tuple(left),
            faults=len(self.faults.runs),
            caught=len(self.faults.caught()),
            missed=self.faults.misses(set_),
        )


def calibrate(
    given: Sequence[Loaded], walks: Walks, faults: Faults, *, level: Severity = Severity.WARNING, trust: bool = False
) -> Calibration:
    """Return thresholds with which none of the given runs alarms, as far as numbers decide that.

    Args:
        given: runs that are said to be healthy.
        walks: how runs are judged.
        faults: labelled faults, to say what is given up.
        level: from which severity on a finding is an alarm.
        trust: whether a person vouches for runs that look broken.
    """
    runs: list[tuple[str, Run]] = []
    excluded: list[tuple[str, str]] = []
    for item in given:
        reason = _unfit(item, walks, trust=trust)
        if reason or isinstance(item.run, StabtreeError):
            excluded.append((item.name, reason))
        else:
            runs.append((item.name, item.run))
    excluded += [(name, f"a labelled fault that can't be read: {problem}") for name, problem in faults.unread]
    calibrating = _Calibrating(walks, faults, runs, level)
    calibrating.settle()
    return calibrating.result(excluded)


def _unfit(item: Loaded, walks: Walks, *, trust: bool) -> str:
    """Return why a run can't stand for a healthy one; empty where it can."""
    if isinstance(item.run, StabtreeError):
        return f"can't be read: {item.run.problem}"
    plain = walks.plain(item.run)
    critical = [finding.leaf for finding in plain.findings if finding.leaf.severity is Severity.CRITICAL]
    if critical and not trust:
        return f"{BROKEN}: {critical[0].id}"
    if plain.verdict != UNKNOWN:
        return ""
    return f"can't be judged: {plain.misread or 'too little was logged'}"
