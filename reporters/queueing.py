"""Batch systems that have a queue: what they share. How each is told and what it says is for its own file.

A job is handed in under a name of its own, and is followed by its own stamps in its directory (``jobfiles``)
and by what the batch system says of it, both asked for in one command at the site, less and less often. It
lives on when the reporter's connection is lost.
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
from reporters.jobfiles import Breath
from reporters.jobrecord import (
    OVER,
    UNKNOWN_JOB,
    WALL_LIMIT,
    JobRecord,
    Request,
    Seen,
    queue_seconds,
    run_seconds,
)

_ANSWER_SECONDS = 60.0  # for a command of a batch system that is busy
_SETTLE_SECONDS = 3.0  # for stamps to arrive after the batch system has said that a job is over


class QueueingSystem(BatchSystem):
    """Options: *queue*, *account*, and *extra* arguments for the command that hands jobs in."""

    survives_its_session: ClassVar[bool] = True
    # Shell texts: what prints all that is known of the job "$id"; what prints the numbers of the jobs called
    # "$name" that are not over; what cancels the jobs "$@".
    status: ClassVar[str]
    listing: ClassVar[str]
    removing: ClassVar[str]
    # What is said where nobody was there to take a job.
    never_arrived: ClassVar[re.Pattern[str]]
    # How long a job that is over may be unknown before it is written down.
    forgets_for_seconds: ClassVar[float] = 3.0

    def __init__(
        self, shell: ResourceShell, *, queue: str = "", account: str = "", extra: Sequence[str] = ()
    ) -> None:
        super().__init__(shell)
        for text in (queue, account, *extra):
            if not text.isprintable():  # a line of its own would be an instruction to some
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
    def submit_command(self, request: Request) -> list[str]:
        """What hands *request* in."""

    @abc.abstractmethod
    def parse_id(self, text: str) -> str:
        """The job's number in what ``submit_command`` prints; empty if there is none."""

    @abc.abstractmethod
    def parse_status(self, text: str, complaint: str) -> JobRecord | None:
        """What ``status`` prints, and what to stderr; None if the batch system did not answer."""

    def submit(self, argv: Sequence[str], *, directory: str, cpus: int, wall_seconds: float) -> SubmittedJob:
        """As for every batch system; a job whose number does not arrive is cancelled with its directory."""
        token = uuid.uuid4().hex[:12]
        name, job = f"gc-{token}", f"job-{token}"
        files = f"{directory}/{job}"
        request = Request(name, directory, f"{files}/script", f"{files}/batch", cpus, wall_seconds)
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
        return QueuedJob(self, files, number, submitted, wall_seconds)

    def _not_submitted(self, files: str, done: Completed, *, reached: bool) -> JobFailed:
        """The error for a job without a number. It may be in the queue all the same, so ``cancel`` stays."""
        resource = self.shell.resource
        said = decisive_line(done.stderr) or decisive_line(done.stdout) or describe_exit(done.returncode)
        arrived = self.never_arrived.search(done.stderr) is None
        if not arrived:
            with contextlib.suppress(ProbeFailed):
                self.shell.run(["rm", "-f", "--", f"{files}/cancel"], timeout_seconds=_ANSWER_SECONDS)
        was_run = reached and arrived and done.returncode not in (126, 127)
        what = f"the job at {resource} was refused" if was_run else f"cannot submit a job at {resource}"
        return JobFailed(
            f"{what}: {said}",
            resource=resource,
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )


def run_cancel(shell: ResourceShell, files: str) -> None:
    """Cancel the job that has its files in *files*; returns when it is gone. Raises ProbeFailed."""
    shell.check(
        ["sh", "-c", jobfiles.RUN_CANCEL, "sh", f"{files}/cancel"],
        timeout_seconds=jobfiles.CANCEL_SECONDS,
        doing=f"cancel the job in {files}",
    )


class QueuedJob(SubmittedJob):
    """A job in a queue. *files* is its directory, *submitted* when it was handed in, by the site's clock."""

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
        self._seen = Seen(Breath(), None)
        self._cancelled = False

    def wait_started(self, *, timeout_seconds: float) -> float:
        if self._queue_seconds is None:
            seen = self._wait("started", timeout_seconds)
            record = seen.record or UNKNOWN_JOB
            if seen.breath.started is None and (record.how or record.status != 0):
                raise self._failed(_not_started(record), record.status)
            self._queue_seconds = queue_seconds(self._submitted, seen.breath, seen.record)
        return self._queue_seconds

    def wait_ended(self, *, timeout_seconds: float) -> float:
        if self._seen.breath.ended is None:
            self._wait("ended", timeout_seconds)
        breath = self._seen.breath
        if breath.status is None:
            return self._by_record(self._seen.record or UNKNOWN_JOB)
        if breath.status:
            raise self._ended_badly(breath.status, run_seconds(breath))
        return run_seconds(breath)

    def cancel(self) -> None:
        run_cancel(self._shell, self._files)
        self._cancelled = True

    def _by_record(self, record: JobRecord) -> float:
        """The seconds that a job ran that could not say so itself. Raises JobFailed."""
        if record.status != 0 or record.how:
            raise self._failed(self._words(record), record.status)
        return max(0.0, (record.ended or 0.0) - (record.started or record.ended or 0.0))

    def _ended_badly(self, status: int, seconds: float) -> JobFailed:
        record = JobRecord(OVER, "")
        if status in (124, 137) and seconds >= self._wall_seconds:
            record = JobRecord(OVER, "", how=WALL_LIMIT)
        elif status > 128:
            record = self._verdict() or record
        return self._failed(self._words(replace(record, status=status)), status)

    def _verdict(self) -> JobRecord | None:
        """What the batch system says of a job that was killed, as soon as it says that it is over."""
        until = time.monotonic() + _SETTLE_SECONDS
        while True:
            record = self._look("record", 0.0, 0.1).record
            if record is None or (record.phase == OVER and record is not UNKNOWN_JOB):
                return record
            if time.monotonic() > until:
                return None
            time.sleep(0.1)

    def _words(self, record: JobRecord) -> str:
        """How a job ended, for a message."""
        if record.how == WALL_LIMIT:
            return f"{WALL_LIMIT} of {self._wall_seconds:g} s"
        if record.how or not record.status:
            return record.ended_how
        return f"{'was' if record.status > 128 else 'failed with'} {describe_exit(record.status)}"

    def _wait(self, event: str, timeout_seconds: float) -> Seen:
        """Until *event*, or until it cannot come any more. Raises JobStuck where it did not come in time."""
        began = time.monotonic()
        over_since: float | None = None
        while True:
            waited = time.monotonic() - began
            self._see(event, waited, timeout_seconds, settling=over_since is not None)
            seen = self._seen
            if seen.breath.ended is not None or getattr(seen.breath, event) is not None:
                return seen
            if seen.record is None or seen.record.phase != OVER:
                over_since = None
            elif seen.record.how and seen.record is not UNKNOWN_JOB:
                return seen
            elif over_since is None:
                over_since = time.monotonic()
            elif time.monotonic() - over_since > self._settle_seconds(seen.record):
                return seen
            if time.monotonic() - began >= timeout_seconds:
                raise self._stuck(event, timeout_seconds)

    def _settle_seconds(self, record: JobRecord) -> float:
        if record is not UNKNOWN_JOB:
            return _SETTLE_SECONDS
        return 0.0 if self._cancelled else self._system.forgets_for_seconds

    def _see(self, event: str, waited: float, timeout_seconds: float, *, settling: bool) -> None:
        """Look once more, for longer and longer, but no longer than what is left of the time."""
        round_seconds = 0.2 if settling else min(max(waited / 4, 0.5), 30.0)
        pause_seconds = min(max(waited / 100, 0.05), 2.0)
        try:
            self._seen = self._look(
                event, max(0.0, min(round_seconds, timeout_seconds - waited)), pause_seconds
            )
        except OutOfTime:  # of the run as a whole
            raise self._stuck(event, timeout_seconds) from None

    def _look(self, event: str, round_seconds: float, pause_seconds: float) -> Seen:
        rounds = str(math.ceil(round_seconds / pause_seconds))
        script = f"{jobfiles.WATCH}id=$5\n{self._system.status}"
        argv = ["sh", "-c", script, "sh", self._files, event, rounds, f"{pause_seconds:.3f}", self._number]
        try:
            done = self._run(argv, round_seconds * 2 + _ANSWER_SECONDS)
        except TookTooLong as error:
            return Seen(Breath(), None, error.message)
        stamps, _, said = f"\n{done.stdout}".partition("\n\n")
        record = self._system.parse_status(said, done.stderr)
        return Seen(jobfiles.parse_breath(stamps), record, decisive_line(done.stderr))

    def _run(self, argv: Sequence[str], timeout_seconds: float) -> Completed:
        """Once more over a new connection where the old one was lost: the job does not need it."""
        try:
            return self._shell.run(argv, timeout_seconds=timeout_seconds)
        except ConnectionLost:
            self._shell.connect(timeout_seconds=_ANSWER_SECONDS)
            return self._shell.run(argv, timeout_seconds=timeout_seconds)

    def _stuck(self, event: str, timeout_seconds: float) -> JobStuck:
        resource = self._shell.resource
        waited = f"waited {timeout_seconds:g} s for it"
        return JobStuck(
            f"the job at {resource} was not {event}: {waited}; {self._seen.situation}",
            situation=self._seen.situation,
            resource=resource,
        )

    def _failed(self, how: str, status: int | None) -> JobFailed:
        stderr = self._stderr()
        said = decisive_line(stderr)
        resource = self._shell.resource
        return JobFailed(
            f"the job at {resource} {how}{f': {said}' if said else ''}",
            resource=resource,
            exit_status=status,
            stderr_tail=tail(stderr),
        )

    def _stderr(self) -> str:
        """The end of what the job, or else the batch system, wrote; nothing where that cannot be had."""
        done = Completed(1, "", "", 0.0)
        with contextlib.suppress(ProbeFailed):
            argv = ["sh", "-c", jobfiles.STDERR, "sh", self._files]
            done = self._shell.run(argv, timeout_seconds=_ANSWER_SECONDS)
        return done.stdout


def _not_started(record: JobRecord) -> str:
    return record.ended_how if record.how else f"was not started: it is {record}"
