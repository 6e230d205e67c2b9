"""A diagnosis on one screen: what it takes to act, a healthy run in a few lines. `--full` prints all of it."""

from __future__ import annotations

import math
import textwrap
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.figures import figure as number
from stabtree.common.lazy import np
from stabtree.common.text import clean, first_few, inert, to_ascii
from stabtree.context.find import context_of
from stabtree.diagnosis.account import not_read
from stabtree.loaders.assemble.choice import ENOUGH
from stabtree.report import words
from stabtree.report.advice import add_actions
from stabtree.report.model import Report
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import BADGES, Pane, clipped, counted, fitted, in_lines, new_page, uncut
from stabtree.report.plot import columns_for, figure, strips
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis, Visit
    from stabtree.report.page import Line, Page, Piece
    from stabtree.report.rows import Quoted
    from stabtree.run import Run

LONGEST_LINE = 400
MAX_LINES, NARROW_LINES = 25, 33  # without the plot
MIN_WIDTH = 72  # columns for which the former holds
STRIPS, ROWS_OF_PLOT = 2, 4
MAX_PLOT = 100  # columns of the plot of `--full`
INDENT = 2
MORE = "more"  # the group of the lines below what to do
CAUSES = ((3, 3), (3, 2), (2, 2), (2, 1), (1, 2))  # how many, and in how many lines each
FOLDS = (
    *("causes", "also", "causes", "meaning", "rows", "path", "meaning", "causes", "rows"),
    *("causes", "rows", "meaning", "path", "also", "notes", "do now", "do now"),
)
"""What gives way first. Neither the verdict, the restart, what decides, what to log, nor the last line ever do."""
LABEL = 10  # columns of the words before a line
STATE = 11  # and of a cause's state
NOT_CHECKED = 13
PATH = 6  # of a healthy run
MIN_NAME = 8  # columns of a run's name that is cut
MAX_METRIC = 26  # columns of the name of a series above a table
MAX_OPEN = 3
MAX_IDS = 4
LONGEST_SHORT = 28  # of a question in a path
SEPARATOR, LINK, BEFORE_NOTE = " · ", " › ", "   "
ACTED_ON = ("Set by ", "Using ")


def headline(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the verdict in one line, with the path of the log."""
    sources = diagnosis.run.sources
    name = sources[0].path if sources else diagnosis.run.name
    if len(sources) > 1:
        name += f" and {len(sources) - 1:,} more"
    return one_line(diagnosis, name, options)


def one_line(diagnosis: Diagnosis, name: str, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the verdict of a run in one line, under the name by which the user knows it."""
    finding = words.main_finding(diagnosis)
    more = "; see stabtree inspect" if diagnosis.misread else ""
    if finding:
        more = f" [{finding.leaf.id}]"
    word = BADGES[words.badge(diagnosis)].word
    line = clean(f"{word}  {name}: {words.headline(diagnosis)}{more}", LONGEST_LINE)
    return inert(to_ascii(line) if options.ascii else line)


def screen(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a diagnosis for a terminal: on one screen, or all of it."""
    if options.full:
        return full(diagnosis, options)
    report = Report(diagnosis, options.exit_code)
    if report.badge == Severity.OK:
        page = new_page(options)
        _healthy(page, report)
        return page.text()
    most = MAX_LINES if options.width >= MIN_WIDTH else NARROW_LINES
    return fitted(_panes(report, options), FOLDS, most, partial(new_page, options))


def full(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return all of it: the head, the rows, the plot, and every section."""
    from stabtree.report.sections import NUMBER, PARAGRAPH, sections

    page, report = new_page(options), Report(diagnosis)
    width = min(options.width, MAX_PLOT)
    _head(page, report)
    if report.quoted:
        page.heading("The rows")
        _quoted(page, report.quoted, len(report.quoted.lines))
    if options.plots and (plot := figure(diagnosis, report.finding, columns_for(width))):
        page.blank()
        page.lines(strips(plot, width - INDENT, ascii=options.ascii), indent=INDENT)
    for section in sections(report):
        page.heading(section.title)
        heads = [entry.head or ("" if entry.strong else "·") for entry in section.entries]
        if section.mark == NUMBER:
            heads = [f"{place}." for place in range(1, len(heads) + 1)]
        elif section.mark == PARAGRAPH:
            heads = [""] * len(heads)
        column = max(len(page.plain(head)) for head in heads) + 2
        for head, entry in zip(heads, section.entries, strict=True):
            before, strong, after = entry.parts()
            pieces = [(before, ""), (strong, "number"), (after, "")]
            page.item((head, entry.style or "dim"), pieces, indent=1, head_width=column)
            for text in entry.below:
                page.line((text, "dim"), indent=column + 1)
    return page.text()


def _panes(report: Report, options: RenderOptions) -> list[Pane]:
    """Return the parts of the screen in their order, each in its forms."""

    def forms(draw: Callable[..., None], *settings: object) -> tuple[Callable[[Page], None], ...]:
        drawn = [partial(draw, report=report, form=setting) for setting in settings if setting is not None]
        return (*drawn, *([(lambda _page: None)] if None in settings else []))

    few = report.quoted is not None and report.quoted.few
    plot, table = None, report.quoted
    if options.plots and report.finding is not None and not few:
        plot = figure(report.diagnosis, report.finding, columns_for(options.width))
    rows: tuple[Callable[[Page], None], ...] = ((lambda _page: None),)
    if table and (table.sharp or not plot):
        rows = tuple(partial(_quoted, table=table, most=most) for most in (6, 5, 4, 3))

    def strip_lines(page: Page) -> None:
        if plot:
            shown = replace(plot, strips=plot.strips[:STRIPS])
            height = ROWS_OF_PLOT // len(shown.strips)
            page.lines(strips(shown, options.width - INDENT, ascii=options.ascii, height=height), indent=INDENT)

    def last_line(page: Page) -> None:
        word = BADGES[report.badge].word.lower()
        page.line((word, f"{report.badge} word"), (report.closing.removeprefix(word), ""))
        more = ["more: --full", *([f"stabtree explain {report.node}"] if report.node else [])]
        more += ["-o report.html"] if report.finding else []
        page.lines([[(SEPARATOR.join(more), "dim")]])

    return [
        Pane("head", (partial(_head, report=report),)),
        Pane("rows", rows),
        Pane("strips", (strip_lines,), free=True),
        Pane("meaning", forms(_meaning, 3, 2, 1, 0)),
        Pane("do now", tuple(partial(add_actions, actions=report.do_now, lines=lines) for lines in (4, 3, 2))),
        Pane("causes", forms(_causes, *CAUSES), group=MORE),
        Pane("log next", (lambda page: _labelled(page, "Log next", report.log_next),), group=MORE),
        Pane("path", forms(_path_line, 2, 1, None), group=MORE),
        Pane("also", forms(_also, 2, 1, None), group=MORE),
        Pane("not checked", forms(_not_checked, MAX_OPEN, 1), group=MORE),
        Pane("notes", (partial(_notes, report=report), (lambda _page: None)), group=MORE),
        Pane("last", (last_line,)),
    ]


def _head(page: Page, report: Report) -> None:
    """Add the verdict, the run in a line, and what was misread or accepted."""
    badge = f" {BADGES[report.badge].word} "
    title, indent = page.plain(report.title), len(badge) + 1
    pieces: list[Piece] = [(title, "heading")]
    gap = page.width - indent - len(title) - len(report.node)
    if report.node and gap > 1:
        pieces += [(" " * gap, ""), (report.node, "id")]
    page.item((badge, report.badge), pieces, indent=0, head_width=indent)
    label, text = report.other_half
    if text:
        page.line((label, "dim"), (clipped(page.plain(text), page.width - indent - len(label)), ""), indent=indent)
    page.line((_facts(page, report.facts, page.width - indent), "dim"), indent=indent)
    if report.earlier:
        page.line((report.earlier, ""), indent=indent)
    if report.misread:
        page.line((report.careful, "number"), (report.misread, ""), indent=indent)
    diagnosis = report.diagnosis
    answers = [f"Your answers: {text}" for text in diagnosis.answer_notes]
    accepted = words.accepted_notes(diagnosis, most=words.MAX_ACCEPTED)
    for text in (*diagnosis.setting_notes, *answers, *accepted):
        page.line((text, ""), indent=indent)


def _facts(page: Page, facts: str, room: int) -> str:
    """Return who the run is on one line: of what is too long the name is cut in its middle, or the last parts go."""
    text, cut = page.plain(facts), page.plain("…")
    rest, separator, name = text.rpartition(page.plain(SEPARATOR))
    left = room - len(rest) - len(separator) - len(cut)
    if len(text) <= room:
        return text
    while left < MIN_NAME and len(rest) > room:
        rest = rest.rpartition(page.plain(SEPARATOR))[0]
    if left < MIN_NAME:
        return rest
    return f"{rest}{separator}{name[: left - left // 2]}{cut}{name[len(name) - left // 2 :]}"


def _quoted(page: Page, table: Quoted, most: int) -> None:
    """Add the rows that show an incident as a table; where there are too many, those that are most worth it."""
    worth = sorted(table.lines, key=lambda line: line.rank)[:most]
    lines = [line for line in table.lines if line in worth]
    steps = [f"{line.step:,}" for line in lines]
    first, names, widths = max(len(table.unit), *map(len, steps)), [], list[int]()
    note = max((len(line.note) + len(BEFORE_NOTE) for line in lines), default=0)
    room = page.width - INDENT - first - min(note, page.width // 2)
    for index, metric in enumerate(table.metrics):
        name = page.plain(metric)
        if len(name) > MAX_METRIC:  # of a long name its last part, else the end of that
            name = name.rpartition("/")[2]
        if len(name) > MAX_METRIC:
            name = page.plain("…") + name[-(MAX_METRIC - 1) :]
        width = max(len(name), *(len(line.cells[index]) for line in lines)) + 2
        if widths and sum(widths) + width > room:
            break
        widths.append(width)
        names.append(name)
    heads = [(f"{name:>{width}}", "dim") for name, width in zip(names, widths, strict=True)]
    page.lines([[(f"{table.unit:>{first}}", "dim"), *heads]], indent=INDENT)
    for step, line in zip(steps, lines, strict=True):
        style = "number" if line.here else ""
        cells: list[Piece] = [(f"{step:>{first}}", style)]
        for cell, width in zip(line.cells, widths, strict=False):
            cells.append((f"{cell:>{width}}", "mark" if cell in ("NaN", "inf", "-inf") else style))
        if line.note:
            cells.append((BEFORE_NOTE + line.note, "mark" if line.here else "dim"))
        page.lines([cells], indent=INDENT)


def _meaning(page: Page, report: Report, form: int) -> None:
    """Add what the finding means, in at most so many lines: the sentences and clauses that fit."""
    texts = uncut(page.plain(report.meaning), page.width - LABEL, form)
    _labelled(page, "Meaning", "\n".join(texts))


def _causes(page: Page, report: Report, form: tuple[int, int]) -> None:
    """Add the causes, each with the number that speaks for it: how many, and in how many lines each."""
    most, max_lines = form
    head, room = "Causes", page.width - LABEL - STATE
    for item in report.causes[:most]:
        name, word = page.plain(item.cause.says), str(item.state)
        seen = page.plain(item.evidence[0].text if item.evidence else "")
        beside = len(name) + 2 + len(seen) <= room
        begin, *rest = in_lines(name, room, 2)
        pieces = [(f"{head:<{LABEL}}", "heading"), (f"{word:<{STATE}}", word), (begin, "")]
        page.lines([[*pieces, (f"  {seen}", "dim")] if seen and beside else pieces])
        page.lines([[(" " * (LABEL + STATE), ""), (more, "")] for more in rest])
        if seen and not beside and max_lines > 1:
            page.lines([[(" " * (LABEL + STATE), ""), (why, "dim")] for why in uncut(seen, room, max_lines - 1)])
        head = ""
    if report.undecided and most > 1:
        page.lines([[(" " * LABEL, ""), (report.undecided, "dim")]])


def _labelled(page: Page, label: str, *pieces: Piece | str, width: int = LABEL) -> None:
    """Add a text, or its pieces, with a label before it, wrapped beside it; nothing where there is no text."""
    line = [(piece, "") if isinstance(piece, str) else piece for piece in pieces]
    if any(text for text, _ in line):
        page.item((f"{label:<{width}}", "heading"), line, indent=0, head_width=width)


def _path_line(page: Page, report: Report, form: int) -> None:
    """Add the walk that the verdict rests on: its last questions, and the number that decided if it fits."""
    walk, room = report.walks[-1], page.width - LABEL
    last = walk.groups[-1][-1]
    answered = [group for group in walk.groups if group[-1] is last or group[0].answer.verdict != UNKNOWN]
    links = [_link(group, shorts=False) for group in answered]
    decided = "" if last.answer.verdict == UNKNOWN else page.plain(next(iter(words.seen(last)), "").partition("; ")[0])
    # All links, then fewer and fewer of the last ones behind a mark that some are left out.
    tries = [links, *([[("…", "dim")], *links[-count:]] for count in range(len(links) - 1, 0, -1))]
    joined = [_joined(some) for some in tries]
    fitting = [line for line in joined if sum(len(text) for text, _ in line) <= room] or [_joined(links[-1:])]
    for pieces in fitting:
        # The number goes on where the chain ends.
        begin = sum(len(text) for text, _ in pieces) + 2
        shown = uncut("." * begin + decided, room, form) if decided else []
        if shown:
            pieces.append((f": {' '.join(shown)[begin:]}", ""))
            break
    else:
        pieces = fitting[0]
    _labelled(page, "Path", *pieces)


def _joined(links: Sequence[Sequence[Piece]]) -> Line:
    return [piece for link in links for piece in ((LINK, "dim"), *link)][1:]


def _link(group: Sequence[Visit], *, shorts: bool) -> list[Piece]:
    """Return a question of a walk: its id, with `shorts` in words, and the answer."""
    if len(group) > 1:
        return [(", ".join(visit.question.id for visit in group), "id"), (" not asked", "")]
    visit, question = group[0], group[0].question
    asked = f" {clipped(question.short or question.ask, LONGEST_SHORT)} " if shorts else " "
    answer = (words.answer_word(visit), "answer")
    if visit.answer.verdict == UNKNOWN:
        answer = (words.answer_word(visit) if shorts else "?", "")
    return [(question.id, "id"), (asked, ""), answer]


def _also(page: Page, report: Report, form: int) -> None:
    """Add the first of what else was found and how much more there is; only its name where its title is too long."""
    if not report.also:
        return
    first, *others = report.also
    word, tail = BADGES[first.leaf.severity].word.lower(), f" (and {len(others)} more)" if others else ""
    name = f" {first.leaf.id}{words.at_step(first)}"
    title = first.leaf.title
    whole = f"{name}: {title[:1].lower()}{title[1:]}{tail}"
    fits = len(textwrap.wrap(word + page.plain(whole), page.width - LABEL)) <= form
    _labelled(page, "Also", (word, f"{first.leaf.severity} word"), whole if fits else name + tail)


def _not_checked(page: Page, report: Report, form: int) -> None:
    """Add what keeps a run from a verdict, the first few; nothing of a run that has one."""
    if report.finding is not None:
        return
    head = "Not checked"
    for item in report.open[:form]:
        text = f"{first_few(item.unlocks, MAX_IDS)}: {item.text}"
        if item.how:
            text = f"log {item.text} → {next(iter(item.decides), first_few(item.unlocks, MAX_IDS))}"
        _labelled(page, head, text, width=NOT_CHECKED)
        head = ""


def _notes(page: Page, report: Report) -> None:
    """Add the first note that a user may act on: what settings changed, what was guessed, what was not read."""
    run, shown = report.diagnosis.run, report.diagnosis.setting_notes  # which the head has
    others = [note for note in run.notes if note not in shown]
    acted_on = [note for begin in ACTED_ON for note in others if note.startswith(begin)]
    _labelled(page, "Note", next(iter([*acted_on, *not_read(run)]), ""))


def _healthy(page: Page, report: Report) -> None:
    """Add three lines of a healthy run: verdict, what was checked, and the path with its closest margin."""
    badge, diagnosis = f" {BADGES[report.badge].word} ", report.diagnosis
    title, used = page.plain(report.title), len(badge) + 1
    if len(title) > page.width - used and diagnosis.ignored:
        title = page.plain(words.title(diagnosis, named=False))
    pieces: Line = [(" ", ""), (title, "heading")]
    used += len(title)
    for part in filter(None, _parts(report)):
        width = len(page.plain(part)) + 3
        if used + width <= page.width:
            pieces += [(SEPARATOR, "dim"), (part, "")]
            used += width
    page.item((badge, report.badge), pieces, indent=0, head_width=len(badge))
    _checked(page, report)
    _path_with_margin(page, report)
    for text in diagnosis.setting_notes:
        _labelled(page, "Settings", text)
    accepted = words.accepted_notes(diagnosis, most=words.MAX_ACCEPTED)
    accepted += [note for note in diagnosis.run.notes if note.startswith(ACTED_ON[1])][:1]
    for text in filter(None, (report.misread, *diagnosis.answer_notes, *accepted)):
        page.line((text, ""))


def _parts(report: Report) -> Iterator[str]:
    """Yield the parts of the first line, each shown while there is room; empty ones among them."""
    run = report.diagnosis.run
    yield words.step_range(run)
    yield _levels(run)
    held_out = run.get("eval_loss")
    if held_out is not None and np.isfinite(held_out.values).any() and run.get("loss") is not None:
        yield f"eval_loss {number(held_out.values[int(np.nanargmin(held_out.values))])} at best"
    if report.notes:
        yield counted(report.notes, "note")
    if notes := [finding for finding in (report.finding, *report.also) if finding]:
        at = "" if notes[0].onset_step is None else f" at {notes[0].onset_step:,}"
        yield f"{counted(len(notes), 'note')}: {notes[0].leaf.id}{at}"
    yield run.name


def _levels(run: Run) -> str:
    """Return the first and last loss, as they are in the log; without a loss the series that the run is judged by.

    Of a run that learns from rewards that is the reward: a critic's loss rises with the returns that it predicts.
    """
    context = context_of(run)
    leading = context.outcome.value if context.learns_from_rewards else None
    name = next((name for name in (leading or "loss", "loss", *ENOUGH) if run.get(name) is not None), "")
    judged = run.get(name)
    values = np.empty(0) if judged is None else judged.values[np.isfinite(judged.values)]
    if len(values) < 2:
        return ""
    levels = f"{name} {number(float(values[0]))} → {number(float(values[-1]))}"
    return levels if name == "loss" else f"judged by {levels}"


def _checked(page: Page, report: Report) -> None:
    """Add what was not found; then what nothing explains, else what was not judged and how much was noted."""
    notes = report.diagnosis.run.notes
    tail = f"{counted(len(notes), 'note')} on the log (--full)"
    if report.unexplained:  # of more use than what was not judged, and never left out
        short = f"{counted(len(report.unexplained), 'problem')} not explained; see --full"
        whole = f"unexplained: {' '.join(report.unexplained)}"
        texts = ["; ".join(filter(None, (report.passed, text))) for text in (whole, short)] + [short]
    else:
        # Which sections were not judged, shorter and shorter; of a run without a loss, how many questions.
        shorter = [report.unjudged]
        if report.diagnosis.run.get("loss") is None:
            begin = f"{report.unchecked} not answered" if report.unchecked else ""
            names = list(dict.fromkeys(item.text for item in report.open if item.how)) if begin else []
            shorter = [f"{begin}: log {', '.join(names[:count])} and more" for count in range(len(names) - 1, 0, -1)]
            shorter = [*([f"{begin}: log {', '.join(names)}"] if names else []), *shorter, begin]
        judged = ["; ".join(filter(None, (report.passed, text))) for text in shorter]
        texts = [f"{text} · {tail}" for text in judged if notes and text] + judged
    fitting = [text for text in map(page.plain, texts) if len(text) <= page.width]
    for line in fitting[:1] or uncut(page.plain(texts[-1]), page.width, 1):
        page.lines([[(line[:1].upper() + line[1:], "")]])


def _path_with_margin(page: Page, report: Report) -> None:
    """Add the path in one line, in words where they fit, with the answer that was the closest to another one."""
    shares = [(0.0, "")]
    for visit in report.diagnosis.path:
        if visit.answer.verdict == NO:
            shares += [(_share(item.observed, item.threshold), visit.question.id) for item in visit.answer.evidence]
    share, id_ = max(shares)
    whole = f"{share:.0%} of its limit"
    chains = []
    for shorts, margin in ((True, whole), (False, whole), (False, f"{share:.0%}")):
        pieces = _joined([_link(group, shorts=shorts) for group in report.walks[0].groups])
        if (id_, "id") in pieces:
            pieces.insert(pieces.index((id_, "id")) + 3, (f" ({margin})", ""))  # behind the question and the answer
        chains.append(pieces)
    fit = (line for line in chains if sum(len(page.plain(text)) for text, _ in line) <= page.width - PATH)
    page.item(("Path", "heading"), next(fit, chains[-1]), indent=0, head_width=PATH)


def _share(observed: float | None, threshold: float | None) -> float:
    """Return how far towards its threshold a number came; below zero where it is past it or of another sign."""
    if observed is None or not threshold or not math.isfinite(observed) or observed * threshold < 0:
        return -1.0
    share = observed / threshold
    return share if share <= 1 else -1.0
