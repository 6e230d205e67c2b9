"""The questions that a configuration can answer."""

from __future__ import annotations

from stabtree.tools.check.predicates import course, values, watching

PREDICATES = (
    values.setting_says,
    values.setting_is_said,
    values.setting_outside,
    values.setting_matches,
    values.setting_exceeds,
    course.outlasts_schedule,
    course.starts_at_peak,
    course.warms_up_beyond,
    course.warms_up_briefly,
    course.averages_too_slowly,
    course.epsilon_vanishes,
    course.batch_differs,
    course.groups_split,
    watching.eval_never,
    watching.saves_never,
    watching.saves_rarely,
    watching.keeps_too_few,
    watching.logs_too_little,
    watching.logs_too_rarely,
)
