"""`stabtree info completion SHELL`: a few lines for a shell, which asks the hidden `_complete` at each Tab.

Typer finds what fits: commands, options, and the values that an option declares. Its own lines for shells are not used:
they lose `--output=ht` where bash splits words at the equals sign, add a blank after `Q2.1.sigma=`, and don't know that
`stabtree run.csv --` means `diagnose`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer._click.shell_completion import CompletionItem, ShellComplete

from stabtree.cli.program.commands import commands
from stabtree.cli.program.routes import ASK, USUAL, routed
from stabtree.cli.shell.printing import emit
from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Sequence


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


class Candidates(ShellComplete):
    """Typer's search for what fits; how shells ask and are answered is in `SCRIPTS`."""

    def source_vars(self) -> dict[str, Any]:
        """Return nothing: there is no template."""
        return {}

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return nothing: the words are arguments of `_complete`."""
        return [], ""

    def format_completion(self, item: CompletionItem) -> str:
        """Return the candidate alone."""
        return str(item.value)


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the completion for a shell: `eval "$(stabtree info completion bash)"` in its start-up file turns it on.

    For zsh type the same line with zsh; for fish `stabtree info completion fish | source`.
    """
    emit(SCRIPTS[shell])


def complete(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument()],
    words: Annotated[list[str] | None, typer.Argument()] = None,
) -> None:
    """Print what fits in place of the last word, one candidate a line."""
    given, split = joined(words or [""])
    found = candidates(given, context.find_root().command)
    if shell is Shell.BASH and split:  # bash replaces only what is behind the sign
        found = [item.rpartition("=")[2] for item in found]
    if found:
        emit("\n".join(found))


def joined(words: Sequence[str]) -> tuple[list[str], bool]:
    """Undo the cuts that bash makes at each equals sign; also return whether it cut the last word."""
    found: list[str] = []
    after_sign = split = False
    for word in words:
        split = bool(found) and (word == "=" or after_sign)
        if split:
            found[-1] += word
        else:
            found.append(word)
        after_sign = word == "="
    return found, split


def candidates(words: Sequence[str], root: Any) -> list[str]:
    """Return what fits in place of the last word, given those before it, sorted.

    Args:
        words: what is typed after the program's name, the last word perhaps in part.
        root: the program.
    """
    *before, last = words
    found = Candidates(root, {}, "stabtree", "").get_completions(_routed(before, last), last)
    name, equals, _ = last.partition("=")
    prefix = f"{name}=" if equals and last.startswith("-") else ""  # Typer offers the value alone
    return sorted({f"{prefix}{item.value}" for item in found})


def _routed(before: list[str], last: str) -> list[str]:
    """Return the words with the command they are for in front; an option alone is one of `diagnose`."""
    if not before:
        return [USUAL] if last.startswith("-") else []
    try:
        return routed(before, commands())
    except StabtreeError:
        return [USUAL, *before]
