"""Questions that the configuration of a run answers, before it begins or beside its log."""
