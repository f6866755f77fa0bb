"""``python -m tests.monitor.agents.launch DIRECTORY``: the agent at a site, by the clock of the site."""

from __future__ import annotations

import sys
from pathlib import Path

from reporters.remote.agent.agent import Agent
from reporters.remote.kept_clock import KeptClock
from reporters.remote.state_directory import StateDirectory
from tests.monitor.agents.conditions import Conditions

if __name__ == "__main__":
    directory = Path(sys.argv[1])
    conditions = Conditions(directory)
    conditions.limit_files()
    state = StateDirectory.open(directory / "state")
    sys.exit(Agent(state, KeptClock(state, wall=conditions.wall_seconds)).serve())
