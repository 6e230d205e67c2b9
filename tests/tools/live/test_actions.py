"""What a watch does with a change besides printing it: a webhook, a page, a checkpoint that is kept."""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.restart import Restart
from stabtree.facts.checkpoints import CheckpointSource
from stabtree.judging.judge import Judging
from stabtree.judging.outcome import Outcome
from stabtree.tools.live.event import EventChange
from stabtree.tools.live.watch.actions.keep import Keeper
from stabtree.tools.live.watch.actions.page import LivePage
from stabtree.tools.live.watch.actions.serve import PageServer
from stabtree.tools.live.watch.actions.webhook import MAX_WAITING, Webhook
from tests.cli.command import failed, run
from tests.conftest import make_run
from tests.tools.live.events.findings import SPIKE, changes, found, watched
from tests.tools.live.growing import broken, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tools.live.news import News

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def one_news() -> News:
    """A spike that is reported."""
    announcer = watched()
    assert not changes(announcer, 1001, SPIKE, onset=1000)
    (news,) = announcer.judged(found(1001, SPIKE, onset=1000), final=True)
    return news


def real() -> list[Outcome]:
    """A run that turned NaN, as it is judged."""
    return [Outcome("run", Judging().diagnosed(make_run({"loss": broken(130, 100)})))]


@contextmanager
def server(status: int, headers: dict[str, str] | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers each POST alike, with its address and what it got."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()

        def do_GET(self) -> None:
            got.append("followed")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{one.server_address[1]}/hook", got
        one.shutdown()


def test_each_change_is_posted_in_its_order() -> None:
    """As the JSON that `--exec` gets."""
    with server(204) as (address, got):
        hook = Webhook(address)
        notes = [note for place in range(5) for note in hook.start(json.dumps({"place": place}))]
        assert [*notes, *hook.wait()] == []
    assert [item["place"] for item in got] == [0, 1, 2, 3, 4]


def test_what_fails_is_a_note_without_the_address() -> None:
    """An error, a redirect that is not followed, a server that is not there, a queue that is full."""
    with server(500) as (address, _):
        hook = Webhook(f"{address}?secret")
        assert [*hook.start("{}"), *hook.wait()] == ["--webhook failed: the server answered 500"]
    with server(302, {"Location": "/elsewhere"}) as (address, got):
        hook = Webhook(address)
        assert [*hook.start("{}"), *hook.wait()] == ["--webhook failed: the server answered 302"]
        assert got == [{}]
    hook = Webhook("http://127.0.0.1:1/secret")
    (note,) = [*hook.start("{}"), *hook.wait()]
    assert note.startswith("--webhook failed: ")
    assert "secret" not in note


def test_a_slow_server_never_blocks_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too much is left out, and said."""
    stuck = threading.Event()
    monkeypatch.setattr(Webhook, "_post", lambda *_: stuck.wait(10))
    hook = Webhook("http://127.0.0.1:1/")
    notes = [note for _ in range(MAX_WAITING + 5) for note in hook.start("{}")]
    stuck.set()
    assert 4 <= len(notes) <= 5
    assert {note.partition(":")[0] for note in notes} == {"--webhook is too slow"}


@pytest.mark.parametrize(
    "address",
    [
        *("file:///etc/passwd", "ftp://host/x", "https:///x", "host/x", "http://h:x/", "http://h/a b"),
        *("http://me:secret@h/", "http://h/é"),
    ],
)
def test_an_address_that_is_not_http_is_refused(address: str) -> None:
    """Before anything is waited for, and without printing it."""
    with pytest.raises(StabtreeError) as error:
        Webhook(address)
    assert address not in str(error.value)


def test_the_page_refreshes_itself_until_the_end() -> None:
    """It shows the report and each change; names of a log are text in it, never markup."""
    pages: list[str] = []
    page = LivePage("<i>run</i>", pages.append, clock=lambda: 0.0)
    assert not [*page.take([], [], NOW)]
    news = replace(one_news(), run="<script>alert(1)</script>")
    outcomes = real()
    assert not [*page.take([(news, "")], outcomes, NOW)]
    assert not [*page.take([], outcomes, NOW)]  # nothing new
    assert not [*page.end(outcomes, "stopped", NOW)]
    waiting, live, last = pages
    assert "&lt;i&gt;run" in waiting
    assert "<i>run" not in waiting
    assert 'http-equiv="refresh"' in waiting
    assert 'http-equiv="refresh"' in live
    assert 'http-equiv="refresh"' not in last
    assert "<script>alert" not in live
    assert live.index("</h1>") < live.index('id="watch"') < live.index("The rows")
    assert "opened" in live


def test_a_page_that_cannot_be_written_is_one_note() -> None:
    """The watch goes on, and says it once."""

    def full(_page: str) -> None:
        raise StabtreeError("it can't be written: No space left on device", where="--page a.html")

    page = LivePage("run", full, clock=lambda: 0.0)
    notes = [note for _ in range(3) for note in page.take([(one_news(), "")], real(), NOW)]
    assert notes == ["--page a.html: it can't be written: No space left on device"]


def answer(address: str, path: str | None = None, method: str = "GET", host: str = "") -> tuple[int, str]:
    """The status and the body of an answer."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=5)
    connection.request(method, parts.path if path is None else path, headers={"Host": host} if host else {})
    got = connection.getresponse()
    return got.status, got.read().decode()


def test_only_the_secret_path_of_this_machine_has_the_page() -> None:
    """No listing, no other method, no other name of the host."""
    pages = PageServer(0)
    pages.show("<p>ü</p>")
    try:
        assert pages.address.startswith("http://127.0.0.1:")
        assert answer(pages.address) == (200, "<p>ü</p>")
        assert answer(pages.address, host=f"localhost:{urlsplit(pages.address).port}")[0] == 200
        for path in ("/", "/index.html", urlsplit(pages.address).path[:-2] + "/", "/../etc/passwd", "/%ff/"):
            assert answer(pages.address, path=path)[0] == 404
        assert answer(pages.address, host="evil.example")[0] == 404
        assert answer(pages.address, method="POST")[0] == 501
        with pytest.raises(StabtreeError, match="can't be used"):
            PageServer(urlsplit(pages.address).port or 0)
    finally:
        pages.close()
    assert PageServer(0).address != pages.address


def checkpoint(folder: Path) -> Path:
    """A checkpoint of two files."""
    path = folder / "checkpoint-100"
    (path / "shards").mkdir(parents=True)
    (path / "model.bin").write_text("weights", encoding="utf-8")
    (path / "shards" / "a.bin").write_text("more", encoding="utf-8")
    return path


def with_restart(path: Path) -> News:
    """A finding that says to restart from a checkpoint on disk."""
    news = one_news()
    restart = Restart(100, next(iter(CheckpointSource)), 100, 20, 120, path=str(path))
    return replace(news, finding=replace(news.finding, restart=restart))


def test_a_kept_checkpoint_outlives_the_rotation(tmp_path: Path) -> None:
    """It has a second name for the same files, under which the trainer does not look."""
    path = checkpoint(tmp_path)
    keeper, news = Keeper(wanted=True), with_restart(path)
    (note,) = [*keeper.take(news), *keeper.take(news)]
    kept = tmp_path / "kept-checkpoint-100"
    assert str(kept) in note
    assert (kept / "model.bin").samefile(path / "model.bin")
    assert (kept / "shards" / "a.bin").read_text(encoding="utf-8") == "more"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["checkpoint-100", "kept-checkpoint-100"]
    single = tmp_path / "step=7.ckpt"
    single.write_text("x", encoding="utf-8")
    assert [*Keeper(wanted=True).take(with_restart(single))]
    assert (tmp_path / "kept-step=7.ckpt").samefile(single)


def test_no_checkpoint_is_touched_unasked_or_for_what_is_over(tmp_path: Path) -> None:
    """Without the option, for a withdrawal, or where it is gone, nothing is made."""
    path = checkpoint(tmp_path)
    news = with_restart(path)
    assert not [*Keeper(wanted=False).take(news)]
    assert not [*Keeper(wanted=True).take(replace(news, change=EventChange.WITHDRAWN))]
    (note,) = Keeper(wanted=True).take(with_restart(tmp_path / "gone"))
    assert "could not be kept" in note
    assert [item.name for item in tmp_path.iterdir()] == ["checkpoint-100"]


def test_the_command_writes_the_page_and_posts_the_changes(tmp_path: Path) -> None:
    """`--page`, `--webhook` and `--serve` at once; the log itself is never written over."""
    log, page = tmp_path / "run.csv", tmp_path / "report.html"
    log.write_text("".join(lines("csv", broken(130, 100))), encoding="utf-8")
    with server(200) as (address, got):
        how = ["--page", str(page), "--webhook", address, "--serve", "0", "-q"]
        done = run("watch", str(log), "--until-found", *how)
    assert done.returncode == 1
    assert [item["change"] for item in got] == ["opened"]
    assert "The watch ended" in page.read_text(encoding="utf-8")
    assert "the page is at http://127.0.0.1:" in done.stderr
    assert "is a file of the run itself" in failed("watch", str(log), "--page", str(log))
    assert "must end in .html" in failed("watch", str(tmp_path), "--page", str(tmp_path / "other.csv"))


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop"])
def test_a_page_that_cannot_be_replaced_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    """A pipe would block the watch until somebody reads it."""
    if sys.platform == "win32":
        pytest.skip("there are no named pipes and few links there")
    log, page = tmp_path / "run.csv", tmp_path / "report.html"
    log.write_text("".join(lines("csv", broken(130, 100))), encoding="utf-8")
    if kind == "pipe":
        os.mkfifo(page)
    elif kind == "folder":
        page.mkdir()
    else:
        page.symlink_to(page)
    assert "--page" in failed("watch", str(log), "--until-found", "--page", str(page))


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_kept_checkpoint_has_its_links(tmp_path: Path) -> None:
    """Those to folders, too: it is kept whole."""
    path = checkpoint(tmp_path)
    (tmp_path / "base").mkdir()
    (path / "base").symlink_to("../base")
    assert [*Keeper(wanted=True).take(with_restart(path))]
    assert (tmp_path / "kept-checkpoint-100" / "base").readlink() == Path("../base")
