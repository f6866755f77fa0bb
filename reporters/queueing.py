"""The common part of batch systems with a queue; commands and parsers are in ``batch/``.

A job is submitted under a unique name. While the reporter waits, it repeats one command at the site at
growing intervals. The command reads the job's own stamps (``jobfiles``) and the batch system's record. The
job survives the loss of the reporter's connection.
"""

from __future__ import annotations

import abc
import contextlib
import math
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from probes.base import InvalidParameters, OutOfTime, ProbeFailed
from probes.grid import Completed
from reporters import jobfiles
from reporters.base import (
    BatchSystem,
    ConnectionLost,
    JobFailed,
    JobStuck,
    ResourceShell,
    SubmittedJob,
    TookTooLong,
    describe_exit,
)
from reporters.error_lines import decisive_line, tail
from reporters.jobfiles import JobStamps
from reporters.jobrecord import (
    OVER,
    UNKNOWN_JOB,
    WALL_LIMIT,
    JobRecord,
    JobRequest,
    JobStatus,
    queue_seconds,
    run_seconds,
)

_ANSWER_SECONDS = 60.0  # for a command of a busy batch system
_SETTLE_SECONDS = 3.0  # for stamps to arrive after the batch system reports the end


class QueueingSystem(BatchSystem):
    """A batch system with a queue.

    Args:
        queue: the queue, by default chosen by the batch system.
        account: the account of the jobs.
        extra: further arguments for the submit command.
    """

    survives_its_session: ClassVar[bool] = True
    # Shell commands: print the record of the job "$id"; print the numbers of the jobs called "$name" that are
    # not over; cancel the jobs "$@".
    status: ClassVar[str]
    listing: ClassVar[str]
    removing: ClassVar[str]
    # Error output of the submit command if it reached no server.
    never_arrived: ClassVar[re.Pattern[str]]
    # The longest time after its end during which a job may be in no record of the batch system.
    forgets_for_seconds: ClassVar[float] = 3.0

    def __init__(
        self, shell: ResourceShell, *, queue: str = "", account: str = "", extra: Sequence[str] = ()
    ) -> None:
        super().__init__(shell)
        for text in (queue, account, *extra):
            if not text.isprintable():  # a second line would be an instruction to some batch systems
                raise InvalidParameters(f"resource {shell.resource}: batch: {text!r} is not one line of text")
        for text in (queue, account):
            if text.startswith("-"):
                raise InvalidParameters(
                    f"resource {shell.resource}: batch: {text!r} would be taken for an option"
                )
        self.queue = queue
        self.account = account
        self.extra = list(extra)

    @abc.abstractmethod
    def submit_command(self, request: JobRequest) -> list[str]:
        """Return the command that submits *request*."""

    @abc.abstractmethod
    def parse_id(self, text: str) -> str:
        """Return the job's number from the output of ``submit_command``; empty without a number."""

    @abc.abstractmethod
    def parse_status(self, text: str, complaint: str) -> JobRecord | None:
        """Return the record in the output of ``status``; None if the batch system did not answer.

        *text* is the stdout of the command, *complaint* is its stderr.
        """

    def submit(self, argv: Sequence[str], *, directory: str, cpus: int, wall_seconds: float) -> SubmittedJob:
        """Submit a job. If its number does not arrive, the job is cancelled when its directory is removed."""
        token = uuid.uuid4().hex[:12]
        name, job = f"gc-{token}", f"job-{token}"
        files = f"{directory}/{job}"
        request = JobRequest(name, directory, f"{files}/script", f"{files}/batch", cpus, wall_seconds)
        cancel = jobfiles.cancel_script(name, self.listing, self.removing)
        text = jobfiles.script(
            argv, directory=directory, job=job, label=self.shell.label, wall_seconds=wall_seconds
        )
        submit = ["sh", "-c", jobfiles.SUBMIT, "sh", directory, job, cancel, *self.submit_command(request)]
        done = self.shell.run(submit, timeout_seconds=_ANSWER_SECONDS, input=text)
        submitted, printed = jobfiles.parse_submitted(done.stdout)
        number = self.parse_id(printed) if done.returncode == 0 else ""
        if submitted is None or not number:
            raise self._not_submitted(files, done, reached=submitted is not None)
        return TrackedJob(self, files, number, submitted, wall_seconds)

    def _not_submitted(self, files: str, done: Completed, *, reached: bool) -> JobFailed:
        """Return the error for a job whose number did not arrive.

        *reached* tells whether the submit command ran. The job may be queued, so its file ``cancel`` stays
        unless the command reached no server.
        """
        resource = self.shell.resource
        reason = decisive_line(done.stderr) or decisive_line(done.stdout) or describe_exit(done.returncode)
        arrived = self.never_arrived.search(done.stderr) is None
        if not arrived:
            with contextlib.suppress(ProbeFailed):
                self.shell.run(["rm", "-f", "--", f"{files}/cancel"], timeout_seconds=_ANSWER_SECONDS)
        is_refusal = reached and arrived and done.returncode not in (126, 127)
        problem = f"the job at {resource} was refused" if is_refusal else f"cannot submit a job at {resource}"
        return JobFailed(
            f"{problem}: {reason}",
            resource=resource,
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )


def run_cancel(shell: ResourceShell, files: str) -> None:
    """Cancel the job with the directory *files* and wait until the job is gone.

    Raises:
        ProbeFailed: the job is not gone in time.
    """
    shell.check(
        ["sh", "-c", jobfiles.RUN_CANCEL, "sh", f"{files}/cancel"],
        timeout_seconds=jobfiles.CANCEL_SECONDS,
        doing=f"cancel the job in {files}",
    )


class TrackedJob(SubmittedJob):
    """A submitted job with the directory *files*; *submitted* is in seconds since the epoch at the site."""

    def __init__(
        self, system: QueueingSystem, files: str, number: str, submitted: float, wall_seconds: float
    ) -> None:
        self._system = system
        self._shell = system.shell
        self._files = files
        self._number = number
        self._submitted = submitted
        self._wall_seconds = wall_seconds
        self._queue_seconds: float | None = None
        self._status = JobStatus(JobStamps(), None)
        self._cancelled = False

    def wait_started(self, *, timeout_seconds: float) -> float:
        if self._queue_seconds is None:
            status = self._wait("started", timeout_seconds)
            record = status.record or UNKNOWN_JOB
            if status.stamps.started is None and (record.how or record.status != 0):
                raise self._failed(_not_started(record), record.status)
            self._queue_seconds = queue_seconds(self._submitted, status.stamps, status.record)
        return self._queue_seconds

    def wait_ended(self, *, timeout_seconds: float) -> float:
        if self._status.stamps.ended is None:
            self._wait("ended", timeout_seconds)
        stamps = self._status.stamps
        if stamps.status is None:
            return self._recorded_seconds(self._status.record or UNKNOWN_JOB)
        if stamps.status:
            raise self._ended_badly(stamps.status, run_seconds(stamps))
        return run_seconds(stamps)

    def cancel(self) -> None:
        run_cancel(self._shell, self._files)
        self._cancelled = True

    def _recorded_seconds(self, record: JobRecord) -> float:
        """Return the run time, in seconds, of a job without an end stamp, from the batch system's *record*.

        Raises:
            JobFailed: the job failed, or the batch system ended it.
        """
        if record.status != 0 or record.how:
            raise self._failed(self._describe_end(record), record.status)
        return max(0.0, (record.ended or 0.0) - (record.started or record.ended or 0.0))

    def _ended_badly(self, status: int, seconds: float) -> JobFailed:
        record = JobRecord(OVER, "")
        if status in (124, 137) and seconds >= self._wall_seconds:
            record = JobRecord(OVER, "", how=WALL_LIMIT)
        elif status > 128:
            record = self._final_record() or record
        return self._failed(self._describe_end(replace(record, status=status)), status)

    def _final_record(self) -> JobRecord | None:
        """Wait until the batch system reports that a killed job is over; return its record.

        Returns None if the batch system does not answer or still reports the job after the wait.
        """
        until = time.monotonic() + _SETTLE_SECONDS
        while True:
            record = self._look("record", 0.0, 0.1).record
            if record is None or (record.phase == OVER and record is not UNKNOWN_JOB):
                return record
            if time.monotonic() > until:
                return None
            time.sleep(0.1)

    def _describe_end(self, record: JobRecord) -> str:
        """Return in words how the job ended, such as "failed with exit status 1"."""
        if record.how == WALL_LIMIT:
            return f"{WALL_LIMIT} of {self._wall_seconds:g} s"
        if record.how or not record.status:
            return record.ended_how
        return f"{'was' if record.status > 128 else 'failed with'} {describe_exit(record.status)}"

    def _wait(self, event: str, timeout_seconds: float) -> JobStatus:
        """Wait until *event* ("started" or "ended") happens or is impossible; return the job's status.

        Raises:
            JobStuck: the time limit is reached.
        """
        began = time.monotonic()
        over_since: float | None = None
        while True:
            waited = time.monotonic() - began
            self._update(event, waited, timeout_seconds, settling=over_since is not None)
            status = self._status
            if status.stamps.ended is not None or getattr(status.stamps, event) is not None:
                return status
            if status.record is None or status.record.phase != OVER:
                over_since = None
            elif status.record.how and status.record is not UNKNOWN_JOB:
                return status
            elif over_since is None:
                over_since = time.monotonic()
            elif time.monotonic() - over_since > self._settle_seconds(status.record):
                return status
            if time.monotonic() - began >= timeout_seconds:
                raise self._stuck(event, timeout_seconds)

    def _settle_seconds(self, record: JobRecord) -> float:
        if record is not UNKNOWN_JOB:
            return _SETTLE_SECONDS
        return 0.0 if self._cancelled else self._system.forgets_for_seconds

    def _update(self, event: str, waited: float, timeout_seconds: float, *, settling: bool) -> None:
        """Read the job's status in one command at the site, which waits longer for *event* each time.

        *waited* is in seconds. *settling* means that the batch system has reported the end of the job, so
        that the command waits only briefly for the stamps.
        """
        round_seconds = 0.2 if settling else min(max(waited / 4, 0.5), 30.0)
        pause_seconds = min(max(waited / 100, 0.05), 2.0)
        try:
            self._status = self._look(
                event, max(0.0, min(round_seconds, timeout_seconds - waited)), pause_seconds
            )
        except OutOfTime:  # the limit of the whole run
            raise self._stuck(event, timeout_seconds) from None

    def _look(self, event: str, round_seconds: float, pause_seconds: float) -> JobStatus:
        rounds = str(math.ceil(round_seconds / pause_seconds))
        script = f"{jobfiles.WATCH}id=$5\n{self._system.status}"
        argv = ["sh", "-c", script, "sh", self._files, event, rounds, f"{pause_seconds:.3f}", self._number]
        try:
            done = self._run(argv, round_seconds * 2 + _ANSWER_SECONDS)
        except TookTooLong as error:
            return JobStatus(JobStamps(), None, error.message)
        stamps, _, output = f"\n{done.stdout}".partition("\n\n")
        record = self._system.parse_status(output, done.stderr)
        return JobStatus(jobfiles.parse_stamps(stamps), record, decisive_line(done.stderr))

    def _run(self, argv: Sequence[str], timeout_seconds: float) -> Completed:
        """Run a command; if the connection was lost, reconnect and run the command again."""
        try:
            return self._shell.run(argv, timeout_seconds=timeout_seconds)
        except ConnectionLost:
            self._shell.connect(timeout_seconds=_ANSWER_SECONDS)
            return self._shell.run(argv, timeout_seconds=timeout_seconds)

    def _stuck(self, event: str, timeout_seconds: float) -> JobStuck:
        resource = self._shell.resource
        waited = f"waited {timeout_seconds:g} s for it"
        return JobStuck(
            f"the job at {resource} was not {event}: {waited}; {self._status.situation}",
            situation=self._status.situation,
            resource=resource,
        )

    def _failed(self, how: str, status: int | None) -> JobFailed:
        return jobfiles.failure_of(self._shell, self._files, how, status, timeout_seconds=_ANSWER_SECONDS)


def _not_started(record: JobRecord) -> str:
    return record.ended_how if record.how else f"was not started: it is {record}"
