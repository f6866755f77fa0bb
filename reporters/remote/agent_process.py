"""The process of the agent on this host: found in /proc by its command line, started, and stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from reporters.remote.service import IF_NOT_RUNNING, START, Launch, ServiceFault

STOP_SECONDS = 60.0  # runs in progress have this time to end
_KILL_SECONDS = 10.0
_POLL_SECONDS = 0.05
_PROC = Path("/proc")
# The shell ends at once, so that the agent is no child of the command that installs it.
_IN_THE_BACKGROUND = 'setsid "$@" < /dev/null > /dev/null 2>&1 &'


def pids(state: Path) -> list[int]:
    """Return the processes of this user that are, or are about to become, agents of *state*; oldest first."""
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")[:-1]
            is_ours = entry.stat().st_uid == os.geteuid()
            if is_ours and _is_agent(words, state):
                found.append((_started(entry), int(entry.name)))
        except OSError:  # it has ended
            continue
    return [pid for _, pid in sorted(found)]


def _is_agent(words: Sequence[bytes], state: Path) -> bool:
    """Return whether *words* is the command line of an agent of *state*, or of its start script."""
    is_script = words[:2] == [b"/bin/sh", os.fsencode(state / START)]
    is_isolated = words[1:2] in ([b"-I"], [b"-IS"])  # the command ``run``, and the agent in its place
    return is_script or (is_isolated and words[3:6] == [b"run", b"--state", os.fsencode(state)])


def _started(process: Path) -> int:
    """Return when *process* started, in clock ticks after the boot."""
    return int((process / "stat").read_bytes().rpartition(b")")[2].split()[19])


def may_run(names: Collection[str], proc: Path = _PROC) -> bool:
    """Return whether a process of one of *names* runs, or may run: *proc* hides other users' processes."""
    try:
        (proc / "1" / "comm").read_bytes()
    except OSError:  # such as by the mount option hidepid
        return True
    for file in proc.glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            if file.read_text(errors="replace").strip() in names:
                return True
    return False


def describe(state: Path) -> str:
    """Return in a few words whether the agent of *state* runs on this host."""
    running = pids(state)
    return f"the agent is process {running[0]}" if running else "no agent on this host"


def start(launch: Launch) -> None:
    """Start the agent in the background, unless it runs.

    Raises:
        ServiceFault: no program can be started.
    """
    if pids(launch.state):
        return
    argv = ["/bin/sh", str(launch.start), IF_NOT_RUNNING]
    try:
        subprocess.run(["/bin/sh", "-c", _IN_THE_BACKGROUND, "sh", *argv], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ServiceFault(f"cannot start the agent: {error}") from None


def stop(state: Path, within_seconds: float = STOP_SECONDS) -> None:
    """Stop the agents of *state* on this host: SIGTERM, and SIGKILL after *within_seconds*.

    Raises:
        ServiceFault: a process survives SIGKILL.
    """
    for number, seconds in ((signal.SIGTERM, within_seconds), (signal.SIGKILL, _KILL_SECONDS)):
        for pid in pids(state):
            _send(pid, number)
        if _are_gone(state, seconds):
            return
    raise ServiceFault(f"process {', '.join(map(str, pids(state)))} survives SIGKILL")


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _are_gone(state: Path, within_seconds: float) -> bool:
    until = time.monotonic() + within_seconds
    while pids(state):
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_SECONDS)
    return True
