"""What the process beside a loop does: it watches the log as `stabtree watch` does, and reports what it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.outcome import Outcome
from stabtree.run import Run
from stabtree.tools.live.recorder.beside import Frame
from stabtree.tools.live.recorder.in_loop import announcer, judged
from stabtree.tools.live.session import End, Session
from stabtree.tools.live.watch.follow import Follower
from stabtree.tools.live.watch.watching import Watching

if TYPE_CHECKING:
    from stabtree.tools.live.recorder.beside import Setup
    from stabtree.tools.live.recorder.engine import Requests, Sender

LOOK_SECONDS = 0.05
"""Between two looks at a log that nobody asked to look at: one costs a tenth of a millisecond."""


class Judge:
    """Judges the log for a watch; a fault of ours is reported to the loop, and ends nothing."""

    def __init__(self, setup: Setup, sender: Sender) -> None:
        self._setup, self._sender = setup, sender
        self._faults: set[str] = set()

    def outcomes(self) -> list[Outcome]:
        """Return what is found now, or that it can't be judged just now."""
        try:
            return judged(self._setup)
        except Exception as error:  # whatever it is: it is tried again as the log grows
            fault = f"{type(error).__name__}: {clean(error, 200)}"
            if fault not in self._faults:
                self._faults.add(fault)
                text = f"the log could not be judged; it is tried again as it grows: {fault}"
                self._sender.send(Frame(0, fault=text))
            return [Outcome(str(self._setup.file), StabtreeError(fault))]


def follow(setup: Setup, requests: Requests, sender: Sender) -> None:
    """Watch the log until the loop says that it has ended; each watch that ends before by itself is followed by one."""
    reading = setup.judging.settings.reading()
    follower = Follower([str(setup.file)], columns=reading["columns"], step_column=reading["step_column"])
    watching = Watching(Judge(setup, sender).outcomes, announcer=announcer(setup))
    setup.judging.diagnosed(Run("nothing yet", {}))  # what it can't be judged by, no run can
    requests.wait(None)  # the first row: until then the file is what another run left
    end = End.COMPLETE
    while end is not End.ASKED:
        session = Session(follower, watching, every=LOOK_SECONDS, stopped=requests.has_ended, sleep=requests.wait)
        for round_ in session.rounds():
            sender.send(Frame(requests.followed, watching.waits, round_.news))
        end = session.end
    sender.send(Frame(requests.followed, last=True))
