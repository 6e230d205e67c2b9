"""All that a watch does with what it reports, besides printing it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.tools.live.watch.actions.hook import Hook
from stabtree.tools.live.watch.actions.keep import Keeper
from stabtree.tools.live.watch.actions.page import LivePage
from stabtree.tools.live.watch.actions.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from stabtree.judging.outcome import Outcome
    from stabtree.tools.live.news import News
    from stabtree.tools.live.watch.actions.serve import PageServer


class Actions:
    """Does what was asked for; what fails is a note, and the watch goes on.

    Args:
        command: run for each change.
        address: what each change is posted to.
        keep: whether the last clean checkpoint is kept.
        name: what the page calls the log while it is not there.
        show: each takes a page when it is written anew.
        server: takes it too, and is closed at the end.

    Raises:
        StabtreeError: where there is no such command, or the address is none.
    """

    def __init__(
        self,
        *,
        command: str | None = None,
        address: str | None = None,
        keep: bool = False,
        name: str = "",
        show: Sequence[Callable[[str], object]] = (),
        server: PageServer | None = None,
    ) -> None:
        self._sent = (Hook(command), Webhook(address))
        self._keeper = Keeper(wanted=keep)
        self._server = server
        if server is not None:
            show = (*show, server.show)
        self._pages = [LivePage(name, one) for one in show]

    def take(
        self, changes: Sequence[tuple[News, str, str]], outcomes: Sequence[Outcome], now: datetime
    ) -> Iterator[str]:
        """Act on what a look brought; yield the notes on what failed.

        Args:
            changes: each with its event as JSON, and what is said of it in a word or two.
            outcomes: what was last found.
            now: the time of the day.
        """
        for news, event, _ in changes:
            yield from chain.from_iterable(one.start(event) for one in self._sent)
            yield from self._keeper.take(news)
        for page in self._pages:
            yield from page.take([(news, said) for news, _, said in changes], outcomes, now)
        yield from chain.from_iterable(one.ended() for one in self._sent)

    def end(self, outcomes: Sequence[Outcome], why: str, now: datetime) -> Iterator[str]:
        """Show the last page; yield the notes on what failed."""
        for page in self._pages:
            yield from page.end(outcomes, why, now)

    def wait(self) -> Iterator[str]:
        """Wait for what still goes on; yield the notes on what failed."""
        yield from chain.from_iterable(one.wait() for one in self._sent)

    def kill(self) -> None:
        """End what still goes on."""
        for one in self._sent:
            one.kill()
        if self._server is not None:
            self._server.close()
