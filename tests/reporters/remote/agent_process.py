"""The agent as a process, as an operator starts it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_WRONG_CLOCK = """
import sys, time
from pathlib import Path
from reporters.remote.agent.agent import Agent
from reporters.remote.kept_clock import KeptClock
from reporters.remote.state_directory import StateDirectory
state, error = StateDirectory.open(Path(sys.argv[1])), float(sys.argv[2])
sys.exit(Agent(state, KeptClock(state, wall=lambda: time.time() + error)).serve())
"""


@dataclass
class AgentProcess:
    """The process, and the directory of its state."""

    process: subprocess.Popen[str]
    state: Path

    @property
    def log(self) -> str:
        file = self.state / "agent.log"
        return file.read_text() if file.exists() else ""

    @property
    def status(self) -> dict[str, Any]:
        file = self.state / "status.json"
        return dict(json.loads(file.read_text())) if file.exists() else {}

    def stop(self) -> int:
        """Send SIGTERM; return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextlib.contextmanager
def agent_process(
    state: Path, program: Path | None = None, *, python: str = sys.executable, **environment: str
) -> Iterator[AgentProcess]:
    """Run ``run`` with *state* until the context ends; *program* is an archive, else the sources."""
    start = (
        [str(program)]
        if program
        else ["-c", "import sys; from reporters.remote.main import main; sys.exit(main())"]
    )
    argv = [python, *(["-I", "-S"] if program else []), *start, "run", "--state", str(state)]
    with _started(argv, state, environment) as agent:
        yield agent


@contextlib.contextmanager
def agent_with_clock(state: Path, wall_error_seconds: float) -> Iterator[AgentProcess]:
    """Run the agent of *state* until the context ends, at a host whose wall clock is wrong."""
    with _started(
        [sys.executable, "-c", _WRONG_CLOCK, str(state), str(wall_error_seconds)], state, {}
    ) as agent:
        yield agent


@contextlib.contextmanager
def _started(argv: Sequence[str], state: Path, environment: Mapping[str, str]) -> Iterator[AgentProcess]:
    with subprocess.Popen(
        argv,
        cwd=ROOT,
        env={**os.environ, **environment},
        text=True,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield AgentProcess(process, state)
        finally:
            process.kill()
