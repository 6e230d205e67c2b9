"""The same log in another form, and damaged: what `invariance` does to the labelled runs."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

LOSSES = ("loss", "eval_loss")
NO_NUMBERS = ("step", "batch_id")


class Log(NamedTuple):
    """A log as the header and the cells of a table; what was not logged is empty."""

    names: list[str]
    rows: list[list[str]]

    @classmethod
    def read(cls, path: Path) -> Log:
        """The log of a labelled run: CSV without quotes, or JSON lines."""
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix == ".csv":
            names, *rows = (line.split(",") for line in lines)
            return cls(names, rows)
        records = [json.loads(line) for line in lines]
        names = list(dict.fromkeys(name for record in records for name in record))
        return cls(names, [[str(record.get(name, "")) for name in names] for record in records])

    def csv(self, mark: str = ",") -> str:
        """The text of a delimited file."""
        return "".join(f"{line}\n" for line in self.lines(mark))

    def lines(self, mark: str = ",") -> list[str]:
        """Its lines, the header first."""
        return [mark.join(row) for row in (self.names, *self.rows)]

    def jsonl(self, cell: Callable[[str, str], object]) -> str:
        """The text of JSON lines; `cell` gives the value of a column's cell, None for none."""
        records = (
            {name: value for name, text in zip(self.names, row, strict=True) if (value := cell(name, text)) is not None}
            for row in self.rows
        )
        return "".join(json.dumps(record) + "\n" for record in records)

    def at(self, name: str) -> int:
        """The place of a column."""
        return self.names.index(name)

    def mapped(self, change: Callable[[float], float], *names: str) -> Log:
        """The numbers of some columns changed, those of all metrics where none is named."""
        places = {i for i, name in enumerate(self.names) if (name in names if names else name not in NO_NUMBERS)}
        rows = [
            [repr(change(float(cell))) if i in places and cell else cell for i, cell in enumerate(row)]
            for row in self.rows
        ]
        return self._replace(rows=rows)


class Change(NamedTuple):
    """What is done to a log.

    Attributes:
        name: what it is called.
        make: the changed log, or its text.
        damage: whether it is a corruption, of which a reader has to be told.
        why: why it may change a verdict; empty where none may change.
        scale: leaves that rest on the absolute scale of what is changed, so that they may come and go.
    """

    name: str
    make: Callable[[Log, Random], Log | str]
    damage: bool = False
    why: str = ""
    scale: tuple[str, ...] = ()


# ------------------------------------------------------------------ the same run, logged otherwise
def _columns_shuffled(log: Log, dice: Random) -> Log:
    order = dice.sample(range(len(log.names)), len(log.names))
    return Log([log.names[i] for i in order], [[row[i] for i in order] for row in log.rows])


def _nan_rows_tripled(log: Log, _: Random) -> Log:
    loss = log.at("loss")
    return log._replace(rows=[row for row in log.rows for _ in range(3 if row[loss].lower() == "nan" else 1)])


def _ranks(log: Log, *order: str) -> Log:
    return Log(["rank", *log.names], [[rank, *row] for row in log.rows for rank in order])


def _decimal_commas(log: Log, _: Random) -> str:
    return Log(log.names, [[cell.replace(".", ",") for cell in row] for row in log.rows]).csv(";")


def _stepped(log: Log, change: Callable[[int], int]) -> Log:
    step = log.at("step")
    rows = [[*row[:step], str(change(int(row[step]))), *row[step + 1 :]] for row in log.rows]
    return log._replace(rows=rows)


def _shuffled(log: Log, dice: Random, within: int) -> Log:
    starts = range(0, len(log.rows), within)
    blocks = (log.rows[start : start + within] for start in starts)
    return log._replace(rows=[row for block in blocks for row in dice.sample(block, len(block))])


CLIP = ("always-clipped", "clip-before-unscale")
CLASSES = ("starts-near-zero", "starts-above-chance", "double-softmax")
BEGAN = ("slow-learning", "lr-too-low")
BEGIN = "what asks how the run began is not asked"
SHARES = "a fall, a rise and what is slow are shares of the loss, which an offset makes smaller"
ORDER = "a log in no order is not judged"
EMPTY = "an empty cell is how NaN is written by pandas and JSON"
TWICE = "two runs in one file are two"
SILENT = "in a log of two or three columns nothing tells it from a loss that stops"
UNPROVED = "no cell is missing, and nothing says which column is which"
AROUND = "a loss that scatters by as much as its level has any sign by itself"
FEWER = "rows that are gone took their evidence along"

TRANSFORMATIONS = (
    Change("columns shuffled", _columns_shuffled),
    Change("noise 1e-12", lambda log, dice: log.mapped(lambda value: value * (1 + dice.uniform(-1e-12, 1e-12)))),
    Change("four digits", lambda log, _: log.mapped(lambda value: float(f"{value:.4g}"))),
    Change("rows doubled", lambda log, _: log._replace(rows=[row for row in log.rows for _ in range(2)])),
    Change("NaN rows tripled", _nan_rows_tripled),
    Change("two equal ranks", lambda log, _: _ranks(log, "0", "1")),
    Change("two equal ranks, swapped", lambda log, _: _ranks(log, "1", "0")),
    Change("all names twice", lambda log, _: Log([*log.names, *log.names], [[*row, *row] for row in log.rows])),
    Change("semicolons", lambda log, _: log.csv(";")),
    Change("tabs", lambda log, _: log.csv("\t")),
    Change("decimal commas", _decimal_commas),
    Change("grad_norm x1e-6", lambda log, _: log.mapped(lambda value: value * 1e-6, "grad_norm")),
    Change("grad_norm x1e6", lambda log, _: log.mapped(lambda value: value * 1e6, "grad_norm"), scale=CLIP),
    Change("loss x1e-6", lambda log, _: log.mapped(lambda value: value * 1e-6, *LOSSES), scale=(*CLASSES, *BEGAN)),
    Change("loss x1e6", lambda log, _: log.mapped(lambda value: value * 1e6, *LOSSES), scale=CLASSES),
    Change("loss +10", lambda log, _: log.mapped(lambda value: value + 10, *LOSSES), why=SHARES, scale=CLASSES),
    Change("loss -10", lambda log, _: log.mapped(lambda value: value - 10, *LOSSES), why=SHARES, scale=CLASSES),
    Change("loss +1000", lambda log, _: log.mapped(lambda value: value + 1000, *LOSSES), why=SHARES, scale=CLASSES),
    Change("steps x1000", lambda log, _: _stepped(log, lambda step: step * 1000)),
    Change("steps +1e9", lambda log, _: _stepped(log, lambda step: step + 10**9), why=BEGIN),
    Change("shuffled within 5", lambda log, dice: _shuffled(log, dice, 5)),
    Change("shuffled fully", lambda log, dice: _shuffled(log, dice, len(log.rows)), why=ORDER),
    Change("every second row", lambda log, _: log._replace(rows=log.rows[::2]), why=FEWER),
    Change("90% of the rows", lambda log, d: log._replace(rows=[r for r in log.rows if d.random() < 0.9]), why=FEWER),
)


# ------------------------------------------------------------------ damaged cells, in a share of the rows
def _cells(log: Log, dice: Random, share: float, spoil: Callable[[str], list[str]]) -> Log:
    """The cell of the loss replaced in a share of the rows, by any number of cells."""
    loss = log.at("loss")
    rows = [
        [*row[:loss], *spoil(row[loss]), *row[loss + 1 :]] if row[loss] and dice.random() < share else row
        for row in log.rows
    ]
    return log._replace(rows=rows)


def _json_cells(log: Log, dice: Random, share: float, spoil: Callable[[float], object]) -> str:
    """The same in JSON lines, where a cell may be anything."""

    def cell(name: str, text: str) -> object:
        if not text or name == "batch_id":
            return text or None
        value = float(text)
        if name == "loss" and dice.random() < share:
            return spoil(value)
        return int(value) if name == "step" else value

    return log.jsonl(cell)


def _dot_lost(cell: str) -> list[str]:
    return [cell.replace(".", "")]


def _flipped(cell: str) -> list[str]:
    return [cell[1:] if cell.startswith("-") else f"-{cell}"]


SPOILT: dict[str, Callable[[str], list[str]]] = {
    "points lost": _dot_lost,
    "signs flipped": _flipped,
    "empty": lambda _: [""],
    "text": lambda _: ["error"],
    "decimal comma": lambda cell: [f'"{cell.replace(".", ",")}"'],
    "quote open": lambda cell: [f'"{cell}'],
    "cell missing": lambda _: [],
    "cell too many": lambda cell: [cell, cell],
}
SPOILT_JSON: dict[str, Callable[[float], object]] = {
    "list": lambda value: [value],
    "boolean": lambda value: value > 1,
}


def _garbled() -> list[Change]:
    found = []
    for percent in (10, 30, 60):
        for name, spoil in SPOILT.items():
            make = partial(_cells, share=percent / 100, spoil=spoil)
            why = EMPTY if name == "empty" else ""
            if name == "signs flipped" and percent > 50:
                why = AROUND
            found.append(Change(f"{name}, {percent}%", make, damage=True, why=why))
        for name, spoil_json in SPOILT_JSON.items():
            make_json = partial(_json_cells, share=percent / 100, spoil=spoil_json)
            found.append(Change(f"{name}, {percent}%", make_json, damage=True))
    return found


# ------------------------------------------------------------------ damaged files
def _midway(log: Log, change: Callable[[list[str]], list[str]]) -> Log:
    half = len(log.rows) // 2
    return log._replace(rows=[*log.rows[:half], *map(change, log.rows[half:])])


def _header_again(log: Log, order: list[int]) -> Log:
    half = len(log.rows) // 2
    again = [[row[i] for i in order] for row in (log.names, *log.rows[half:])]
    return log._replace(rows=[*log.rows[:half], *again])


def _between(log: Log, line: str) -> str:
    """A line of another kind after every tenth row."""
    lines = [text for i, row in enumerate(log.lines()) for text in ([row, line] if i % 10 == 9 else [row])]
    return "\n".join(lines) + "\n"


def _open_quote_midway(log: Log, _: Random) -> Log:
    half = len(log.rows) // 2
    rows = [[*row, '"cut' if i == half else "text"] for i, row in enumerate(log.rows)]
    return Log([*log.names, "text"], rows)


def _joined(log: Log, _: Random) -> str:
    """Without the line end of every tenth row."""
    return "".join(line + ("" if i % 10 == 9 else "\n") for i, line in enumerate(log.lines()))


def _last_empty(log: Log, _: Random) -> Log:
    last = [cell if name in ("step", "lr") else "" for name, cell in zip(log.names, log.rows[-1], strict=True)]
    last[log.at("step")] = str(int(last[log.at("step")]) + 1)
    return log._replace(rows=[*log.rows, last])


def _steps_empty(log: Log, dice: Random) -> Log:
    step = log.at("step")
    rows = [[*row[:step], "" if dice.random() < 0.1 else row[step], *row[step + 1 :]] for row in log.rows]
    return log._replace(rows=rows)


def _halved(log: Log, _: Random) -> str:
    """Cut inside a line."""
    text = log.csv()
    return text[: math.ceil(len(text) / 2)]


WHY = {
    **dict.fromkeys(("shift left midway", "shift left midway, short", "shift right midway"), SILENT),
    "columns swapped midway": UNPROVED,
    "all rows twice": TWICE,
    "cut in half": FEWER,
}
CORRUPTIONS = (
    *_garbled(),
    *(
        Change(name, make, damage=True, why=WHY.get(name, ""))
        for name, make in {
            "shift left midway": lambda log, _: _midway(log, lambda row: [row[0], *row[2:], ""]),
            "shift left midway, short": lambda log, _: _midway(log, lambda row: [row[0], *row[2:]]),
            "shift right midway": lambda log, _: _midway(log, lambda row: [row[0], "", *row[1:-1]]),
            "shift right midway, long": lambda log, _: _midway(log, lambda row: [row[0], "0.5", *row[1:]]),
            "columns swapped midway": lambda log, _: _midway(log, lambda row: [row[0], *row[2:0:-1], *row[3:]]),
            "header again": lambda log, _: _header_again(log, list(range(len(log.names)))),
            "header again, reordered": lambda log, _: _header_again(log, list(range(len(log.names)))[::-1]),
            "text with open quotes": lambda log, _: Log([*log.names, "text"], [[*row, '"cut at'] for row in log.rows]),
            "one open quote midway": _open_quote_midway,
            "NUL bytes": lambda log, _: _between(log, "\0" * 40),
            "blank lines": lambda log, _: _between(log, ""),
            "comments": lambda log, _: _between(log, "# saved"),
            "CR LF": lambda log, _: log.csv().replace("\n", "\r\n"),
            "all rows twice": lambda log, _: log._replace(rows=[*log.rows, *log.rows]),
            "cut in half": _halved,
            "lines joined": _joined,
            "a last row without a loss": _last_empty,
            "steps empty, 10%": _steps_empty,
        }.items()
    ),
)
CHANGES = {change.name: change for change in (*TRANSFORMATIONS, *CORRUPTIONS)}
