"""A report for a pull request or an issue, and a post-mortem: what it takes to act, the rest folded.

Text from outside stays what it is, whatever it holds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from stabtree.common.text import clean, inert
from stabtree.report.model import Report
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import BADGES, asset
from stabtree.report.sections import BULLET, COURSE, Item, other_entry, sections, to_do
from stabtree.report.words import accepted_notes, logged_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.result import Diagnosis

LONGEST = 1000
GAP = "&#8203;"  # of no width: what would call a person or an issue by name is two words then, and looks the same
_SPECIAL = re.compile(r"[\\`*\[\]<>~&$#]|(?<![^\W_])_+|_+(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
_PIPE = "&#124;"  # a backslash before it means one thing in a table and another outside
# What forges make links or pictures of when the page is already text, so that no backslash helps.
_CALLS = re.compile(r"([@#])(?=\w)|(:)(?=[\w+-]*[a-z_][\w+-]*:|100:|1234:)", re.IGNORECASE)
_AT_START = re.compile(r"^(\d+)(?=[.)])|^(?=[-+=/])")


def escape(text: object) -> str:
    r"""Return a text in one line that Markdown shows as it is: no markup, HTML, link, mention or end of a table cell.

    >>> escape("@ann: see <b>grad_norm</b> | *2*")
    '@&#8203;ann: see \\<b\\>grad_norm\\</b\\> &#124; \\*2\\*'
    """
    plain = clean(text, LONGEST)
    marked = _CALLS.sub(lambda found: f"{found[0]}\0", plain)
    marked = _SPECIAL.sub(lambda found: "".join(f"\\{char}" for char in found[0]), marked)
    marked = _AT_START.sub(lambda found: f"{found[0]}\\", marked)
    return marked.replace("|", _PIPE).replace("\0", GAP)


def code(command: str) -> str:
    """Return a command as a block to copy."""
    text = inert(clean(command, LONGEST))
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; the cells are Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def folded(head: str, inner: str) -> str:
    """Return a part that opens with a click; its head is our own plain words."""
    return f"<details><summary>{head}</summary>\n\n{inner}\n\n</details>"


def listed(items: Iterable[str], mark: str = "-") -> str:
    """Return a list, an item a line; `1.` as its mark numbers them."""
    if mark == "1.":
        return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
    return "\n".join(f"{mark} {item}" for item in items)


def paged(*parts: str) -> str:
    """Return the parts that are not empty, a blank line between them."""
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the report as GitHub and GitLab show it."""
    report = Report(diagnosis, options.exit_code)
    parts = sections(report)
    page = report.finding.leaf.page if report.finding else ""
    quoted = ""
    if shown := report.quoted:
        quoted = table([*map(escape, shown.heads)], ((*line.texts[:-1], escape(line.note)) for line in shown.lines))
    return paged(
        f"### {BADGES[report.badge].word}: {escape(report.title)}",
        escape(report.facts),
        *_beside_the_title(report),
        quoted,
        *(f"**{part.title}**\n\n{_entries(part.entries, part.mark)}" for part in parts if not part.background),
        *(folded(part.title, _entries(part.entries, part.mark)) for part in parts if part.background),
        " · ".join([f"**{escape(report.closing)}**", *([f"[about this failure]({page})"] if page else [])]),
    )


def _beside_the_title(report: Report) -> list[str]:
    """Return what came before the finding, what to be careful about, and what is accepted."""
    return [
        escape(report.earlier),
        f"**Careful:** {escape(report.misread)}" if report.misread else "",
        listed(map(escape, accepted_notes(report.diagnosis))),
    ]


def _entries(entries: Iterable[Item], mark: str = BULLET) -> str:
    """Return the entries of a section as a list, or as paragraphs."""
    shown = map(_entry, entries)
    return listed(shown, mark) if mark else "\n\n".join(shown)


def _entry(entry: Item) -> str:
    before, strong, after = entry.parts()
    text = f"{escape(entry.head)}: " if entry.head else ""
    # What is escaped loses the blanks at its ends, which the strong part needs.
    text += escape(before) + " " * before.endswith(" ")
    if strong:
        text += f"**{escape(strong)}**" + " " * after.startswith(" ") + escape(after)
    return "<br>".join([text, *map(escape, entry.below)])


MARK = "**To fill in:**"


def postmortem(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a post-mortem that is filled in with what the log says; what only people know is left for them."""
    report, run = Report(diagnosis, options.exit_code), diagnosis.run
    topics = defaultdict(str, {topic.title: _entries(topic.entries) for topic in sections(report)})
    rows = [("Run", escape(report.facts)), ("Verdict", f"{BADGES[report.badge].word}: {escape(report.title)}")]
    for finding in filter(None, [report.finding]):
        if finding.onset_step is not None:
            time, at = logged_at(run, finding.onset_step), f"{finding.unit} {finding.onset_step:,}"
            if time:
                at += f", {time:%Y-%m-%d %H:%M:%S} UTC"
            rows.append(("Onset", at))
    rows += [("Author, date", f"{MARK} who wrote this, and when"), ("Status", f"{MARK} open, fixed or closed")]
    files = [f"read from {source.path} ({source.format}, {source.rows:,} rows)" for source in run.sources]
    logs = [Item(f"Log {item.text}: {item.how}") for item in report.open if item.how]
    text = asset("postmortem.md").format(
        title=escape(report.title),
        mark=MARK,
        summary=table(("", ""), rows),
        meaning="\n\n".join(filter(None, [*_beside_the_title(report), escape(report.meaning)])),
        timeline=topics[COURSE],
        evidence=f"{listed(map(escape, files))}\n\n{topics['Path']}",
        causes=topics["Causes"],
        do_now=_entries(to_do(report), "- [ ]"),
        prevention=topics["NaN monitor"],
        follow_ups=_entries([*map(other_entry, report.also), *logs], "- [ ]"),
    )
    return re.sub("\n{3,}", "\n\n", text)
