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
            code = unpacked.make(state.path)
            # Only now, so that the agent is loaded from there.
            agent = importlib.import_module("reporters.remote.agent.agent").Agent
            status: int = agent(state, code=code, is_quiet=options.quiet).serve()
        except (StateError, unpacked.NotUnpacked) as error:
            raise UsageFault(str(error)) from None
        return status


def _is_running(state: Path) -> bool:
    """Return whether an older process on this host is an agent or becomes one; the oldest goes on."""
    processes = importlib.import_module("reporters.remote.agent_process").pids(state)
    return os.getpid() not in processes[:1] and bool(processes)
