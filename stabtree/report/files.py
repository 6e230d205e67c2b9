"""Which files below some paths were read as which run, which were not, and why: what `inspect` says of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.loaders.paths.load import Contents, Ignored
    from stabtree.run import Run

SHOWN = 12  # files of a kind on a screen; JSON lists all


def files_text(found: Contents, *, width: int = 100, color: bool = False) -> str:
    """Return the lists for a terminal: runs where there are several, what was not read, what holds no metrics."""
    page = Page(width=width, color=color)
    runs = list(_runs(found))
    if len(runs) > 1:
        texts = [f"{clean(name)}: {_size(run)}" for name, run in runs]
        _list(page, f"{len(runs)} runs; name one to see how it is read", texts)
    unread = [f"{one['path']} {one['reason']}" for one in _unread(found)]
    _list(page, "Not read", unread)
    _list(page, "Hold no metrics", [f"{clean(one.path)}: {one.reason}" for one in found.ignored])
    return page.text() if found.ignored or unread or len(runs) > 1 else ""


def files_dict(found: Contents) -> dict[str, Any]:
    """Return the same as plain values."""
    return {
        "unread": _unread(found),
        "ignored": [_ignored(one) for one in found.ignored],
    }


def _runs(found: Contents) -> Iterator[tuple[str, Run]]:
    for item in found.loaded:
        if not isinstance(item.run, StabtreeError):
            yield item.name, item.run


def _size(run: Run) -> str:
    formats = ", ".join(dict.fromkeys(source.format.partition(",")[0] for source in run.sources))
    files = f"{len(run.sources)} files, " if len(run.sources) > 1 else ""
    end = "" if run.last_step is None else f", up to {run.unit} {run.last_step:,}"
    return f"{files}{formats or 'error lines alone'}{end}"


def _unread(found: Contents) -> list[dict[str, str]]:
    errors = [(item, item.run) for item in found.loaded if isinstance(item.run, StabtreeError)]
    return [{"path": clean(item.path), "reason": error.problem, "hint": error.hint} for item, error in errors]


def _ignored(one: Ignored) -> dict[str, str]:
    return {"path": clean(one.path), "reason": one.reason}


def _list(page: Page, title: str, texts: Sequence[str]) -> None:
    if not texts:
        return
    page.heading(title)
    for text in texts[:SHOWN]:
        page.item(("·", "dim"), [(text, "")], indent=1, head_width=2)
    if len(texts) > SHOWN:
        page.line((f"and {len(texts) - SHOWN:,} more; --json lists all", "dim"), indent=3)
