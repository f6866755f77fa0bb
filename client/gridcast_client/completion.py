"""Completion of the command in shells: the shell asks ``gridcast complete``, which asks the parser."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

SCRIPTS = {
    "bash": """\
_gridcast() {
    local IFS=$'\\n'
    COMPREPLY=($(gridcast complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _gridcast gridcast
""",
    "zsh": """\
#compdef gridcast
_gridcast() {
    local -a found
    found=("${(@f)$(gridcast complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[*]}" ]]; then compadd -a found; else _files; fi
}
compdef _gridcast gridcast
""",
    "fish": """\
complete -c gridcast -a '(gridcast complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}


def completions(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return what may stand for the last of *words*; none where only the caller knows, such as for a file."""
    *given, started = words or [""]
    previous = None
    for word in given:
        subparser = _subparsers(parser).get(word)
        if word == "--" and subparser is None:
            return []
        parser, previous = (subparser, None) if subparser else (parser, word)
    wanted = _option(parser, previous)
    if wanted is not None and wanted.nargs != 0:
        found = [str(choice) for choice in wanted.choices or ()]
    elif started.startswith("-"):
        found = [
            name for action in parser._actions for name in action.option_strings if name.startswith("--")
        ]
    else:
        found = _words(parser)
    return sorted(word for word in found if word.startswith(started))


def _words(parser: argparse.ArgumentParser) -> list[str]:
    commands = [name for name in _subparsers(parser) if name != "complete"]
    choices = [
        str(choice)
        for action in parser._actions
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction)
        for choice in action.choices or ()
    ]
    return commands + choices


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _option(parser: argparse.ArgumentParser, name: str | None) -> argparse.Action | None:
    return next((action for action in parser._actions if name in action.option_strings), None)
