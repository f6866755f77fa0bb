"""PBS in its two dialects, OpenPBS (and PBS Professional) and Torque: qsub, qstat, qselect, qdel.

Both print ``name = value``; long values continue in the next line after a tab. OpenPBS moves ended jobs to
the history (``-x``, which is an XML format in Torque); Torque keeps them in the queue as completed.
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
    """Return the submit command. Limits are in seconds; no reruns, since these would be measured twice."""
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
    """Format hours, minutes and seconds, as in "100:00:01"."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def parse_id(text: str) -> str:
    """Parse the number from ``qsub``, with its server: "12.pbs"."""
    match = _ID.search(text)
    return match[0] if match else ""


def parse_status(text: str, complaint: str) -> JobRecord | None:
    """Parse the output of ``qstat -f`` for one job."""
    attributes = parse_attributes(text)
    if "job_state" in attributes:
        return _record(attributes)
    return UNKNOWN_JOB if _NO_SUCH_JOB.search(complaint) else None


def parse_attributes(text: str) -> dict[str, str]:
    """Parse the attributes; a line that begins with a tab continues the one before."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("\t") and lines:
            lines[-1] += line[1:]
        else:
            lines.append(line)
    return {match[1]: match[2] for match in map(_ATTRIBUTE.match, lines) if match}


def parse_seconds(text: str) -> float | None:
    """Parse a time in UTC in the format of C's ``ctime``; None for anything else."""
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def parse_clock(text: str) -> float | None:
    """Parse "01:00:00" into seconds; None for anything else."""
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
    """Return a shell's exit status. PBS adds 256 to a signal; a negative code is none of the job's."""
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

    Options are *queue*, *account*, *extra* arguments for qsub, and *select*. With *select*, jobs request
    processors in the syntax of OpenPBS ("select=1:ncpus=2") instead of the common one ("nodes=1:ppn=2").
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
