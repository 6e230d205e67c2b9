"""What the name of a file says about it, and whether a text that no loader reads may be a log all the same."""

from __future__ import annotations

import re
from collections import Counter

from stabtree.loaders.folder import SETTINGS
from stabtree.loaders.json import trainer_state

PACKINGS = (".gz", ".bz2", ".xz", ".zst")
EVENTS = "tfevents"
PRINTED = (".log", ".out", ".err")
"""Endings of what a program printed, which may hold no metrics at all."""
LOGS = frozenset((*PRINTED, ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".feather", ".arrow", ".wandb"))
"""Endings of files that are logs, or should be: one that can't be read is reported."""
_CODE = ".py .pyc .ipynb .sh .bat .ps1 .c .cc .cpp .h .hpp .cu .java .go .rs .jl .m .r .js .ts .css .lock .patch .diff"
_TEXTS = ".yaml .yml .toml .cfg .ini .md .rst .html .htm .xml .proto .tex .bib .jinja .jinja2 .bak .swp .pid .index"
_WEIGHTS = ".pt .pth .ckpt .bin .safetensors .npz .npy .pkl .pickle .h5 .hdf5 .onnx .msgpack .pb .pbtxt .gguf .model"
_PICTURES = ".pdf .png .jpg .jpeg .gif .svg .webp .bmp .tif .tiff .mp4 .avi .wav .mp3 .flac .ttf"
_PACKED = ".zip .tar .tgz .7z .rar .whl .so .dll .exe"
NO_LOGS = frozenset(" ".join((_CODE, _TEXTS, _WEIGHTS, _PICTURES, _PACKED)).split(" "))
"""Endings of files that are never opened: code, pages, weights, pictures, archives."""
PASSED_BY = frozenset(("node_modules", "__pycache__", "site-packages", "venv"))
OTHERS = frozenset(
    (
        *SETTINGS,
        "all_results.json",
        "train_results.json",
        "eval_results.json",
        "wandb-summary.json",
        "wandb-metadata.json",
        "debug-core.log",
        "debug-internal.log",
        "generation_config.json",
        "preprocessor_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "merges.txt",
        "requirements.txt",
    )
)
"""Settings, final values, vocabularies and a logger's own messages, which lie beside metrics and hold none."""
_COPY = re.compile(r"(checkpoint|global_step)[-_]?\d+")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf)(?![\w.]*\w)", re.IGNORECASE)
_DIGITS = re.compile(r"[-+]?\d[\d.]*")
_WORD = re.compile(r"[A-Za-z]{2}")
MIN_ALIKE = 3  # lines of one shape; as many rows as the shortest run has
MAX_LINE = 2000  # characters of a line that is looked at


def ending(name: str) -> str:
    """Return the ending of a file's name without that of its packing."""
    _, *parts = name.lower().lstrip(".").split(".")  # as `Path.suffixes`, in a tenth of the time
    if not parts or not parts[-1]:
        return ""
    last = f".{parts[-1]}"
    if last not in PACKINGS:
        return last
    return f".{parts[-2]}" if len(parts) > 1 else ""


def is_log(name: str) -> bool:
    """Return whether a file's name says that it is a log."""
    return ending(name) in LOGS or EVENTS in name or name == trainer_state.NAME


def may_be_log(name: str) -> bool:
    """Return whether a file may be a log, as far as its name shows."""
    return name not in OTHERS and (is_log(name) or ending(name) not in NO_LOGS)


def is_copy(folder: str) -> bool:
    """Return whether a folder's name is that of a checkpoint, whose log is a copy of the run's."""
    return _COPY.fullmatch(folder) is not None


def shape_of(text: str) -> str:
    """Return a text with its numbers blotted out, and of lines that are then the same the first alone."""
    lines = _DIGITS.sub("#", text).splitlines()
    return "\n".join(line for line, before in zip(lines, ["", *lines], strict=False) if line != before)


def holds_rows(text: str) -> bool:
    """Return whether a text repeats a line of words and two or more numbers, as whatever prints metrics does."""
    shapes: Counter[str] = Counter()
    for line in text.splitlines():
        shape, numbers = _NUMBER.subn("#", line[:MAX_LINE])
        if numbers > 1 and _WORD.search(shape):
            shapes[shape] += 1
    return max(shapes.values(), default=0) >= MIN_ALIKE
