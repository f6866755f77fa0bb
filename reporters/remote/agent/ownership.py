"""One agent for a state directory: a file names its process; that of a dead agent is taken over.

On the host of the file's process the process is looked up. For another host (the directory may be on NFS) the
agent writes a heartbeat, and counts as dead when that has not changed for 15 minutes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from reporters.remote.state_directory import StateError
from reporters.spool.owner import HEARTBEAT, OWNER, Observer, Process

DIRECTORY = "owner"  # in the state directory
WAKE_SIGNAL = signal.SIGUSR1  # the owner handles it before it becomes the owner
_WATCH_SECONDS = 10.0


class Ownership:
    """The ownership of *directory*, which is made.

    *wait* waits some seconds, *tell* gets a text for the operator.
    """

    def __init__(
        self,
        directory: Path,
        *,
        tell: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory, self._tell, self._wait = directory, tell, wait
        self._own = Process.current()
        self._observer = Observer(self._own, monotonic)
        self._beats = 0
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StateError(f"cannot make {directory}: {error.strerror}") from None

    def take(self) -> None:
        """Become the owner; wait if the owner is on another host and may be dead.

        Raises:
            StateError: another agent owns the directory, or a file cannot be written.
        """
        while not self._try():
            owner = self._owner()
            if owner is None or owner == self._own or self._is_dead(owner):
                self._remove(owner)
            elif owner.host == self._own.host:
                raise StateError(f"another agent runs with {self._directory.parent}: process {owner.pid}")
            else:
                self._tell(
                    f"an agent on {owner.host}, process {owner.pid}, owns {self._directory.parent}; this one"
                    " starts when that one has been silent for 15 minutes"
                )
                self._wait(_WATCH_SECONDS)
        self.beat()

    def beat(self) -> None:
        """Write a heartbeat, for agents on other hosts."""
        self._beats += 1
        with contextlib.suppress(OSError):
            (self._directory / HEARTBEAT).write_text(f"{self._own.pid} {self._beats}")

    @property
    def is_lost(self) -> bool:
        """Whether another agent has become the owner; false while the file cannot be read."""
        owner = self._owner()
        return owner is not None and owner != self._own

    def release(self) -> None:
        """Give the ownership up."""
        with contextlib.suppress(OSError):
            if self._owner() == self._own:
                (self._directory / OWNER).unlink()

    def _try(self) -> bool:
        """Create the file, as a whole; return False if there is one."""
        draft = self._directory / f".{uuid.uuid4()}"
        try:
            draft.write_text(self._own.to_text())
            os.link(draft, self._directory / OWNER)
        except FileExistsError:
            return False
        except OSError as error:
            raise StateError(f"cannot write {self._directory / OWNER}: {error.strerror}") from None
        finally:
            with contextlib.suppress(OSError):  # missing, or of a file system that is read-only
                draft.unlink()
        return True

    def _owner(self) -> Process | None:
        try:
            return Process.from_text((self._directory / OWNER).read_text(errors="replace"))
        except OSError:
            return None

    def _is_dead(self, owner: Process) -> bool:
        if owner.host == self._own.host and owner.boot != self._own.boot:
            return True  # the host has been started again
        return self._observer.is_dead(self._directory)

    def _remove(self, dead: Process | None) -> None:
        """Remove the file of *dead*, unless another agent has replaced it meanwhile."""
        aside = self._directory / f".{uuid.uuid4()}"
        with contextlib.suppress(FileNotFoundError):
            (self._directory / OWNER).rename(aside)
            if Process.from_text(aside.read_text(errors="replace")) != dead:
                with contextlib.suppress(FileExistsError):
                    os.link(aside, self._directory / OWNER)
            aside.unlink()


def wake_owner(state: Path) -> bool:
    """Have the agent that owns the state directory *state* exchange with its server now.

    Return whether there is one on this host. The caller has changed a file that the agent follows.
    """
    directory, own = state / DIRECTORY, Process.current()
    observer = Observer(own, time.monotonic)
    with contextlib.suppress(OSError):
        owner = Process.from_text((directory / OWNER).read_text(errors="replace"))
        is_here = owner is not None and observer.is_proven(directory) and not observer.is_dead(directory)
        if owner is not None and is_here:
            os.kill(owner.pid, WAKE_SIGNAL)
            return True
    return False


def living_owner(state: Path) -> str:
    """Return the agent that owns the state directory *state*, as "process 12 on login1"; empty: none.

    Of an agent on another host it is not known whether it lives.
    """
    directory, own = state / DIRECTORY, Process.current()
    try:
        owner = Process.from_text((directory / OWNER).read_text(errors="replace"))
    except OSError:
        return ""
    if owner is None or (owner.host == own.host and owner.boot != own.boot):
        return ""
    is_dead = Observer(own, time.monotonic).is_dead(directory)
    return "" if is_dead else f"process {owner.pid} on {owner.host}"
