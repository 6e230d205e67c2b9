"""`stabtree schema`: what a program may rely on in the JSON of `diagnose` and `watch`."""

from __future__ import annotations

from stabtree.cli.shell.printing import emit


def schema() -> None:
    """Write the JSON Schema of `diagnose --json`, for one run, several runs and errors; and of the lines of `watch`."""
    import json

    from stabtree.render.data.contract import schema as made

    emit(json.dumps(made(), indent=1))
