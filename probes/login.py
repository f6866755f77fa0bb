"""Login: the time to run ``true`` over a new connection and over an open connection.

The difference is the cost of a login: name service, network, key exchange, accounts and the start-up of the
shell. A slow login is the first symptom of an overloaded head node that users notice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median
from typing import ClassVar

from probes.base import Measurement, Parameter, Role, RunPlan, Stage, Value
from probes.common import checks
from probes.grid import Grid

_COMMAND_TIMEOUT_SECONDS = 60.0


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Times a fresh login, and a command over an open connection."
    roles = {"target": Role(1, 1, "accepts the logins")}
    parameters = {"logins": Parameter(1, "number of consecutive logins; the median is reported", 1, 20)}
    trial: ClassVar[Mapping[str, Value]] = {}
    stages = (
        Stage("init", "setup"),
        Stage("login", "compute"),
        Stage("command", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")
        self.logins = plan.integer("logins")

    def init(self) -> None:
        checks.check_resources(self.grid, {self.target: checks.Needs(0, ("true",))})

    def login(self) -> list[Measurement]:
        seconds = [self.grid.login(self.target) for _ in range(self.logins)]
        return [
            Measurement("login.seconds", median(seconds), "seconds"),
            Measurement("login.slowest.seconds", max(seconds), "seconds"),
        ]

    def command(self) -> list[Measurement]:
        shell = self.grid.shell(self.target)
        began = time.monotonic()  # includes the start of the ssh client, as the time of a login does
        shell.check(["true"], timeout_seconds=_COMMAND_TIMEOUT_SECONDS, doing="run a program")
        return [Measurement("command.seconds", time.monotonic() - began, "seconds")]

    def cleanup(self) -> None:
        self.grid.clean_up()
