"""One resource of a run: its shell, its scratch directory, its jobs and its temporary servers."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from probes.base import ProbeFailed
from reporters import resolve, scratch
from reporters.base import BatchSystem, CommandFailed, ConnectionLost, ResourceUnfit, SubmittedJob
from reporters.config import Assignment, ResourceConfig
from reporters.containment import Containment
from reporters.deadline import BoundedShell, Deadline
from reporters.error_lines import decisive_line, tail
from reporters.process import ProcessError, Running
from reporters.report import rfc3339, run_id
from reporters.usage import JobMeter

_RUN_CHARACTERS = 12
_ANSWER_SECONDS = 60.0


class ResourceSession:
    """The shell, the scratch directory and the jobs of one run at one resource."""

    def __init__(
        self,
        resource: ResourceConfig,
        assignment: Assignment,
        deadline: Deadline,
        containment: Containment,
        log: Callable[[str], None],
    ) -> None:
        self.resource = resource
        self._series = assignment.series
        self._run = run_id(assignment.series, assignment.slot).hex[:_RUN_CHARACTERS]
        self._label = f"{assignment.series}@{rfc3339(assignment.slot)}"
        self._deadline = deadline
        self._containment = containment
        self.shell = self.new_shell()
        self._log = log
        self._making = threading.Lock()
        self._directory: str | None = None
        self._touched = False
        self._batch: BatchSystem | None = None
        self._jobs: list[SubmittedJob] = []

    def new_shell(self) -> BoundedShell:
        """Return a new shell, not connected yet, with a connection of its own. The caller closes it."""
        shell = resolve.shell_of(self.resource, self._label)
        shell.containment = self._containment
        return BoundedShell(shell, self._deadline)

    def address(self) -> str:
        """Return the host name or IP address by which other sites reach this resource.

        Raises:
            ResourceUnfit: no address is configured.
        """
        config = self.resource
        address = config.address or config.transfer.get("host") or config.shell.get("host")
        if not address and config.shell.get("kind") != "local":
            raise ResourceUnfit(
                f"{config.name} has no address: set the one that other sites use", resource=config.name
            )
        return str(address or "127.0.0.1")

    def login(self) -> float:
        """Log in again, run ``true``, log out; return the seconds of the login and ``true``."""
        shell = self.new_shell()
        began = time.monotonic()
        try:
            shell.connect(timeout_seconds=math.inf)
            check_answers(shell)
            return time.monotonic() - began
        finally:
            shell.close()

    def connect(self) -> BoundedShell:
        self.shell.connect(timeout_seconds=math.inf)
        self._log(f"connected to {self.resource.name}")
        return self.shell

    def scratch(self, shell: BoundedShell) -> str:
        with self._making:
            if self._directory is None:
                self._touched = True  # a partly created directory must be removed too
                self._directory = scratch.make(shell, self.resource.scratch, self._series, self._run)
            return self._directory

    def submit(self, argv: Sequence[str], directory: str, cpus: int, wall_seconds: float) -> SubmittedJob:
        with self._making:
            if self._batch is None:
                self._batch = resolve.batch_of(self.resource, self.shell)
        job = self._batch.submit(argv, directory=directory, cpus=cpus, wall_seconds=wall_seconds)
        self._jobs.append(job)
        return job

    def clean_up(self) -> None:
        """Cancel the jobs and remove the scratch directory; reconnect if the connection was lost.

        Raises:
            ProbeFailed: the resource is unreachable, a job is still alive, or a file is left.
        """
        if not self._touched:
            return
        try:
            self._clean_up()
        except ConnectionLost:  # possibly the error that failed the run; a new connection may work
            self._clean_up()

    def _clean_up(self) -> None:
        self.shell.connect(timeout_seconds=math.inf)
        with contextlib.ExitStack() as stack:  # the directory is removed even if a job cannot be cancelled
            stack.callback(scratch.remove, self.shell, self.resource.scratch, self._series, self._run)
            for job in self._jobs:
                stack.callback(job.cancel)


class GridJob:
    """A job of a run. The run's deadline limits every wait; *meter* counts the CPU time."""

    def __init__(self, job: SubmittedJob, resource: str, deadline: Deadline, meter: JobMeter) -> None:
        self._job = job
        self._resource = resource
        self._deadline = deadline
        self._meter = meter

    def wait_started(self) -> float:
        """Block until the job starts; return how many seconds it waited in the queue."""
        doing = f"waiting for the job at {self._resource} to start"
        with self._deadline.bounding(math.inf, doing, self._resource) as limit_seconds:
            queue_seconds = self._job.wait_started(timeout_seconds=limit_seconds)
        self._meter.began()
        return queue_seconds

    def wait_ended(self) -> float:
        """Block until the job ends; return how many seconds it ran. Raises ProbeFailed if the job failed."""
        doing = f"waiting for the job at {self._resource} to end"
        try:
            with self._deadline.bounding(math.inf, doing, self._resource) as limit_seconds:
                run_seconds = self._job.wait_ended(timeout_seconds=limit_seconds)
        except ProbeFailed:
            self._meter.ended()
            raise
        self._meter.ended(run_seconds)
        return run_seconds


def check_answers(shell: BoundedShell) -> None:
    """Raise ProbeFailed unless *shell* can run a program."""
    shell.check(["true"], timeout_seconds=_ANSWER_SECONDS, doing="run a program after logging in")


@contextlib.contextmanager
def serving(
    shell: BoundedShell, argv: Sequence[str], deadline: Deadline, within_seconds: float
) -> Iterator[str]:
    """Run *argv* with *shell* while in this context; yield the first line of its output.

    Raises:
        ProbeFailed: no line came *within_seconds*, or the program could not be started.
    """
    resource = shell.resource
    running = shell.start(argv)
    try:
        with deadline.bounding(
            within_seconds, f"starting {argv[0]} at {resource}", resource
        ) as limit_seconds:
            running.wait_for_output(lambda text: "\n" in text, limit_seconds)
        if "\n" not in running.output:
            raise _not_serving(resource, argv[0], running, within_seconds)
        yield running.output.partition("\n")[0]
    finally:
        running.stop()


def _not_serving(resource: str, program: str, running: Running, within_seconds: float) -> ProbeFailed:
    """Return the error for a server *program* that printed no line *within_seconds*."""
    try:
        done = running.poll()
    except ProcessError as error:
        return ConnectionLost(f"{program} at {resource}: {error}", resource=resource)
    if done is None:
        return CommandFailed(
            f"{program} at {resource} was not ready after {within_seconds:g} s", resource=resource
        )
    reason = decisive_line(done.stderr) or f"exit status {done.returncode}"
    return CommandFailed(
        f"{program} at {resource} ended before it was ready: {reason}",
        resource=resource,
        exit_status=done.returncode,
        stderr_tail=tail(done.stderr),
    )
