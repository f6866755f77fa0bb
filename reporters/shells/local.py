"""Run programs on the reporter's own host, in a directory and with a reduced environment."""

from __future__ import annotations

import os
from collections.abc import Sequence

from probes.grid import Completed
from reporters import process
from reporters.account import own_home
from reporters.base import ConnectionLost, ResourceShell, TookTooLong
from reporters.error_lines import tail

# The reporter's other variables (tokens, database URLs) must not reach a probe.
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
# A reporter that is run by ``iotrace run`` or ``tokens run`` has its programs traced or limited.
_PRELOADING = ("LD_PRELOAD", "GRIDCAST_IOTRACE", "GRIDCAST_TOKENS")


class Shell(ResourceShell):
    """Runs programs on the reporter's own host.

    Args:
        directory: where programs run (default: home).
        path: the PATH of the programs (default: the PATH of the reporter).
    """

    def __init__(
        self, resource: str, label: str, *, directory: str | None = None, path: str | None = None
    ) -> None:
        super().__init__(resource, label)
        self._directory = directory or str(own_home())
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name in _PASSED_ON or name.startswith(_PRELOADING)
        }
        self.environment["LC_GRIDCAST_RUN"] = label
        if path is not None:
            self.environment["PATH"] = path
        self._started: list[process.Running] = []

    def connect(self, *, timeout_seconds: float) -> None:
        """Do nothing: there is no connection."""

    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        try:
            done = process.run(
                argv,
                timeout_seconds=timeout_seconds,
                input=input,
                env=self.environment,
                cwd=self._directory,
                containment=self.containment,
                limited=True,
            )
        except process.ProgramMissing as error:
            return Completed(127, "", f"{error}\n", 0.0)  # as a shell does
        except process.TimedOut as error:
            raise TookTooLong(
                f"{argv[0]} at {self.resource} ran longer than {timeout_seconds:g} s and was stopped",
                resource=self.resource,
                stderr_tail=tail(error.partial.stderr),
            ) from None
        except process.GuardianLost as error:
            raise ConnectionLost(f"{argv[0]} at {self.resource}: {error}", resource=self.resource) from None
        if done.returncode < 0:
            return Completed(128 - done.returncode, done.stdout, done.stderr, done.seconds)
        return done

    def start(self, argv: Sequence[str]) -> process.Running:
        running = process.start(
            argv, env=self.environment, cwd=self._directory, containment=self.containment, limited=True
        )
        self._started.append(running)
        return running

    def close(self) -> None:
        while self._started:
            self._started.pop().stop()
