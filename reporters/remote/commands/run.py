"""``run``: run the assigned series by their schedules, and deliver their reports, until SIGTERM."""

from __future__ import annotations

import argparse

from reporters.remote.agent.agent import Agent
from reporters.remote.errors import UsageFault
from reporters.remote.options import add_state, state_path
from reporters.remote.state_directory import StateDirectory, StateError


class Command:
    summary = "Run the assigned series and deliver their reports, until SIGTERM."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        add_state(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        try:
            return Agent(StateDirectory.open(state_path(options))).serve()
        except StateError as error:
            raise UsageFault(str(error)) from None
