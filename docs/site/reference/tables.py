"""Reference pages that are made of the tables of the code: settings, exit codes, formats, columns, manifests."""

from __future__ import annotations

import inspect
import re
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from docs.site.markup import code
from docs.site.prose import table
from docs.site.reference.commands import exit_codes, prose
from docs.site.reference.docstrings import attributes
from stabtree.cli.program import commands
from stabtree.common.errors import PRECEDENCE
from stabtree.judging.accepted import Acceptance
from stabtree.judging.settings import FILE, KEYS, SHARED, Settings
from stabtree.loaders import LOADERS, config
from stabtree.loaders.json import manifest
from stabtree.metrics.table import table as known

if TYPE_CHECKING:
    from collections.abc import Mapping

INDENTED = re.compile(r"(?:^ {4}.+\n)+", re.MULTILINE)
HERE = "`stabtree.loaders.config.KEYS`"  # in a docstring: on the page they follow
# Commands whose help lists no codes of its own.
AS_DIAGNOSE = ("scan", "watch")


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    return {
        "reference/keys.md": _keys(),
        "reference/exit-codes.md": _exit_codes(),
        "reference/formats.md": _formats(),
        "reference/columns.md": _columns(),
        "reference/manifest.md": _manifest(),
    }


def _terms(items: Mapping[str, tuple[str, str]], prefix: str) -> str:
    """Keys under addresses of their own, each with its kind and its meaning, all Markdown."""
    told = [
        f"[{code(key)}]{{#{prefix}-{key.replace('_', '-')}}} {f'[{kind}]{{.type}}' if kind else ''}\n: {about}"
        for key, (kind, about) in items.items()
    ]
    return "\n\n".join([":::{div} options", *told, ":::"])


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."


def _keys() -> str:
    meanings = attributes(Settings)
    keys = {
        key: (prose(kind), f"{prose(_sentence(meanings[key]))} {code(example)}")
        for key, (kind, example) in KEYS.items()
    }
    accepted = {key: ("text", prose(_sentence(about))) for key, about in attributes(Acceptance).items()}
    return f"""# Keys of `{FILE}`

In {code(FILE)}, or under `[tool.stabtree]` in {code(SHARED)}, of the working directory; `--config FILE` names
another one. Paths are relative to the file. What the command line says goes before it, and a key that is not listed
here is an error. `stabtree info config` shows what is in force and where it is from.

{_terms(keys, "key")}

## Each item of `accept`

{_terms(accepted, "accept")}
"""


def _exit_codes() -> str:
    told = {name: exit_codes(home.epilog) for name, home in commands().items()}
    own = {name: codes for name, codes in told.items() if codes}
    numbers = sorted({number for codes in own.values() for number in codes}, key=int)
    rows = [[number, *(prose(codes.get(number, "")) for codes in own.values())] for number in numbers]
    heads = ["code", *(f"[{code(name)}](../commands/{name}.md)" for name in own)]
    others = ", ".join(f"[{code(name)}](../commands/{name}.md)" for name in AS_DIAGNOSE)
    return f"""# Exit codes

{table(heads, rows)}

{others} exit as `diagnose` does. All other commands exit with 0, or with 2 and 4 as above;
[`tree test`](../commands/tree.md) with 1 where a test failed, [`calibrate`](../commands/calibrate.md) with 3 where no
run can stand for a healthy one. [`baseline`](../commands/baseline.md) accepts what is found: that is no 1.

Of several runs the first of {", ".join(map(str, PRECEDENCE))} that holds counts, so a healthy run beside a bad one
changes nothing. `--fail-on never` makes 0 of 1 and 3, and leaves 2 and 4. A command that is interrupted exits with 130,
one whose reader has gone (as `| head` does) with 141.
"""


def _formats() -> str:
    rows = [[code(loader.name), prose(loader.about)] for loader in LOADERS]
    return f"""# Formats

What `stabtree info formats` lists, by the names that `--format` takes. A format is recognised by what a file holds,
not by its name; any of them may be packed as `.gz`, `.bz2`, `.xz` or, where `stabtree[zstd]` is
installed, `.zst`.

{table(["name", "what it is"], rows)}

The names under which a column is found: [Columns](columns.md). What a file says of its run: [Manifest](manifest.md).
"""


def _columns() -> str:
    axes = {name: ("", _names(known().axes[name])) for name in ("step", "epoch", "rank", "run")}
    metrics = {
        metric.name: (
            prose(metric.meaning),
            _names(metric.names)
            + (f" Each group of parameters has its own: {code(f'{metric.name}/<group>')}." if metric.grouped else ""),
        )
        for metric in known().metrics
    }
    return f"""# Columns

The names under which a column is found, best first: where a file has several of one metric, the first one counts. Case,
blanks, and `/ . - : |` between words make no difference: `Train/Loss` and `train_loss` are one name.
`--column METRIC=NAME` names another one; `stabtree inspect` shows what was read as what.

## Which row it is

{_terms(axes, "column")}

## Metrics

{_terms(metrics, "column")}
"""


def _names(aliases: tuple[str, ...]) -> str:
    return ", ".join(map(code, aliases)) + "."


def _manifest() -> str:
    about, _, rest = (inspect.getdoc(manifest) or "").partition("\n\n")
    body = INDENTED.sub(lambda found: f"```text\n{dedent(found[0])}```\n", rest).replace(HERE, "listed below")
    keys: dict[str, Any] = {
        key: (_kind(read), f"Also {', '.join(map(code, others.split()))}." if others else "")
        for key, (read, others) in config.KEYS.items()
    }
    return f"# Manifest\n\n{about}\n\n{body}\n\n## Settings\n\n{_terms(keys, 'manifest')}\n"


def _kind(read: Any) -> str:
    """Describe what a setting must be, as the docstring of its reader says what it returns."""
    first = re.split("[,.;]", inspect.getdoc(read) or "a text")[0]
    return prose(first.removeprefix("Return ").removesuffix(" of at least `min_count`"))
