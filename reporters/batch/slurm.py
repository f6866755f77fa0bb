"""Slurm: sbatch, scancel, and for the state of a job scontrol, sacct or squeue, whichever knows the job.

Slurm is asked for times in UTC. Jobs that the controller has forgotten are in the accounting database, if
Slurm has such a database.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timezone

from reporters.jobrecord import (
    CANCELLED,
    NO_MEMORY,
    OVER,
    RUNNING,
    UNKNOWN_JOB,
    WAITING,
    WALL_LIMIT,
    JobRecord,
    JobRequest,
)
from reporters.queueing import QueueingSystem

STATUS = """\
export LC_ALL=C TZ=UTC SLURM_TIME_FORMAT=standard
if command -v scontrol > /dev/null; then
  scontrol show job -o "$id" && exit
else
  squeue -h -t all -j "$id" -o '%i|%T|%r|%V|%S|%e|' && exit
fi
sacct -n -P -X -j "$id" -o JobID,State,Reason,Submit,Start,End,ExitCode 2> /dev/null
"""
# After a job's end stamp, only the epilog at the node may still run; such a job counts as gone.
LISTING = """\
[ ! -e ended ] || set -- -t PENDING,CONFIGURING,RUNNING,SUSPENDED
squeue -h -o %A -n "$name" "$@"
"""
REMOVING = 'scancel "$@"'

_NOT_YET = {
    "PENDING",
    "CONFIGURING",
    "EXPEDITING",
    "POWER_UP_NODE",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "RESV_DEL_HOLD",
}
_HOW = {
    "TIMEOUT": WALL_LIMIT,
    "DEADLINE": "reached its deadline",
    "CANCELLED": CANCELLED,
    "REVOKED": CANCELLED,
    "PREEMPTED": "was preempted",
    "OUT_OF_MEMORY": NO_MEMORY,
    "NODE_FAIL": "lost its node",
    "BOOT_FAIL": "had no node that booted",
    "LAUNCH_FAILED": "could not be launched",
    "RECONFIG_FAIL": "could not be launched",
}
_OVER = {"COMPLETED", "FAILED", *_HOW}  # any other state counts as running
_NOT_LAUNCHED = "0:53"  # its script or its output could not be opened
_NO_SUCH_JOB = re.compile(r"Invalid job id specified")
NEVER_ARRIVED = re.compile(r"\(connect failure\)|Connection refused")
_ID = re.compile(r"^(\d+)(?:;\S+)?$", re.MULTILINE)


def submit_command(request: JobRequest, queue: str, account: str, extra: Sequence[str]) -> list[str]:
    """Return the submit command, which forbids requeues: a job that runs twice would be measured twice."""
    return [
        "sbatch",
        "--parsable",
        "--no-requeue",
        f"--job-name={request.name}",
        f"--chdir={request.directory}",
        f"--output={request.output}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={request.cpus}",
        f"--time={math.ceil(request.wall_seconds / 60)}",
        *([f"--partition={queue}"] if queue else []),
        *([f"--account={account}"] if account else []),
        *extra,
        request.script,
    ]


def parse_id(text: str) -> str:
    """Return the job's number from ``sbatch --parsable``: "12", or "12;cluster" in a federation."""
    match = _ID.search(text)
    return match[1] if match else ""


def parse_status(text: str, complaint: str) -> JobRecord | None:
    """Return the job's record; None if the output is no record.

    *text* is the stdout of the command ``STATUS``, *complaint* is its stderr. A record is a line of scontrol,
    or the fields of sacct or squeue between bars.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return UNKNOWN_JOB if _NO_SUCH_JOB.search(complaint) else None
    if "JobState=" in lines[0]:
        return _of_scontrol(lines[0])
    columns = lines[0].split("|")
    return _record(*columns[1:7]) if len(columns) >= 7 else None


def parse_seconds(text: str) -> float | None:
    """Return a time in UTC as seconds since the epoch; None for other text, such as "Unknown" or "N/A"."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def _of_scontrol(line: str) -> JobRecord:
    fields = dict(re.findall(r"(?:^| )(\w+)=(\S*)", line))
    return _record(
        fields.get("JobState", ""),
        fields.get("Reason", ""),
        *(fields.get(name, "") for name in ("SubmitTime", "StartTime", "EndTime", "ExitCode")),
    )


def _record(state: str, reason: str, submitted: str, started: str, ended: str, exit_code: str) -> JobRecord:
    """Build the record. *state* may end with the name of a user, such as "CANCELLED by 1000".

    The start of a waiting job is an estimate and is ignored.
    """
    word = state.partition(" ")[0].rstrip("+")
    phase = WAITING if word in _NOT_YET else OVER if word in _OVER else RUNNING
    reason = "" if reason in ("", "None", "(null)") else reason
    return JobRecord(
        phase,
        state,
        reason,
        submitted=parse_seconds(submitted),
        started=None if phase == WAITING else parse_seconds(started),
        ended=parse_seconds(ended) if phase == OVER else None,
        status=_status(exit_code) if phase == OVER else None,
        how="could not be launched" if exit_code == _NOT_LAUNCHED else _HOW.get(word, ""),
    )


def _status(exit_code: str) -> int | None:
    """Parse Slurm's "status:signal" into an exit status, 128 + n for signal n."""
    status, _, signal = exit_code.partition(":")
    if not status.isdigit():
        return None
    return 128 + int(signal) if signal.isdigit() and int(signal) else int(status)


class Batch(QueueingSystem):
    """Submits jobs to Slurm.

    Args:
        queue: a partition, by default chosen by Slurm.
        account: the account of the jobs.
        extra: further arguments for sbatch.
    """

    status = STATUS
    listing = LISTING
    removing = REMOVING
    never_arrived = NEVER_ARRIVED

    def submit_command(self, request: JobRequest) -> list[str]:
        return submit_command(request, self.queue, self.account, self.extra)

    def parse_id(self, text: str) -> str:
        return parse_id(text)

    def parse_status(self, text: str, complaint: str) -> JobRecord | None:
        return parse_status(text, complaint)
