"""`--page FILE` and `--serve PORT`: the report of a watched run as one page that refreshes itself."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.result import Diagnosis
from stabtree.report.options import DEFAULT_OPTIONS
from stabtree.report.outputs import HTML, RUN, RUNS, output
from stabtree.report.tags import Markup, tag
from stabtree.report.verdicts import BADGES
from stabtree.report.words import step_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from stabtree.judging.outcome import Outcome
    from stabtree.tools.live.news import News

REFRESH_SECONDS = 15
"""Between two looks of a browser, and between two pages where nothing is reported."""
SHARE = 0.05
"""Of the time that writing pages may take where nothing is reported."""
MAX_SHOWN = 200
EMPTY = Markup(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>stabtree watch</title></head><body>'
)
CLOSING = Markup("</body></html>\n")


class LivePage:
    """The page of a watch, written anew at each change and now and then.

    Args:
        name: what to call the log while it is not there.
        show: takes each new page.
        clock: seconds that do not go back.
    """

    def __init__(self, name: str, show: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._show, self._clock = name, show, clock
        self._changes: deque[Markup] = deque(maxlen=MAX_SHOWN)
        self._outcomes: Sequence[Outcome] | None = None
        self._next = 0.0
        self._problem = ""

    def take(self, news: Sequence[tuple[News, str]], outcomes: Sequence[Outcome], now: datetime) -> Iterator[str]:
        """Take in what a look brought, and show a new page where it is time for one; the note where that fails.

        Args:
            news: each change, with what is said of it in a word or two.
            outcomes: what was last found.
            now: the time of the day.
        """
        for item, line in news:
            self._changes.appendleft(_item(item, line, now))
        began = self._clock()
        if news or self._outcomes is None or (outcomes is not self._outcomes and began >= self._next):
            self._outcomes = outcomes
            yield from self._shown(outcomes, f"Goes on; this page was written at {now:%Y-%m-%d %H:%M:%S}.", live=True)
            ended = self._clock()
            self._next = ended + max(REFRESH_SECONDS, (ended - began) / SHARE)

    def end(self, outcomes: Sequence[Outcome], why: str, now: datetime) -> Iterator[str]:
        """Show the last page, which is not refreshed any more."""
        yield from self._shown(outcomes, f"The watch ended at {now:%Y-%m-%d %H:%M:%S}: {why}.", live=False)

    def _shown(self, outcomes: Sequence[Outcome], state: str, *, live: bool) -> Iterator[str]:
        """Show a page; the note where that fails, once for each reason."""
        problem = ""
        try:
            self._show(self._page(outcomes, state, live=live))
        except StabtreeError as error:
            problem = f"{error.where}: {error.problem}"
        if problem and problem != self._problem:
            yield problem
        self._problem = problem

    def _page(self, outcomes: Sequence[Outcome], state: str, *, live: bool) -> str:
        page = self._report(outcomes)
        if live:
            refresh = f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">'
            page = page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">{refresh}', 1)
        main, first, rest = page.partition("<section")  # behind the verdict
        if not first:
            main, first, rest = page.partition("</main>")
        return f"{main}{self._banner(state)}{first}{rest}"

    def _banner(self, state: str) -> Markup:
        changes = tag("ul", *self._changes) if self._changes else tag("p", "Nothing was reported so far.")
        return tag("section", tag("h2", "Watch"), tag("p", state), changes, id="watch")

    def _report(self, outcomes: Sequence[Outcome]) -> str:
        if not outcomes:
            waiting = tag("main", tag("p", f"Waiting for {self._name}: nothing was judged yet."), id="report")
            return f"{EMPTY}{waiting}{CLOSING}"
        if len(outcomes) == 1 and isinstance(outcomes[0].found, Diagnosis):
            return str(output(RUN, HTML)(outcomes[0].found, DEFAULT_OPTIONS))
        return str(output(RUNS, HTML)(outcomes, DEFAULT_OPTIONS))


def _item(news: News, said: str, now: datetime) -> Markup:
    leaf = news.finding.leaf
    what = f"{step_prefix(news.finding)}{leaf.title} ({leaf.id})"
    return tag(
        "li",
        tag("time", f"{now:%H:%M:%S}", datetime=now.isoformat(timespec="seconds")),
        f" {news.run}: ",
        tag("strong", f"{said or str(news.change)}"),
        f" {BADGES[leaf.severity].word} {what}",
    )
