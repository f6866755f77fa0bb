"""``run``: run the assigned series by their schedules, and deliver their reports, until SIGTERM."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from reporters.remote import agent_process
from reporters.remote.agent.agent import Agent
from reporters.remote.errors import UsageFault
from reporters.remote.options import add_state, state_path
from reporters.remote.state_directory import StateDirectory, StateError


class Command:
    summary = "Run the assigned series and deliver their reports, until SIGTERM."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        add_state(parser)
        parser.add_argument(
            "--if-not-running", action="store_true", help="do nothing while an agent runs on this host"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        state = state_path(options)
        if options.if_not_running and _is_running(state):
            return 0
        try:
            return Agent(StateDirectory.open(state)).serve()
        except StateError as error:
            raise UsageFault(str(error)) from None


def _is_running(state: Path) -> bool:
    return bool(set(agent_process.pids(state)) - {os.getpid()})
