"""Thresholds of a team's own: from its healthy runs, the least that must change so that none of them alarms."""
