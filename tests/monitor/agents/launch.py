"""``python -m tests.monitor.agents.launch DIRECTORY``: the agent at a site, by the clock of the site."""

from __future__ import annotations

import sys
from pathlib import Path

from reporters.remote.agent.agent import Agent
from reporters.remote.clock import SiteClock
from reporters.remote.state_directory import StateDirectory
from tests.monitor.agents.conditions import Conditions

if __name__ == "__main__":
    directory = Path(sys.argv[1])
    conditions = Conditions(directory)
    conditions.limit_files()
    sys.exit(Agent(StateDirectory.open(directory / "state"), SiteClock(wall=conditions.wall_seconds)).serve())
