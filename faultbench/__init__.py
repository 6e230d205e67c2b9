"""Labelled training runs and the scorer for them; `python -m faultbench` unpacks, verifies, scores and compares.

Nothing here imports stabtree or anything else beyond the standard library, so the folder can be copied on its own.
"""
