"""What must be true of all that is said of any run: each property yields what contradicts it."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.diagnosis.missing import PER_GROUP, how_to_log
from stabtree.diagnosis.result import CauseState
from stabtree.measures.checkpoints import CheckpointSource
from stabtree.metrics.role import describe_name
from stabtree.report.page import Tick
from stabtree.report.rows import quoted
from stabtree.report.words import answer_word, seen
from stabtree.tree.model import Severity
from stabtree.tree.tables import condition, tables
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
CAUSES = re.compile(r"^(?:Causes)? +(?:[●◐○?·–] )?(confirmed|likely|possible|ruled out)  ", re.MULTILINE)


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
    back = re.search(r"(?i)came back(?! from its top)|nothing to restart|the run recovered", out.report.why)
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
        states.setdefault(words.topic(judged.cause.says), set()).add(judged.state)
    for name, found in states.items():
        if name and CauseState.CONFIRMED in found and CauseState.POSSIBLE in found:
            yield f"{name}: {', '.join(sorted(found))}"


def one_rival_and_one_out(out: Outputs) -> Iterator[str]:
    """At most two causes are open, beside one that is out; a sure one stands alone."""
    for found in out.diagnosis.reached:
        states = [item.state for item in found.causes]
        open_ = [state for state in states if state is not CauseState.RULED_OUT]
        if len(open_) > (1 if {CauseState.CONFIRMED, CauseState.LIKELY} & {*open_} else 2) or len(states) > MAX_CAUSES:
            yield f"{found.leaf.id}: {states}"
        if found.undecided != (open_[:1] == [CauseState.POSSIBLE]):
            yield f"{found.leaf.id}: undecided {found.undecided}, {states}"
        out_ = [item for item in found.causes if item.state is CauseState.RULED_OUT]
        yield from (f"{found.leaf.id}: {item.cause.id}" for item in out_ if not item.evidence)


def few_causes(out: Outputs) -> Iterator[str]:
    """At most three causes are on the screen."""
    count = len(CAUSES.findall(out.screen))
    if count > MAX_CAUSES:
        yield str(count)


def few_actions(out: Outputs) -> Iterator[str]:
    """Every alarm has something to do, at most three things, of which no two are of a kind."""
    kinds = [action.kind for action in out.report.do_now]
    if len(kinds) > MAX_TO_DO or len({*kinds}) < len(kinds):
        yield f"{kinds}"
    alarm = out.finding is not None and out.finding.is_alarm
    if alarm and (not kinds or not all(action.text for action in out.report.do_now)):
        yield "nothing to do"


def nothing_forbidden_is_advised(out: Outputs) -> Iterator[str]:
    """No action that the table forbids for what the file says."""
    for found in out.diagnosis.reached:
        for item in found.actions:
            action = tables().actions.get(item.id)
            for text in action.never if action else ():
                wanted = condition(text)
                if wanted.name == "config.grad_clip" and wanted.met(out.diagnosis.run.setting("grad_clip") or 0):
                    yield f"{found.leaf.id}: {item.id}, {text}"


def no_text_is_half_filled(out: Outputs) -> Iterator[str]:
    """No action holds a placeholder or what a value is missing in."""
    yield from (action.text for action in out.report.do_now if re.search(r"\{[a-z_]+[/*=<}]|…", action.text))


def what_tells_causes_apart_was_not_logged(out: Outputs) -> Iterator[str]:
    """Nothing that is asked for at a finding is in the log."""
    for found in out.diagnosis.reached:
        yield from (name for name in found.log_next if out.diagnosis.run.has(name))


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
    """A section in which HTML, Markdown and the screen find nothing is not one that JUnit fails, and the reverse."""
    failed = out.junit_sections
    for id_, tick in out.report.ticks:
        if out.diagnosis.tree.section(id_).title not in out.markdown:
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
        *(no_open_condition, one_rate, one_best, one_state_of_a_cause),
        *(one_rival_and_one_out, few_causes, nothing_forbidden_is_advised, no_text_is_half_filled),
        *(what_tells_causes_apart_was_not_logged,),
        *(few_actions, every_output_has_the_branches, answers_agree_with_evidence, one_tick, finite_words),
        *(rows_are_what_they_are_called, numbers_are_plain),
    )
}
