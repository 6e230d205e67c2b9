"""From healthy runs the thresholds that would not have alarmed: tried by walking, never computed."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.judging.calibrate.faults import NAN
from stabtree.judging.calibrate.knobs import knobs_of, way_to
from stabtree.judging.calibrate.least import away, least
from stabtree.judging.calibrate.result import BROKEN, Calibration, Change, Left, typed
from stabtree.judging.calibrate.share import Share
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.judging.calibrate.faults import Faults
    from stabtree.judging.calibrate.knobs import Tunable
    from stabtree.judging.calibrate.walks import Set, Walks
    from stabtree.loaders import Loaded
    from stabtree.run import Run
    from stabtree.tree.model import Leaf

MOST_TRIES = 3  # for one leaf: what one threshold no longer says another may
MOST_OPTIONS = 4  # of which it is looked up what each would miss


def is_never(leaf: Leaf) -> bool:
    """Whether a finding must not be calibrated away: NaN, and a loss that rises to the end, are never healthy."""
    return NAN in leaf.events or (leaf.severity is Severity.CRITICAL and leaf.lasting and "rise" in leaf.events)


@dataclass(slots=True)
class Shift:
    """A threshold on its way: in one direction, as far as each run needs.

    Attributes:
        knob: the threshold.
        up: whether it grows.
        needs: the value nearest to the one in force at which a run is silent, by the run's place.
        leaves: the findings that it is moved for.
    """

    knob: Tunable
    up: bool
    needs: dict[int, float] = field(default_factory=dict)
    leaves: dict[str, None] = field(default_factory=dict)

    def far(self, value: float) -> float:
        """How far a value is from the one in force, in its logarithm, as a part of how far it may go."""
        return abs(math.log(value / self.knob.base)) / math.log(self.knob.factor)

    def extreme(self, without: int | None = None) -> int | None:
        """The run that needs the most; None where none needs anything."""
        return max((i for i in self.needs if i != without), key=lambda i: self.far(self.needs[i]), default=None)

    def margin(self, count: int, without: int | None = None) -> float:
        """By how much a run stands above all others on average, each left out in turn, as `far` measures it.

        Only the one that needs the most stands above the others, by its distance to the next.
        """
        distances = sorted((self.far(value) for i, value in self.needs.items() if i != without), reverse=True)
        first, second = [*distances, 0.0, 0.0][:2]
        return (first - second) / max(count, 1)

    def value(self, count: int, without: int | None = None) -> float | None:
        """What to set, of `count` runs; None where nothing needs it."""
        place = self.extreme(without)
        if place is None:
            return None
        times = self.knob.factor ** self.margin(count, without)
        beyond = self.needs[place] * times if self.up else self.needs[place] / times
        bounded = min(beyond, self.knob.most) if self.up else max(beyond, self.knob.least)
        return typed(self.knob, away(self.knob, bounded, up=self.up))


@dataclass(slots=True)
class _Calibrating:
    walks: Walks
    faults: Faults
    runs: list[tuple[str, Run]]
    level: Severity
    moves: dict[str, Shift] = field(default_factory=dict)
    left: dict[str, list[int]] = field(default_factory=dict)

    def settle(self) -> None:
        """Silence one leaf after the other, that of most runs first, until only those are told that must be."""
        tries: Counter[str] = Counter()
        while open_ := self._open():
            leaf = min(open_, key=lambda id_: (-len(open_[id_]), id_))
            tries[leaf] += 1
            if tries[leaf] > MOST_TRIES or not self._silence(leaf, open_[leaf]):
                self.left[leaf] = []
        for key in [*self.moves]:
            self._drop(key)
        for place in range(len(self.runs)):
            for leaf in self.alarms(place, self.set()):
                self.left.setdefault(leaf, []).append(place)
        self.left = {leaf: places for leaf, places in self.left.items() if places}

    def set(self, without: int | None = None) -> Set:
        """What is set, or would be without one of the runs."""
        count = len(self.runs) - (without is not None)
        values = {key: move.value(count, without) for key, move in self.moves.items()}
        return {key: value for key, value in values.items() if value is not None}

    def alarms(self, place: int, set_: Set) -> dict[str, Leaf]:
        """What of a run is an alarm."""
        return self.walks.told(self.runs[place][1], set_).alarms(self.level)

    def _open(self) -> dict[str, list[int]]:
        """The leaves that are still to be silenced, each with its runs."""
        found: dict[str, list[int]] = {}
        for place in range(len(self.runs)):
            for id_, leaf in self.alarms(place, self.set()).items():
                if id_ not in self.left and not is_never(leaf):
                    found.setdefault(id_, []).append(place)
        return found

    def _silence(self, leaf: str, places: list[int]) -> bool:
        """Move the threshold that misses the fewest faults, of several such the one that has to move least."""
        options = sorted(self._options(leaf, places), key=lambda move: (self._reach(move), move.knob.key, move.up))
        options = options[:MOST_OPTIONS]
        missed = [self.faults.missed(self._with(move)) for move in options]
        # A NaN that would no longer be told is too high a price, whatever it buys.
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
        for place, value in chosen.needs.items():
            known.needs[place] = max(value, known.needs.get(place, value), key=known.far)
        known.leaves[leaf] = None
        return True

    def _hides(self, set_: Set) -> bool:
        """Whether something that no threshold may hide would no longer be told of one of the runs."""
        for place in range(len(self.runs)):
            never = {id_ for id_, leaf in self.alarms(place, {}).items() if is_never(leaf)}
            if never and never - self.alarms(place, set_).keys():
                return True
        return False

    def _options(self, leaf: str, places: list[int]) -> list[Shift]:
        """The thresholds that silence a leaf of all runs that are told it, each by itself and at its least."""
        shared: dict[str, Tunable] | None = None
        for place in places:
            own = knobs_of(self.walks.found(self.runs[place][1], self.set()), leaf)
            shared = own if shared is None else {key: knob for key, knob in shared.items() if key in own}
        ways: list[tuple[Tunable, bool]] = []
        for key, knob in (shared or {}).items():
            moved = self.moves.get(key)  # what was moved goes on in its direction
            ways += [(moved.knob, moved.up)] if moved else [(knob, True), (knob, False)]
        return [Shift(knob, up, needs) for knob, up in ways if (needs := self._needs(knob, leaf, places, up=up))]

    def _needs(self, knob: Tunable, leaf: str, places: list[int], *, up: bool) -> dict[int, float]:
        """How far each run needs a threshold to move; empty where one of them is told the leaf all the same."""
        found: dict[int, float] = {}
        before = {key: value for key, value in self.set().items() if key != knob.key}
        for place in places:
            now = self.alarms(place, self.set()).keys() - {leaf}

            def silent(value: float, place: int = place, now: set[str] = now) -> bool:
                told = self.alarms(place, {**before, knob.key: typed(knob, value)})
                return told.keys() <= now

            value = least(knob, silent, up=up)
            if value is None:
                return {}
            found[place] = value
        return found

    def _reach(self, move: Shift) -> float:
        return max(move.far(value) for value in move.needs.values())

    def _with(self, move: Shift) -> Set:
        value = move.value(len(self.runs))
        return {**self.set(), **({move.knob.key: value} if value is not None else {})}

    def _drop(self, key: str) -> None:
        """Take a move back that another one has made needless."""
        told = [self.alarms(place, self.set()).keys() for place in range(len(self.runs))]
        move = self.moves.pop(key)
        if any(self.alarms(place, self.set()).keys() - now for place, now in enumerate(told)):
            self.moves[key] = move

    def expected(self) -> Share:
        """How many runs alarm with what the others alone would have set."""
        count = 0
        for place in range(len(self.runs)):
            matters = any(place in move.needs for move in self.moves.values())
            count += bool(self.alarms(place, self.set(place if matters else None)))
        return Share(count, len(self.runs))

    def change(self, move: Shift) -> Change:
        """A move as it is told."""
        value, place = move.value(len(self.runs)), move.extreme()
        assert value is not None and place is not None  # noqa: S101, PT018 - a move is made for a run
        plain = self.walks.plain(self.runs[place][1])
        visits = [visit for leaf in move.leaves for visit in way_to(plain, leaf)]
        seen = next((v.answer.evidence[0].text for v in visits if v.question.id == move.knob.question), "")
        needed = typed(move.knob, move.needs[place])
        runs = tuple(self.runs[i][0] for i in sorted(move.needs))
        margin = abs(value / needed - 1) if needed else 0.0
        return Change(move.knob, value, needed, margin, self.runs[place][0], seen, runs, tuple(move.leaves))

    def result(self, excluded: Sequence[tuple[str, str]]) -> Calibration:
        """All of it."""
        alarmed = sum(bool(self.alarms(place, {})) for place in range(len(self.runs)))
        set_ = self.set()
        left = []
        for leaf, places in self.left.items():
            known = self.alarms(places[0], set_)[leaf]
            missed = () if is_never(known) else self.faults.missed(set_, (leaf,))
            new = tuple(name for name in missed if name not in self.faults.missed(set_))
            left.append(Left(leaf, tuple(self.runs[i][0] for i in places), is_never(known), new))
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
    """Thresholds with which none of the given runs alarms, as far as numbers decide that.

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
    """Why a run can't stand for a healthy one; empty where it can."""
    if isinstance(item.run, StabtreeError):
        return f"can't be read: {item.run.problem}"
    plain = walks.plain(item.run)
    critical = [finding.leaf for finding in plain.findings if finding.leaf.severity is Severity.CRITICAL]
    if critical and not trust:
        return f"{BROKEN}: {critical[0].id}"
    if plain.verdict != UNKNOWN:
        return ""
    return f"can't be judged: {plain.misread or 'too little was logged'}"
