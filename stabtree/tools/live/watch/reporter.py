"""What a watch prints: new findings on standard output, notes and the status line on standard error."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from stabtree.cli.output.deliver import on_the_terminal
from stabtree.cli.shell.printing import emit, notify
from stabtree.common.errors import StabtreeError
from stabtree.report.options import DEFAULT_OPTIONS
from stabtree.report.outputs import HEADLINE, JSONL
from stabtree.tools.live.session import End
from stabtree.tools.live.watch.events import end_event, finding_event, note_event
from stabtree.tools.live.watch.messages import change_words, closing, duration, finding_line, finding_text, status
from stabtree.tools.live.watch.status import StatusLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stabtree.judging.outcome import Outcome
    from stabtree.report.options import RenderOptions
    from stabtree.tools.live.news import News
    from stabtree.tools.live.session import Round, Session
    from stabtree.tools.live.watch.actions.together import Actions

_WHY = {
    End.ASKED: "stopped",
    End.FOUND: "found what --until-found waits for",
    End.STALLED: "stalled: nothing was written for {}, and the log does not say that the run is complete",
    End.COMPLETE: "the run is complete, and nothing was written for {}",
}


class WatchReporter:
    """Prints what each look brings; while it lasts, commands that were started may still run.

    Args:
        form: the output: a screen, a line a finding, or a line of JSON an event.
        name: what to call the log while it is not there.
        actions: what else is done with each change.
        now: the time of the day.
    """

    def __init__(self, form: str, name: str, actions: Actions, now: Callable[[], datetime] | None = None) -> None:
        self._form, self._name, self._actions = form, name, actions
        self._now = now or (lambda: datetime.now().astimezone())
        self._status = StatusLine(wanted=form not in (JSONL, HEADLINE))
        self._waits = False

    def __enter__(self) -> WatchReporter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._status.clear()
        try:
            if kind is None:
                self._notes(self._actions.wait())
            elif kind is not KeyboardInterrupt:
                list(self._actions.wait())  # an alarm is not lost with the output that its finding was printed to
        finally:  # a second Ctrl-C while waiting
            self._actions.kill()

    def report(self, round_: Round) -> None:
        """Print new findings, the notes, and how the run goes."""
        if not (round_.status.there or self._waits or self._status.wanted):
            self._waits = True
            self._notes([f"waiting for {self._name}: nothing is there yet"])
        self._notes(round_.notes)
        time = self._now()
        events = [(news, finding_event(news, time), change_words(news)) for news in round_.news]
        # The actions first: a full disk may end the watch where it prints.
        notes = list(self._actions.take(events, round_.status.outcomes, time))
        for news, event, _ in events:
            self._print(news, event, time, named=len(round_.status.outcomes) > 1)
        self._notes(notes)
        self._status.show(lambda look: status(round_.status, self._name, look))

    def end(self, session: Session, outcomes: Sequence[Outcome], look: RenderOptions) -> None:
        """Print the last verdicts, and why the watch ended.

        Raises:
            StabtreeError: the error of a log alone that can't be read, where a person reads it.
        """
        why = _WHY[session.end].format(duration(session.silence))
        self._notes(self._actions.end(outcomes, why, self._now()))
        if self._form == JSONL:
            emit(end_event(outcomes, why, look.exit_code or 0, self._now()))
            return
        if len(outcomes) == 1 and isinstance(outcomes[0].found, StabtreeError) and session.end is not End.STALLED:
            raise outcomes[0].found
        if self._form == HEADLINE and session.end is End.STALLED:
            notify(f"note: {why}")  # which the exit code is of, not the verdict
        if self._form == HEADLINE:
            why = ""
        emit(closing(outcomes, why, on_the_terminal(look)))

    def _print(self, news: News, event: str, time: datetime, *, named: bool) -> None:
        self._status.clear()
        if self._form == JSONL:
            emit(event)
        elif self._form == HEADLINE:
            emit(finding_line(news, time, on_the_terminal(DEFAULT_OPTIONS)))
        else:
            emit(finding_text(news, time, on_the_terminal(DEFAULT_OPTIONS), named=named))

    def _notes(self, notes: Iterable[str]) -> None:
        for text in notes:
            self._status.clear()
            if self._form == JSONL:
                emit(note_event(text, self._now()))
            else:
                notify(f"note: {text}")
