"""The command line of the reporter at a site: one module of ``commands`` for each command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from reporters.remote import unpacked
from reporters.remote.errors import UsageFault
from reporters.remote.options import early_state_path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that *argv* names (default: the arguments of the process); return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    state = early_state_path(arguments)
    if state is not None:
        unpacked.use(state)
    from reporters.remote import commands  # noqa: PLC0415  # only now, so that it comes from there

    parser = argparse.ArgumentParser(
        prog="gridcast-reporter", description="Run probes of gridcast at this site and report their results."
    )
    verbs = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    # Only the modules of the command: the agent runs for months in the memory that it has at its start.
    named = [name for name in commands.names() if name == (arguments or [""])[0]]
    for name in named or commands.names():
        command = commands.load(name)
        command.add_arguments(verbs.add_parser(name, help=command.summary, description=command.summary))
    options = parser.parse_args(arguments)
    try:
        status = commands.load(options.command).run(options)
        sys.stdout.flush()  # so that a closed output is noticed here
    except UsageFault as error:
        sys.stderr.write(f"gridcast-reporter {options.command}: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # Python flushes it once more at its end
        return 141
    return status
