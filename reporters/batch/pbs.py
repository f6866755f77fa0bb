"""PBS in its two dialects, OpenPBS (and PBS Professional) and Torque: qsub, qstat, qselect, qdel.

Both dialects print ``name = value``; long values continue in the next line after a tab. OpenPBS moves ended
jobs to its history, which ``qstat -x`` lists (in Torque, ``-x`` prints XML). Torque keeps ended jobs in the
queue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from reporters.base import ResourceShell
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

STATUS = 'export LC_ALL=C TZ=UTC; qstat -f "$id" || qstat -f -x "$id"\n'
# Without completed jobs. Torque has no suspended state.
LISTING = 'qselect -N "$name" -s EHQRTWSU 2> /dev/null || qselect -N "$name" -s EHQRTW'
REMOVING = 'qdel "$@"'
NEVER_ARRIVED = re.compile(r"cannot connect to server|Connection refused", re.IGNORECASE)

_ID = re.compile(r"^\d+(?:\[\])?(?:\.[\w.-]+)?$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^\s+([\w.-]+) = (.*)$")
_NO_SUCH_JOB = re.compile(r"Unknown Job Id", re.IGNORECASE)
_PHASES = {
    **dict.fromkeys("QHWTM", WAITING),
    **dict.fromkeys("RESU", RUNNING),
    **dict.fromkeys("FC", OVER),
}
_STATES = {
    "Q": "queued",
    "H": "held",
    "W": "waiting for its time",
    "T": "in transit",
    "M": "moved",
    "R": "running",
    "E": "exiting",
    "S": "suspended",
    "U": "suspended",
    "F": "finished",
    "C": "completed",
}
# Codes of the execution daemon in place of an exit status; some differ between OpenPBS and Torque.
_OPENPBS_HOW = {-26: NO_MEMORY, -27: NO_MEMORY, -28: "used up its CPU time", -29: WALL_LIMIT}
_TORQUE_HOW = {-9: NO_MEMORY, -10: WALL_LIMIT, -11: "used up its CPU time"}
_DELETED = "91"  # a substate in OpenPBS


def submit_command(
    request: JobRequest, queue: str, account: str, extra: Sequence[str], *, select: bool
) -> list[str]:
    """Return the submit command, which forbids reruns: a job that runs twice would be measured twice.

    With *select* the command requests processors in the syntax of OpenPBS.
    """
    chunk = f"select=1:ncpus={request.cpus}" if select else f"nodes=1:ppn={request.cpus}"
    return [
        "qsub",
        *("-N", request.name),
        *("-S", "/bin/sh"),
        *("-r", "n"),
        *("-m", "n"),
        *("-j", "oe"),
        *("-o", request.output),
        *("-l", chunk),
        *("-l", f"walltime={clock_text(request.whole_wall_seconds)}"),
        *(["-q", queue] if queue else []),
        *(["-A", account] if account else []),
        *extra,
        request.script,
    ]


def clock_text(seconds: int) -> str:
    """Format *seconds* as hours, minutes and seconds, such as "100:00:01"."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def parse_id(text: str) -> str:
    """Return the number with the name of the server, such as "12.pbs", from the output of ``qsub``."""
    match = _ID.search(text)
    return match[0] if match else ""


def parse_status(text: str, complaint: str) -> JobRecord | None:
    """Return the record of one job; None if PBS did not answer.

    *text* is the stdout of ``qstat -f``, *complaint* is its stderr.
    """
    attributes = parse_attributes(text)
    if "job_state" in attributes:
        return _record(attributes)
    return UNKNOWN_JOB if _NO_SUCH_JOB.search(complaint) else None


def parse_attributes(text: str) -> dict[str, str]:
    """Return the attributes of a job by name; a line that begins with a tab continues the previous line."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("\t") and lines:
            lines[-1] += line[1:]
        else:
            lines.append(line)
    return {match[1]: match[2] for match in map(_ATTRIBUTE.match, lines) if match}


def parse_seconds(text: str) -> float | None:
    """Return a UTC time in the format of C's ``ctime`` as seconds since the epoch; None for other text."""
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def parse_clock(text: str) -> float | None:
    """Parse a duration such as "01:00:00" into seconds; return None for other text."""
    words = text.split(":")
    if not all(word.isdigit() for word in words):
        return None
    return float(sum(int(word) * 60**power for power, word in enumerate(reversed(words))))


def _record(attributes: Mapping[str, str]) -> JobRecord:
    letter = attributes["job_state"]
    phase = _PHASES.get(letter, WAITING)
    code = attributes.get("Exit_status", attributes.get("exit_status", ""))
    return JobRecord(
        phase,
        _STATES.get(letter, letter),
        attributes.get("comment", ""),
        submitted=parse_seconds(attributes.get("ctime", "")),
        started=parse_seconds(attributes.get("stime", attributes.get("start_time", ""))),
        ended=parse_seconds(attributes.get("obittime", attributes.get("comp_time", "")))
        if phase == OVER
        else None,
        status=_status(code) if phase == OVER else None,
        how=_how(attributes, code) if phase == OVER else "",
    )


def _status(code: str) -> int | None:
    """Return the job's exit status, 128 + n for signal n (PBS writes 256 + n).

    A negative *code* is an error of PBS, not of the job, so the result is None.
    """
    if not re.fullmatch(r"-?\d+", code) or int(code) < 0:
        return None
    return int(code) if int(code) < 256 else 128 + int(code) - 256


def _how(attributes: Mapping[str, str], code: str) -> str:
    if attributes.get("substate") == _DELETED:
        return CANCELLED
    if re.fullmatch(r"-\d+", code):
        causes = _TORQUE_HOW if "exit_status" in attributes else _OPENPBS_HOW
        return causes.get(int(code), "could not be run")
    used, limit = (
        parse_clock(attributes.get(f"{kind}.walltime", "")) for kind in ("resources_used", "Resource_List")
    )
    killed = (_status(code) or 0) > 128
    return WALL_LIMIT if killed and used is not None and limit is not None and used >= limit else ""


class Batch(QueueingSystem):
    """Submits jobs to PBS.

    Args:
        queue: the queue, by default chosen by PBS.
        account: the account of the jobs.
        extra: further arguments for qsub.
        select: whether jobs request processors by "select=1:ncpus=2", the syntax of OpenPBS; otherwise by
            "nodes=1:ppn=2", which both dialects accept.
    """

    status = STATUS
    listing = LISTING
    removing = REMOVING
    never_arrived = NEVER_ARRIVED

    def __init__(
        self,
        shell: ResourceShell,
        *,
        queue: str = "",
        account: str = "",
        extra: Sequence[str] = (),
        select: bool = False,
    ) -> None:
        super().__init__(shell, queue=queue, account=account, extra=extra)
        self._select = select

    def submit_command(self, request: JobRequest) -> list[str]:
        return submit_command(request, self.queue, self.account, self.extra, select=self._select)

    def parse_id(self, text: str) -> str:
        return parse_id(text)

    def parse_status(self, text: str, complaint: str) -> JobRecord | None:
        return parse_status(text, complaint)
