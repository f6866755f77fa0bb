"""The start of the agent's process: its command line, and its errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

_QUIET = "--quiet"


def command_line(code: Path, state: Path, *, is_quiet: bool) -> list[str]:
    """Return the command that runs the agent of *state* by the packages in *code*.

    Python runs it isolated, and without the packages of the site.
    """
    program = code / "reporters" / "remote" / "agent" / "__main__.py"
    quiet = [_QUIET] if is_quiet else []
    return [sys.executable, "-IS", str(program), "run", "--state", str(state), *quiet]


def compile_agent(code: Path) -> None:
    """Compile the agent in *code* by this process, if this version of Python has not done so.

    The agent itself would keep the memory that it takes, a megabyte, until its next start.
    """
    import importlib.util  # noqa: PLC0415  # not for the agent

    file = code / "reporters" / "remote" / "agent" / "agent.py"
    if not Path(importlib.util.cache_from_source(str(file))).exists():
        importlib.import_module("reporters.remote.agent.agent")


def main(code: Path, arguments: Sequence[str]) -> int:
    """Run the agent as the *arguments* of ``command_line`` say; return the exit status."""
    # Only now: the command ``run`` loads this module, too.
    from reporters.remote import this_archive  # noqa: PLC0415
    from reporters.remote.agent.agent import Agent  # noqa: PLC0415
    from reporters.remote.errors import UsageFault  # noqa: PLC0415
    from reporters.remote.state_directory import StateDirectory, StateError  # noqa: PLC0415

    _, _, state, *quiet = arguments
    unpacked = code if this_archive.sha256() else None
    try:
        return Agent(StateDirectory.open(Path(state)), code=unpacked, is_quiet=_QUIET in quiet).serve()
    except (StateError, UsageFault) as error:
        sys.stderr.write(f"gridcast-reporter run: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
