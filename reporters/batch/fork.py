"""Run jobs without a batch system: a job is a process session at the resource, with an optional launcher.

A supervisor, a shell script at the site, starts the job in a process session of its own. The supervisor
itself runs in a session of the resource's shell. The supervisor's stdout reports when the job was submitted,
started and ended, in seconds of the site's uptime. If the session of the supervisor ends, because the job is
cancelled or the reporter has died, the supervisor kills the job.

The job's directory has the files ``pid`` (of the job's session), ``events`` (a pipe), ``started`` (time),
``ended`` (time and exit status), ``stdout`` and ``stderr``.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from probes.base import InvalidParameters, ProbeFailed
from reporters import jobfiles
from reporters.base import (
    BatchSystem,
    ConnectionLost,
    JobFailed,
    ResourceShell,
    SubmittedJob,
    TookTooLong,
    describe_exit,
)
from reporters.error_lines import decisive_line, tail
from reporters.process import ProcessError, Running
from reporters.scratch import KILL_JOB, KILL_SESSION

_ANSWER_SECONDS = 30.0  # for a small command at the site
_CANCEL_SECONDS = 10.0

_NOW = "now() { { read -r up _ < /proc/uptime && echo $up; } 2> /dev/null || date +%s; }\n"
# The job reports its start by a named pipe, which it can open whatever launcher starts it.
_JOB = f"""{_NOW}
job=$1; shift
now > "$job/started"
echo "started $(now)" > "$job/events"
exec "$@"
"""
_SUPERVISOR = f"""{_NOW}{KILL_SESSION}
umask 077
cd "$1" && mkdir "$2" && mkfifo "$2/events" || exit 1
job=$2; shift 2
exec 3<&0 4<>"$job/events" < /dev/null
echo "submitted $(now)"
{{ read -r _ <&3; echo hangup >&4; }} > /dev/null 2>&1 &
listener=$! killer=
{{
  setsid "$@" > "$job/stdout" 2> "$job/stderr" 3<&- 4<&- &
  echo $! > "$job/pid"
  wait $!
  echo "ended $(now) $?" >&4
}} > /dev/null 2>&1 3<&- &
trap '' PIPE
while read -r event at status <&4; do
  case $event in
    hangup)
      if read -r session < "$job/pid" && kill_session TERM "$session"; then
        {{ sleep 1; kill_session KILL "$session"; }} > /dev/null 2>&1 3<&- 4<&- &
        killer=$!
      else  # it is about to begin, or has ended
        sleep 0.1; echo hangup >&4
      fi 2> /dev/null
      ;;
    ended)
      echo "$at $status" > "$job/ended"
      echo "$event $at $status"
      break
      ;;
    *) echo "$event $at" ;;
  esac
done
read -r session < "$job/pid" && kill_session KILL "$session"
kill "$listener" $killer 2> /dev/null
exit 0
"""


_AT = r"(?P<at>\d+(?:\.\d+)?)"
_EVENT = re.compile(
    rf"^(?P<event>submitted|started|ended(?= \S+ \d)) {_AT}(?: (?P<status>\d+))?\n", re.MULTILINE
)


@dataclass(frozen=True)
class Events:
    """The times of a job's events so far, in seconds of the site's uptime, and the job's exit *status*."""

    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    status: int | None = None


def parse_events(text: str) -> Events:
    """Parse the supervisor's output so far; ignore an incomplete last line and lines that are no events."""
    events: dict[str, re.Match[str]] = {}
    for match in _EVENT.finditer(text):
        events.setdefault(match["event"], match)
    times = {name: float(match["at"]) for name, match in events.items()}
    return Events(**times, status=int(events["ended"]["status"]) if "ended" in events else None)


class Batch(BatchSystem):
    """Runs each job as a process session of the resource.

    The words of the option *launcher*, such as ``["nice", "-n", "19"]``, precede the command of each job.
    Jobs share all processors of the resource: *cpus* has no effect.
    """

    survives_its_session = False

    def __init__(self, shell: ResourceShell, *, launcher: Sequence[str] = ()) -> None:
        super().__init__(shell)
        if not shell.interactive:
            raise InvalidParameters(
                f"resource {shell.resource}: batch 'fork': a job runs in the background, "
                "which its shell does not support"
            )
        self._launcher = list(launcher)

    def submit(
        self,
        argv: Sequence[str],
        *,
        directory: str,
        cpus: int,
        wall_seconds: float,
    ) -> SubmittedJob:
        job = f"{directory}/job-{uuid.uuid4().hex[:8]}"
        limited = ["timeout", "-k", "2", f"{wall_seconds:g}", *argv]
        command = [*self._launcher, "sh", "-c", _JOB, "sh", job, *limited]
        session = self.shell.start(["sh", "-c", _SUPERVISOR, "sh", directory, job, *command])
        submitted = ForkedJob(self.shell, session, job, wall_seconds)
        submitted.wait_submitted()
        return submitted


class ForkedJob(SubmittedJob):
    def __init__(self, shell: ResourceShell, session: Running, directory: str, wall_seconds: float) -> None:
        self._shell = shell
        self._session = session
        self._directory = directory
        self._wall_seconds = wall_seconds

    def wait_submitted(self) -> None:
        """Wait until the supervisor has reported that the job is submitted.

        Raises:
            JobFailed: the supervisor ended without this report.
            TookTooLong, ConnectionLost: the supervisor did not report in time, or its session was lost.
        """
        self._wait("submitted", _ANSWER_SECONDS)

    def wait_started(self, *, timeout_seconds: float) -> float:
        events = self._wait("started", timeout_seconds)
        return (events.started or 0.0) - (events.submitted or 0.0)

    def wait_ended(self, *, timeout_seconds: float) -> float:
        events = self._wait("ended", timeout_seconds)
        if events.started is None:
            raise self._failed("was refused", events)
        seconds = (events.ended or 0.0) - events.started
        if events.status in (124, 137) and seconds >= self._wall_seconds:
            raise self._failed(f"exceeded its wall limit of {self._wall_seconds:g} s", events)
        if events.status:
            killed = events.status > 128
            raise self._failed(f"{'was' if killed else 'failed with'} {describe_exit(events.status)}", events)
        return seconds

    def cancel(self) -> None:
        if self._events().ended is None:
            self._session.close_input()
            self._session.wait_for_output(lambda text: parse_events(text).ended is not None, _CANCEL_SECONDS)
        self._session.stop()
        if self._events().ended is None:  # the session was lost, but the job may be alive
            self._shell.check(
                ["sh", "-c", KILL_JOB, "sh", f"{self._directory}/pid"],
                timeout_seconds=_ANSWER_SECONDS,
                doing=f"kill the job {self._directory}",
            )

    def _events(self) -> Events:
        return parse_events(self._session.output)

    def _wait(self, event: str, timeout_seconds: float) -> Events:
        """Wait until the supervisor reports *event*, a field of ``Events``; return all events so far.

        Raises:
            JobFailed: the job ended without *event*, or the supervisor ended before the submission.
            TookTooLong: *event* was not reported within *timeout_seconds*.
            ConnectionLost: the session of the supervisor was lost.
        """

        def decided(text: str) -> bool:
            events = parse_events(text)
            return getattr(events, event) is not None or events.ended is not None

        self._session.wait_for_output(decided, timeout_seconds)
        events = self._events()
        if getattr(events, event) is not None:
            return events
        if events.ended is not None:
            raise self._failed("was refused", events)
        raise self._missing_event(event, timeout_seconds)

    def _missing_event(self, event: str, timeout_seconds: float) -> ProbeFailed:
        """Return the error for an *event* that was not reported: a timeout, or a lost session."""
        resource = self._shell.resource
        try:
            done = self._session.poll()
        except ProcessError as error:
            return ConnectionLost(
                f"the session of the job at {resource} was lost: {error}", resource=resource
            )
        if done is None:
            waited = f"waited {timeout_seconds:g} s for it"
            return TookTooLong(f"the job at {resource} was not {event}: {waited}", resource=resource)
        reason = decisive_line(done.stderr) or describe_exit(done.returncode)
        failed = JobFailed if event == "submitted" else ConnectionLost
        problem = "cannot submit a job" if event == "submitted" else "the session of the job was lost"
        return failed(f"{problem} at {resource}: {reason}", resource=resource, stderr_tail=tail(done.stderr))

    def _failed(self, how: str, events: Events) -> JobFailed:
        return jobfiles.failure_of(
            self._shell, self._directory, how, events.status, timeout_seconds=_ANSWER_SECONDS
        )
