"""What must be true of all that is said of any run: each property yields what contradicts it."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.diagnosis.missing import PER_GROUP, how_to_log
from stabtree.diagnosis.result import SILENT, WEAK, CauseState
from stabtree.measures.checkpoints import CheckpointSource
from stabtree.metrics.role import describe_name
from stabtree.report.page import TICK_SIGNS, Tick
from stabtree.report.rows import quoted
from stabtree.report.words import answer_word, seen
from stabtree.tree.model import Severity
from tests.whole.advice import labels, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.whole.advice.outputs import Outputs

    Property = Callable[[Outputs], Iterator[str]]

NOBODY_WRITES = (
    re.compile(r"\de\+\d\d"),
    re.compile(r"(?<![\d,.])\d{4,}%"),
    re.compile(r"by chance \d|by chance (?:no|about) "),
    re.compile(r"\d{4,}(?:\.\d+)?σ"),
    re.compile(r"trend z|\bz -?\d"),
    re.compile(r"\d{2}×10"),
    re.compile(r"\b(?:mend|borne|told|tells|by the letter|in force|let count)\b", re.IGNORECASE),
)
MAX_TO_DO = 3
MAX_CAUSES = 3
CAUSES = re.compile(
    r"^(?:Causes)? +(?:[●◐○?·–] )?(confirmed|likely|possible|not confirmed|not checkable|ruled out)  ", re.MULTILINE
)


def one_onset(out: Outputs) -> Iterator[str]:
    """The event begins at one step: in the title of each output, in the last line, and in JSON."""
    found = out.finding
    if found is None or out.report.badge == Severity.OK:
        return
    named = next((item for item in out.json["findings"] if item["id"] == found.leaf.id), out.json["findings"][0])
    steps = {
        "title": words.step_of_title(out.report.title),
        "screen": words.step_of_title(out.screen.partition("\n")[0]),
        "Markdown": words.step_of_title(out.markdown.partition("\n")[0]),
        "last line": words.step_of_closing(out.report.closing),
        "JSON": named["onset_step"],
    }
    if set(steps.values()) != {found.onset_step}:
        yield f"onset {found.onset_step}: {steps}"


def good_before_bad(out: Outputs) -> Iterator[str]:
    """The last good step is not after the first bad one; where they are one, the post-mortem names it once."""
    for found in out.diagnosis.reached:
        if found.onset_step is None or found.last_good_step is None:
            continue
        if found.last_good_step > found.onset_step:
            yield f"{found.leaf.id}: last good step {found.last_good_step}, onset {found.onset_step}"
    onset = out.finding.onset_step if out.finding else None
    if onset is not None and f" {onset:,}: the last good one" in out.postmortem:
        yield f"post-mortem: step {onset} is good and bad"


def one_restart(out: Outputs) -> Iterator[str]:
    """The restart of the last line is that of what to do, and that of JSON."""
    if out.finding is None or out.finding.restart is None or not out.restart:
        return
    closing = re.search(r"restart from ([\d,]+)", out.report.closing)
    if closing and closing[1] not in out.restart:
        yield f"last line {closing[1]}: {out.restart}"
    known = out.json["findings"][0]["restart"]
    if closing and words.number(closing[1]) not in (known["checkpoint_step"], known["up_to_step"]):
        yield f"last line {closing[1]}: JSON {known['checkpoint_step']}, {known['up_to_step']}"


def no_restart_where_it_came_back(out: Outputs) -> Iterator[str]:
    """Nobody is sent back where the loss came back."""
    back = re.search(r"came back(?! from its top)|nothing to restart|the run recovered", out.report.plainly)
    if back and out.restart:
        yield f"{back[0]!r} beside {out.restart[:80]!r}"


def no_cadence_invented(out: Outputs) -> Iterator[str]:
    """A checkpoint is named only where the log, the configuration or a folder does."""
    for found in out.diagnosis.reached:
        unknown = found.restart is not None and found.restart.source is CheckpointSource.UNKNOWN
        if found.restart and unknown and found.restart.checkpoint_step is not None:
            yield f"{found.leaf.id}: {found.restart.checkpoint_step}"
    if "assuming" in out.screen:
        yield "says 'assuming'"


def no_checkpoint_twice(out: Outputs) -> Iterator[str]:
    """Only the line on the restart speaks of going back: no fix asks to reload or to restart."""
    for text in out.actions:
        if (
            hit := re.search(r"\b(Reload|Go back to|[Rr]estart from|Take the checkpoint|Keep the checkpoint)\b", text)
        ) and out.restart:
            yield f"{hit[0]!r} beside {out.restart[:60]!r}"


def nothing_logged_is_asked_for(out: Outputs) -> Iterator[str]:
    """Nothing asks to log what is logged, and of all that could be the way to log it is known."""
    run = out.diagnosis.run
    wanted = [name for item in out.diagnosis.log_next for name in item.names]
    yield from (f"how to log {name}?" for name in wanted if not how_to_log(name))
    for name in (*wanted, *(name for miss in out.diagnosis.missing for name in miss.metrics)):
        if run.group(name.removesuffix(PER_GROUP)) if name.endswith(PER_GROUP) else run.has(name):
            yield f"log next: {name}"
    for text in out.actions:
        for name in words.asked_to_log(text):
            if run.has(name):
                yield f"{name}: {text[:90]}"


def no_fix_asks_to_log(out: Outputs) -> Iterator[str]:
    """What to log is said below, not among what to do."""
    yield from (text[:90] for text in out.actions if re.match(r"Log\b", text))


def no_open_condition(out: Outputs) -> Iterator[str]:
    """What to do has no `if` about something that is logged."""
    run = out.diagnosis.run
    for text in out.actions:
        for metric in words.conditions(text):
            if run.has(metric):
                yield f"{metric}: {text[:100]}"


def one_rate(out: Outputs) -> Iterator[str]:
    """At most one change of the rate is advised, and at most one value of each setting."""
    found: dict[str, set[str]] = {}
    for text in out.advised:
        for name, value in words.settings(text):
            found.setdefault(name, set()).add(value)
    for name, values in found.items():
        if len(values) > 1:
            yield f"{name}: {sorted(values)}"


def one_best(out: Outputs) -> Iterator[str]:
    """What to do names one best step, and counts as the run does."""
    actions = [*out.actions, out.restart]
    best = {step for text in actions for step in words.best_steps(text)}
    if len(best) > 1:
        yield f"best at {sorted(best)}"
    unit = out.finding.unit if out.finding else "step"
    if unit != "step":
        yield from (f"{unit}s: {text[:90]}" for text in actions if re.search(r"\bstep \d", text))


def one_state_of_a_cause(out: Outputs) -> Iterator[str]:
    """A cause that is confirmed in one place is not open in another."""
    states: dict[str, set[CauseState]] = {}
    for judged in chain.from_iterable(found.causes for found in out.diagnosis.reached):
        states.setdefault(judged.cause.id, set()).add(judged.state)
        states.setdefault(words.topic(judged.cause.text), set()).add(judged.state)
    for name, found in states.items():
        if name and CauseState.CONFIRMED in found and not found.isdisjoint(WEAK):
            yield f"{name}: {', '.join(sorted(found))}"


def only_open_causes(out: Outputs) -> Iterator[str]:
    """No cause that the log refutes is printed on the screen."""
    for state in CAUSES.findall(out.screen):
        if state in SILENT:
            yield state


def few_causes(out: Outputs) -> Iterator[str]:
    """At most three causes are on the screen."""
    count = len(CAUSES.findall(out.screen))
    if count > MAX_CAUSES:
        yield str(count)


def few_actions(out: Outputs) -> Iterator[str]:
    """There are at most three things to do, and the restart is the last."""
    actions = out.report.do_now
    if len(actions) > MAX_TO_DO:
        yield str(len(actions))
    if any(action.strong for action in actions[:-1]):
        yield f"the restart comes before {actions[-1].text[:60]!r}"


def what_helps_the_first_cause_is_advised(out: Outputs) -> Iterator[str]:
    """Of the cause that is named first, a fix is among what to do: as an action, or as what to do after an answer."""
    first = next(iter(out.report.shown_causes), None)
    if first is None or not first.fixes or not out.actions:
        return
    advised = words.plain(" ".join(out.actions)).lower()
    answers = [text for action in out.report.do_now for _, text in action.branches]
    led_to = any(words.shares_words(text, words.plain(fix).lower()) for text in answers for fix in first.fixes)
    if not led_to and not any(words.shares_words(fix, advised) for fix in first.fixes):
        yield f"{first.judged.cause.id} {first.judged.cause.text[:50]!r}: no {first.fixes[0][:60]!r}"


def every_output_has_the_branches(out: Outputs) -> Iterator[str]:
    """What may come out of a question is in every output that asks it."""
    for action in out.report.do_now:
        for _, text in action.branches:
            begin = text[:40]
            for name, shown in (("screen", out.screen), ("Markdown", out.markdown), ("HTML", out.html_text)):
                if words.plain(begin) not in words.plain(shown):
                    yield f"{name}: no {begin!r}"


def answers_agree_with_evidence(out: Outputs) -> Iterator[str]:
    """The word of an answer says what its evidence does."""
    for visit in chain.from_iterable(chain.from_iterable(walk.groups) for walk in out.report.walks):
        short, given, text = visit.question.short or visit.question.ask, answer_word(visit), " ".join(seen(visit))
        for asked, answer, against in words.AGREE:
            if given == answer and re.search(asked, short) and re.search(against, text):
                yield f"{visit.question.id} {short} {given} | {text[:90]}"


def one_tick(out: Outputs) -> Iterator[str]:
    """A section that HTML, Markdown and the screen tick is not one that JUnit fails, and the reverse."""
    failed = out.junit_sections
    for id_, tick in out.report.ticks:
        if f"§{id_} {TICK_SIGNS[tick]}" not in out.markdown:
            yield f"§{id_} {tick} is not in Markdown"
        if (tick is Tick.FOUND) != (id_ in failed) and not out.diagnosis.ignored:
            yield f"§{id_}: {tick}, JUnit {'fails' if id_ in failed else 'passes'}"


def finite_words(out: Outputs) -> Iterator[str]:
    """A series that has no gradient is not said to have one; what is infinite is not called NaN."""
    run = out.diagnosis.run
    if "gradient exploded" in out.report.title.lower() and not run.has("grad_norm"):
        yield out.report.title
    if re.search(r"grad_norm (exploded|grew|rises|jumped)", out.report.why) and not run.has("grad_norm"):
        yield out.report.why


def rows_are_what_they_are_called(out: Outputs) -> Iterator[str]:
    """What a quoted row is called is true of its number; the first column is the series that shows the event best."""
    for found in out.diagnosis.reached:
        table = quoted(out.diagnosis.run, found)
        series = table and out.diagnosis.run.find(table.metrics[0])
        if table and series:
            sign = -1 if describe_name(series.metric).better == "higher" else 1
            values = dict(zip(series.steps.tolist(), (sign * series.values).tolist(), strict=True))
            yield from (
                f"{found.leaf.id}: {text}" for text in labels.untrue(table.lines, values, found.onset_step or 0)
            )


def numbers_are_plain(out: Outputs) -> Iterator[str]:
    """No 1.06e+04σ, no 76455%, no odds of chance; nor a word of our own dialect."""
    for text in (out.screen, out.full, out.markdown, out.postmortem):
        yield from (line for line in text.splitlines() for form in NOBODY_WRITES if form.search(line))


PROPERTIES: Mapping[str, Property] = {
    func.__name__: func
    for func in (
        *(one_onset, good_before_bad, one_restart),
        *(no_restart_where_it_came_back, no_cadence_invented, no_checkpoint_twice, nothing_logged_is_asked_for),
        *(no_fix_asks_to_log, no_open_condition, one_rate, one_best, one_state_of_a_cause),
        *(only_open_causes, few_causes, what_helps_the_first_cause_is_advised),
        *(few_actions, every_output_has_the_branches, answers_agree_with_evidence, one_tick, finite_words),
        *(rows_are_what_they_are_called, numbers_are_plain),
    )
}
