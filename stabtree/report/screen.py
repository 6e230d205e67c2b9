"""A diagnosis on one screen: what it takes to act, a healthy run in a few lines. `--full` prints all of it."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.figures import figure as number
from stabtree.common.text import clean, first_few, inert, to_ascii
from stabtree.context.find import context_of
from stabtree.diagnosis.account import not_read
from stabtree.loaders.assemble.choice import ENOUGH
from stabtree.measures.registry import finite
from stabtree.report import words
from stabtree.report.advice import add_actions
from stabtree.report.model import Report
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import BADGES, clipped, counted, in_lines, new_page, uncut
from stabtree.report.plot import columns_for, figure, strips
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.common.answer import Evidence
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
ROOM: dict[str, Any] = {"rows": 6, "meaning": 3, "do now": 4, "causes": (3, 3), "path": 2, "also": 2, "notes": 1}
"""In how many lines each part is said; of the causes how many there are, and in how many lines each."""
FOLDS: tuple[tuple[str, Any], ...] = (
    *(("causes", (3, 2)), ("also", 1), ("causes", (2, 2)), ("meaning", 2), ("rows", 5), ("path", 1), ("meaning", 1)),
    *(("causes", (2, 1)), ("rows", 4), ("causes", (1, 2)), ("rows", 3), ("meaning", 0), ("path", 0), ("also", 0)),
    *(("notes", 0), ("do now", 3), ("do now", 2)),
)
"""What gives way first. Neither the verdict, the restart, what decides, what to log, nor the last line ever do."""
CLOSE = ("causes", "log next", "path", "also", "not checked", "notes")
LABEL = 10  # columns of the words before a line
STATE = 11  # and of a cause's state
NOT_CHECKED = 13
PATH = 6  # of a healthy run
MAX_METRIC = 26  # columns of the name of a series above a table
MAX_OPEN = 3
MAX_IDS = 4
LONGEST_SHORT = 28  # of a question in a path
SEPARATOR, LINK, BEFORE_NOTE = " · ", " › ", "   "
ACTED_ON = ("Set by ", "Using ")
BROKEN = dict.fromkeys(("NaN", "inf", "-inf"), "mark")


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
    return _to_act(report, options)


def _to_act(report: Report, options: RenderOptions) -> str:
    """Return what it takes to act, each part folded no further than it takes to fit on a screen."""
    drawn: list[Line] = []
    table, most = report.quoted, MAX_LINES
    if options.plots and report.finding is not None and not (table and table.few):
        plot = figure(report.diagnosis, report.finding, columns_for(options.width))
        if plot:
            shown = replace(plot, strips=plot.strips[:STRIPS])
            height = ROWS_OF_PLOT // len(shown.strips)
            drawn = strips(shown, options.width - INDENT, ascii=options.ascii, height=height)
    if drawn and table and not table.sharp:
        table = None
    if options.width < MIN_WIDTH:
        most = NARROW_LINES
    adds: dict[str, Callable[[Page, Any], None]] = {
        "head": lambda page, _: _head(page, report),
        "rows": lambda page, rows: _quoted(page, table, rows),
        "plot": lambda page, _: page.lines(drawn, indent=INDENT),
        "meaning": lambda page, lines: _meaning(page, report, lines),
        "do now": lambda page, lines: add_actions(page, report.do_now, lines),
        "causes": lambda page, room: _causes(page, report, *room),
        "log next": lambda page, _: _labelled(page, "Log next", report.log_next),
        "path": lambda page, lines: _path_line(page, report, lines),
        "also": lambda page, lines: _also(page, report, lines),
        "not checked": lambda page, _: _not_checked(page, report),
        "notes": lambda page, notes: _notes(page, report, notes),
        "last": lambda page, _: _last_lines(page, report),
    }
    texts = {name: _drawn(add, ROOM.get(name), options) for name, add in adds.items()}
    for name, smaller in FOLDS:
        if _in_order({**texts, "plot": ""}).count("\n") <= most:
            break
        texts[name] = _drawn(adds[name], smaller, options)
    return _in_order(texts)


def _drawn(add: Callable[[Page, Any], None], room: Any, options: RenderOptions) -> str:
    page = new_page(options)
    add(page, room)
    return page.text().strip("\n")


def _in_order(texts: dict[str, str]) -> str:
    """Return the parts of a screen, an empty line between them; none between those below what to do."""
    text = last = ""
    for name, part in filter(itemgetter(1), texts.items()):
        if last:
            text += "\n" * (2 - (name in CLOSE and last in CLOSE))
        text, last = text + part, name
    return f"{text}\n"


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
            pieces = zip(entry.parts(), ("", "number", ""), strict=True)
            page.item((head, entry.style or "dim"), pieces, indent=1, head_width=column)
            for text in entry.below:
                page.line((text, "dim"), indent=column + 1)
    return page.text()


def _last_lines(page: Page, report: Report) -> None:
    """Add the verdict in short, and where there is more."""
    word, more = BADGES[report.badge].word.lower(), ["more: --full"]
    page.line((word, f"{report.badge} word"), (report.closing.removeprefix(word), ""))
    if report.node:
        more.append(f"stabtree explain {report.node}")
    if report.finding:
        more.append("-o report.html")
    page.lines([[(SEPARATOR.join(more), "dim")]])


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
    facts = page.plain(report.facts)
    while len(facts) > page.width - indent:
        facts = facts.rpartition(page.plain(SEPARATOR))[0]
    page.line((facts, "dim"), indent=indent)
    if report.earlier:
        page.line((report.earlier, ""), indent=indent)
    if report.misread:
        page.line((report.misread, ""), indent=indent)
    diagnosis = report.diagnosis
    answers = [f"Your answers: {text}" for text in diagnosis.answer_notes]
    for text in (*diagnosis.setting_notes, *answers, *words.accepted_notes(diagnosis)):
        page.line((text, ""), indent=indent)


def _quoted(page: Page, table: Quoted | None, most: int) -> None:
    """Add the rows that show an incident as a table; where there are too many, those that are most worth it."""
    if table is None:
        return
    worth = sorted(table.lines, key=lambda line: line.rank)[:most]
    lines = [line for line in table.lines if line in worth]
    heads = [page.plain(name) for name in (table.unit, *table.metrics)]
    # Of a long name its last part, or the end of that.
    heads = [name if len(name) <= MAX_METRIC else name.rpartition("/")[2][-MAX_METRIC:] for name in heads]
    rows = [heads, *([f"{line.step:,}", *line.cells] for line in lines)]
    note = max(len(BEFORE_NOTE + line.note) for line in lines)
    room, widths = page.width - min(note, page.width // 2), list[int]()
    for column in zip(*rows, strict=True):
        width = max(map(len, column)) + INDENT
        if len(widths) > 1 and sum(widths) + width > room:
            break
        widths.append(width)
    page.lines([[(f"{name:>{width}}", "dim") for name, width in zip(heads, widths, strict=False)]])
    for line, row in zip(lines, rows[1:], strict=True):
        style = "number" * line.here
        cells = [(f"{cell:>{width}}", BROKEN.get(cell, style)) for cell, width in zip(row, widths, strict=False)]
        if line.note:
            cells.append((BEFORE_NOTE + line.note, "mark" if line.here else "dim"))
        page.lines([cells])


def _meaning(page: Page, report: Report, lines: int) -> None:
    """Add what the finding means, in at most so many lines: the sentences and clauses that fit."""
    texts = uncut(page.plain(report.meaning), page.width - LABEL, lines)
    _labelled(page, "Meaning", "\n".join(texts))


def _causes(page: Page, report: Report, most: int, max_lines: int) -> None:
    """Add the causes, each with the number that speaks for it: how many, and in how many lines each."""
    head, room = "Causes", page.width - LABEL - STATE
    for item in report.causes[:most]:
        name, word, seen = page.plain(item.cause.says), str(item.state), ""
        for shown in item.evidence[:1]:
            seen = page.plain(shown.text)
        begin, *rest = in_lines(name, room, 2)
        pieces = [(f"{head:<{LABEL}}", "heading"), (f"{word:<{STATE}}", word), (begin, "")]
        below = [(more, "") for more in rest]
        if seen and len(name) + 2 + len(seen) <= room:
            pieces.append((f"  {seen}", "dim"))
        elif seen and max_lines > 1:
            below += [(why, "dim") for why in uncut(seen, room, max_lines - 1)]
        page.lines([pieces, *([(" " * (LABEL + STATE), ""), piece] for piece in below)])
        head = ""
    if report.undecided and most > 1:
        page.lines([[(" " * LABEL, ""), (report.undecided, "dim")]])


def _labelled(page: Page, label: str, *pieces: Piece | str, width: int = LABEL) -> None:
    """Add a text, or its pieces, with a label before it, wrapped beside it; nothing where there is no text."""
    line = [(piece, "") if isinstance(piece, str) else piece for piece in pieces]
    if any(text for text, _ in line):
        page.item((f"{label:<{width}}", "heading"), line, indent=0, head_width=width)


def _path_line(page: Page, report: Report, lines: int) -> None:
    """Add the walk that the verdict rests on: its last questions, and the number that decided if it fits."""
    walk, room = report.walks[-1], page.width - LABEL
    last, decided = walk.groups[-1][-1], ""
    if last.answer.verdict != UNKNOWN:
        decided = page.plain(next(iter(words.seen(last)), "").partition("; ")[0])
    answered = [group for group in walk.groups if group[-1] is last or group[0].answer.verdict != UNKNOWN]
    links = [_link(group, shorts=False) for group in answered]
    # All links, then fewer and fewer of the last ones behind a mark that some are left out.
    chains = [_joined(links), *(_joined([[("…", "dim")], *links[begin:]]) for begin in range(1, len(links)))]
    fitting = [chain for chain in chains if _width(page, chain) <= room] or [_joined(links[-1:])]
    shown = fitting[0]
    for chain in fitting if decided else ():
        begin = _width(page, chain) + 2  # the number goes on where the chain ends
        if texts := uncut("." * begin + decided, room, lines):
            shown = [*chain, (f": {' '.join(texts)[begin:]}", "")]
            break
    if lines:
        _labelled(page, "Path", *shown)


def _width(page: Page, pieces: Line) -> int:
    return sum(len(page.plain(text)) for text, _ in pieces)


def _joined(links: Sequence[Sequence[Piece]]) -> Line:
    return [piece for link in links for piece in ((LINK, "dim"), *link)][1:]


def _link(group: Sequence[Visit], *, shorts: bool) -> list[Piece]:
    """Return a question of a walk: its id, with `shorts` in words, and the answer."""
    if len(group) > 1:
        return [(", ".join(visit.question.id for visit in group), "id"), (" not asked", "")]
    visit, question = group[0], group[0].question
    asked, answer = " ", words.answer_word(visit)
    if shorts:
        asked = f" {clipped(question.short or question.ask, LONGEST_SHORT)} "
    if visit.answer.verdict != UNKNOWN:
        return [(question.id, "id"), (asked, ""), (answer, "answer")]
    if not shorts:
        answer = "?"
    return [(question.id, "id"), (asked, ""), (answer, "")]


def _also(page: Page, report: Report, lines: int) -> None:
    """Add the first of what else was found, and how much more there is."""
    if not report.also or not lines:
        return
    first, tail = report.also[0], f" (and {len(report.also) - 1} more)" * bool(report.also[1:])
    word, title = BADGES[first.leaf.severity].word.lower(), first.leaf.title
    name = f" {first.leaf.id}{words.at_step(first)}"
    room = (page.width - LABEL) * lines - len(word + name + tail) - 2
    what = f": {clipped(page.plain(title[:1].lower() + title[1:]), room)}" * (room > LONGEST_SHORT)
    _labelled(page, "Also", (word, f"{first.leaf.severity} word"), name + what + tail)


def _not_checked(page: Page, report: Report) -> None:
    """Add what keeps a run from a verdict, the first few; nothing of a run that has one."""
    if report.finding is not None:
        return
    head = "Not checked"
    for item in report.open[:MAX_OPEN]:
        ids = first_few(item.unlocks, MAX_IDS)
        text = f"{ids}: {item.text}"
        if item.how:
            text = f"log {item.text} → {next(iter(item.decides), ids)}"
        _labelled(page, head, text, width=NOT_CHECKED)
        head = ""


def _notes(page: Page, report: Report, lines: int) -> None:
    """Add the first note that a user may act on: what settings changed, what was guessed, what was not read."""
    run, shown = report.diagnosis.run, report.diagnosis.setting_notes  # which the head has
    others = [note for note in run.notes if note not in shown]
    acted_on = [note for note in others if note.startswith(ACTED_ON)]
    for note in [*acted_on, *not_read(run)][:lines]:
        _labelled(page, "Note", note)


def _healthy(page: Page, report: Report) -> None:
    """Add three lines of a healthy run: verdict, what was checked, and the path with its closest margin."""
    badge, diagnosis = f" {BADGES[report.badge].word} ", report.diagnosis
    title, used = page.plain(report.title), len(badge) + 1
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
    accepted = words.accepted_notes(diagnosis)
    accepted += [note for note in diagnosis.run.notes if note.startswith(ACTED_ON[1])][:1]
    for text in filter(None, (report.misread, *diagnosis.answer_notes, *accepted)):
        page.line((text, ""))


def _parts(report: Report) -> Iterator[str]:
    """Yield the parts of the first line, each shown while there is room; empty ones among them."""
    run = report.diagnosis.run
    yield words.step_range(run)
    yield _levels(run)
    held_out = run.get("eval_loss")
    if held_out is not None and len(finite(held_out)[1]) and run.get("loss") is not None:
        yield f"eval_loss {number(finite(held_out)[1].min())} at best"
    if report.notes:
        yield counted(report.notes, "note")
    for first in filter(None, [report.finding]):
        noted, at = f"{counted(1 + len(report.also), 'note')}: {first.leaf.id}", first.onset_step
        yield noted if at is None else f"{noted} at {at:,}"
    yield run.name


def _levels(run: Run) -> str:
    """Return the first and last loss, as they are in the log; without a loss the series that the run is judged by.

    Of a run that learns from rewards that is the reward: a critic's loss rises with the returns that it predicts.
    """
    context, names = context_of(run), ["loss", *ENOUGH]
    if context.learns_from_rewards and context.outcome.value:
        names.insert(0, context.outcome.value)
    judged = next((series for series in map(run.get, names) if series is not None and len(finite(series)[1]) > 1), None)
    if judged is None:
        return ""
    values = finite(judged)[1]
    levels = f"{judged.metric} {number(values[0])} → {number(values[-1])}"
    return levels if judged.metric == "loss" else f"judged by {levels}"


def _checked(page: Page, report: Report) -> None:
    """Add what was not found; then what nothing explains, else what was not judged and how much was noted."""
    run, lacking = report.diagnosis.run, report.unjudged
    if report.unexplained:  # of more use than what was not judged, and never left out
        lacking = f"unexplained: {' '.join(report.unexplained)}"
    texts = ["; ".join(filter(None, (report.passed, lacking)))]
    if report.unexplained:
        short = f"{counted(len(report.unexplained), 'problem')} not explained; see --full"
        texts += ["; ".join(filter(None, (report.passed, short))), short]
    elif run.notes and texts[0]:
        texts.insert(0, f"{texts[0]} · {counted(len(run.notes), 'note')} on the log (--full)")
    fitting = [text for text in map(page.plain, texts) if len(text) <= page.width]
    for line in fitting[:1] or uncut(page.plain(texts[-1]), page.width, 1):
        page.lines([[(line[:1].upper() + line[1:], "")]])


def _path_with_margin(page: Page, report: Report) -> None:
    """Add the path in one line, in words where they fit, with the answer that was the closest to another one."""
    noes = [visit for visit in report.diagnosis.path if visit.answer.verdict == NO]
    share, id_ = max([(0.0, ""), *((max(map(_share, no.answer.evidence)), no.question.id) for no in noes)])
    chains = []
    whole = " of its limit"
    for shorts, unit in ((True, whole), (False, whole), (False, "")):
        pieces = _joined([_link(group, shorts=shorts) for group in report.walks[0].groups])
        if (id_, "id") in pieces:  # behind the question and the answer
            pieces.insert(pieces.index((id_, "id")) + 3, (f" ({share:.0%}{unit})", ""))
        chains.append(pieces)
    fit = (line for line in chains if _width(page, line) <= page.width - PATH)
    page.item(("Path", "heading"), next(fit, chains[-1]), indent=0, head_width=PATH)


def _share(seen: Evidence) -> float:
    """Return how far towards its threshold a number came; below zero where it is past it or of another sign."""
    if seen.observed is None or not seen.threshold:
        return -1.0
    share = seen.observed / seen.threshold
    return share if 0 <= share <= 1 else -1.0
