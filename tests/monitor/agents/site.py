"""A site with an agent and a feeder, each a process that is started again whenever it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from monitor.core.env import ROOT
from tests.monitor.agents.conditions import Conditions
from tests.monitor.agents.feeder import Numbers

AGENT, FEEDER = "agent", "feeder"
_MODULES = {AGENT: "tests.monitor.agents.launch", FEEDER: "tests.monitor.agents.feeder"}
_STOP_SECONDS = 120.0


class Site:
    """The site *name*, with its files in *directory*."""

    def __init__(self, name: str, directory: Path) -> None:
        directory.mkdir()
        self.name, self.directory = name, directory
        self.conditions, self.numbers = Conditions(directory), Numbers(directory)
        self._log: IO[bytes] = (directory / "log").open("ab")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def enrol(self, url: str, code: str) -> None:
        argv = ["enrol", url, code, "--state", str(self.directory / "state")]
        start = [sys.executable, "-c", "from reporters.remote.main import main; raise SystemExit(main())"]
        done = subprocess.run([*start, *argv], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, *kinds: str) -> None:
        """Start those of *kinds* that do not run."""
        for kind in kinds:
            if kind not in self._processes or self._processes[kind].poll() is not None:
                self._processes[kind] = subprocess.Popen(
                    [sys.executable, "-m", _MODULES[kind], str(self.directory), self.name],
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    start_new_session=True,
                )

    def kill(self, kind: str) -> None:
        """Send SIGKILL to the process of *kind*; return when it has ended."""
        process = self._processes[kind]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def stop_agent(self) -> int:
        """Send SIGTERM to the agent; return its exit status."""
        self._processes[AGENT].send_signal(signal.SIGTERM)
        return self._processes[AGENT].wait(_STOP_SECONDS)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._log.close()

    def log_tail(self) -> str:
        files = [self.directory / "log", self.directory / "state" / "agent.log"]
        texts = [file.read_text(errors="replace")[-1500:] for file in files if file.exists()]
        return f"--- {self.name}\n" + "\n".join(texts)
