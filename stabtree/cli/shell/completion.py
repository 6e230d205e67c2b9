"""`stabtree completion SHELL`: a few lines for a shell, which asks the hidden `_complete` at each Tab.

What can stand at a place is known here alone, so that it is never older than the program.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.shell.printing import emit
from stabtree.cli.shell.routes import ASK, USUAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

FILES: tuple[str, ...] = ()  # a shell completes files where nothing else fits


class Shell(StrEnum):
    """The shells that can ask."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS = {
    Shell.BASH: f"""_stabtree() {{
    local IFS=$'\\n'
    COMPREPLY=($(stabtree {ASK} bash -- "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null))
    case "${{COMPREPLY[0]-}}" in *[=.]) compopt -o nospace 2>/dev/null ;; esac
}}
complete -o bashdefault -o default -F _stabtree stabtree
""",
    Shell.ZSH: f"""#compdef stabtree
_stabtree() {{
    local -a found
    found=(${{(f)"$(stabtree {ASK} zsh -- "${{(@)words[2,CURRENT]}}" 2>/dev/null)"}})
    if (( ! $#found )); then _files
    elif [[ $found[1] == *[=.] ]]; then compadd -S '' -a found
    else compadd -a found
    fi
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit -u }}
compdef _stabtree stabtree
""",
    Shell.FISH: f"""function __stabtree
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l found (stabtree {ASK} fish -- $words[2..-1] "$last" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$last"
    end
end
complete -c stabtree -f -a '(__stabtree)'
""",
}


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the completion for a shell: `eval "$(stabtree completion bash)"` in its start-up file turns it on.

    For zsh the same line with zsh; for fish `stabtree completion fish | source`.
    """
    emit(SCRIPTS[shell])


def complete(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument()],
    words: Annotated[list[str] | None, typer.Argument()] = None,
) -> None:
    """Print what may stand in place of the last of the words, a line each."""
    given, split = glued(words or [""])
    found = candidates(given, context.find_root().command)
    if shell is Shell.BASH and split:  # it replaces only what stands behind the sign
        found = [item.rpartition("=")[2] for item in found]
    if found:
        emit("\n".join(found))


def glued(words: Sequence[str]) -> tuple[list[str], bool]:
    """The words without the cuts that bash makes at each equals sign, and whether it cut the last one."""
    found: list[str] = []
    open_ = split = False
    for word in words:
        split = bool(found) and (word == "=" or open_)
        if split:
            found[-1] += word
        else:
            found.append(word)
        open_ = word == "="
    return found, split


def candidates(words: Sequence[str], root: Any) -> list[str]:
    """What may stand in place of the last word, given those before it.

    Args:
        words: what stands after the program's name, the last one as far as it is typed.
        root: the program's command.
    """
    *before, last = words
    command, before = _command(root, before)
    if command is root and last.startswith("-"):
        command = root.get_command(None, USUAL)
    options = {name: param for param in command.params for name in param.opts if name.startswith("-")}
    name, equals, _ = last.partition("=")
    if equals and name in options:
        return _fitting([f"{name}={item}" for item in _values(command, name, last.partition("=")[2])], last)
    if before and before[-1] in options and not options[before[-1]].is_flag:
        return _fitting(_values(command, before[-1], last), last)
    if last.startswith("-"):
        return _fitting([*options, "--help"], last)
    if hasattr(command, "commands"):
        return _fitting([*command.list_commands(None), *(["help"] if command is root else [])], last)
    return _fitting(_arguments(command, root), last)


def _command(root: Any, words: list[str]) -> tuple[Any, list[str]]:
    """The command that words are of, and those behind its name; a path or an option alone is of `diagnose`."""
    command, rest = root, [*words]
    if rest[:1] == ["help"]:
        del rest[0]
    while rest and hasattr(command, "commands") and (inner := command.get_command(None, rest[0])):
        command, rest = inner, rest[1:]
    return (root.get_command(None, USUAL), rest) if command is root and rest else (command, rest)


def _fitting(items: Iterable[str], start: str) -> list[str]:
    return sorted({item for item in items if item.startswith(start)})


def _values(command: Any, option: str, start: str) -> Iterable[str]:
    """What an option may be given."""
    if command.name == "graph" and option == "--format":
        return "mermaid", "dot"
    if option == "--output":
        return _outputs(command)
    if option == "--by":
        return _groupings(command)
    return VALUES[option](start) if option in VALUES else FILES


def _arguments(command: Any, root: Any) -> Iterable[str]:
    """What a command may be given."""
    from stabtree.tree.load import shipped

    if command.name == "explain":
        return _ids()
    if command.name in ("completion", ASK):
        return tuple(Shell)
    if command.name == "predicates":
        from stabtree.predicates import predicate_names

        return predicate_names()
    trees = [root.commands["tree"].commands[name] for name in ("show", "graph", "check", "test")]
    return shipped() if command in trees else FILES


def _ids() -> list[str]:
    from stabtree.metrics.table import by_name
    from stabtree.tree.load import shipped_titles

    return [*shipped_titles(), *by_name()]


def _trees(_start: str) -> Iterable[str]:
    from stabtree.tree.load import shipped

    return shipped()


def _settable(start: str) -> list[str]:
    """Ids, then the parameters of the one that was typed: `Q2.1.sigma=`."""
    from stabtree.tree.load import load_defining
    from stabtree.tree.overrides import declared

    id_ = start.rpartition(".")[0]
    tree = load_defining(id_) if id_ else None
    known = declared(tree, id_) if tree and id_ in tree.questions else {}
    return [f"{id_}.{name}=" for name in known] or [f"{item}." for item in _questions()]


def _answers(start: str) -> list[str]:
    """Ids, then the verdicts of the one that was typed: `Q1.2=fp16`."""
    from stabtree.tree.load import load_defining

    id_, equals, _ = start.partition("=")
    tree = load_defining(id_) if equals else None
    if tree and id_ in tree.questions:
        question = tree.questions[id_]
        return [f"{id_}={word}" for word in (*question.go, *question.words)]
    return [f"{item}=" for item in _questions()]


def _questions() -> list[str]:
    return [id_ for id_ in _ids() if id_[:1].isupper()]


def _leaves(_start: str) -> list[str]:
    from stabtree.tree.load import load_preflight, load_trees

    return [*load_trees().leaves, *load_preflight().leaves]


def _nodes(_start: str) -> list[str]:
    from stabtree.diagnosis.why.not_reached import standing_for
    from stabtree.tree.load import load_trees

    return [*standing_for(load_trees())]


def _levels(_start: str) -> list[str]:
    from stabtree.common.answer import UNKNOWN
    from stabtree.judging.levels import LEVELS, NEVER

    return [*LEVELS, UNKNOWN, NEVER]


def _outputs(command: Any) -> Iterable[str]:
    """The outputs of a command; `baseline` is given a file alone."""
    from stabtree.render.outputs import CALIBRATIONS, COMPARISONS, FLEET, OUTPUTS, WATCHES, checks

    own: dict[str, Iterable[str]] = {"baseline": FILES, "calibrate": CALIBRATIONS, "compare": COMPARISONS}
    own |= {"check": checks(), "scan": FLEET, "watch": WATCHES}
    return own.get(command.name, OUTPUTS)


def _groupings(command: Any) -> Iterable[str]:
    """What rows are matched by, or what runs are grouped by."""
    from stabtree.cli.scan import BY
    from stabtree.comparing.result import Axis

    return BY if command.name == "scan" else tuple(Axis)


def _alarms(_start: str) -> Iterable[str]:
    from stabtree.cli.calibrate import LEVELS

    return LEVELS


def _formats(_start: str) -> list[str]:
    from stabtree.loaders import LOADERS

    return [loader.name for loader in LOADERS]


def _dtypes(_start: str) -> Iterable[str]:
    from stabtree.run import PRECISIONS

    return PRECISIONS


VALUES: dict[str, Callable[[str], Iterable[str]]] = {
    "--answer": _answers,
    "--applied": lambda _start: _questions(),
    "--dtype": _dtypes,
    "--fail-on": _levels,
    "--format": _formats,
    "--ignore": _leaves,
    "--level": _alarms,
    "--set": _settable,
    "--tree": _trees,
    "--why-not": _nodes,
}
"""What an option may be given, by its name; files for any other."""
