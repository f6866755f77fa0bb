"""``run``: run the assigned series by their schedules, and deliver their reports, until SIGTERM."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from reporters.remote import unpacked
from reporters.remote.errors import UsageFault
from reporters.remote.options import add_state, state_path
from reporters.remote.state_directory import StateDirectory, StateError

_SOURCES = Path(__file__).resolve().parents[3]


class Command:
    summary = "Run the assigned series and deliver their reports, until SIGTERM."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        add_state(parser)
        parser.add_argument(
            "--quiet", action="store_true", help="write messages to agent.log in the state directory only"
        )
        parser.add_argument(
            "--if-not-running", action="store_true", help="do nothing while an agent runs on this host"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        path = state_path(options)
        if options.if_not_running and _is_running(path):
            return 0
        try:
            state = StateDirectory.open(path)
            code = unpacked.make(state.path) or _SOURCES
        except (StateError, unpacked.NotUnpacked) as error:
            raise UsageFault(str(error)) from None
        # Only now, so that it is loaded from there.
        start = importlib.import_module("reporters.remote.agent.start")
        start.compile_agent(code)
        command = start.command_line(code, state.path, is_quiet=options.quiet)
        os.execv(command[0], command)  # noqa: S606  # the agent needs no shell
        raise AssertionError("another program runs in place of this one")


def _is_running(state: Path) -> bool:
    """Return whether an older process on this host is an agent or becomes one; the oldest goes on."""
    processes = importlib.import_module("reporters.remote.agent_process").pids(state)
    return os.getpid() not in processes[:1] and bool(processes)
