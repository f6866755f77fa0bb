"""PBS, in its two living dialects: OpenPBS (and PBS Professional) and Torque. qsub, qstat, qselect, qdel.

Both print ``name = value`` with long values going on in the next line after a tab. OpenPBS says of what has
ended that it is history (``-x``, an XML format in Torque), Torque keeps it in the queue as completed.
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
# Not what is completed; Torque does not know of suspended ones.
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
# What the execution daemon says instead of an exit status; OpenPBS and Torque use some numbers differently.
_OPENPBS_HOW = {-26: NO_MEMORY, -27: NO_MEMORY, -28: "used up its CPU time", -29: WALL_LIMIT}
_TORQUE_HOW = {-9: NO_MEMORY, -10: WALL_LIMIT, -11: "used up its CPU time"}
_DELETED = "91"  # a substate of OpenPBS


def submit_command(
    request: JobRequest, queue: str, account: str, extra: Sequence[str], *, select: bool
) -> list[str]:
    """PBS counts in seconds. A job that is started twice would be measured twice."""
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
    """As in "100:00:01"."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def parse_id(text: str) -> str:
    """The number in what ``qsub`` prints, with its server: "12.pbs"."""
    found = _ID.search(text)
    return found[0] if found else ""


def parse_status(text: str, complaint: str) -> JobRecord | None:
    """What ``qstat -f`` prints of one job."""
    said = parse_attributes(text)
    if "job_state" in said:
        return _record(said)
    return UNKNOWN_JOB if _NO_SUCH_JOB.search(complaint) else None


def parse_attributes(text: str) -> dict[str, str]:
    """The attributes, whole: a line that begins with a tab goes on where the one before was broken."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("\t") and lines:
            lines[-1] += line[1:]
        else:
            lines.append(line)
    return {found[1]: found[2] for found in map(_ATTRIBUTE.match, lines) if found}


def parse_seconds(text: str) -> float | None:
    """A time in UTC as C's ``ctime`` writes it; None for anything else."""
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def parse_clock(text: str) -> float | None:
    """The seconds in "01:00:00"."""
    words = text.split(":")
    if not all(word.isdigit() for word in words):
        return None
    return float(sum(int(word) * 60**power for power, word in enumerate(reversed(words))))


def _record(said: Mapping[str, str]) -> JobRecord:
    letter = said["job_state"]
    phase = _PHASES.get(letter, WAITING)
    code = said.get("Exit_status", said.get("exit_status", ""))
    return JobRecord(
        phase,
        _STATES.get(letter, letter),
        said.get("comment", ""),
        submitted=parse_seconds(said.get("ctime", "")),
        started=parse_seconds(said.get("stime", said.get("start_time", ""))),
        ended=parse_seconds(said.get("obittime", said.get("comp_time", ""))) if phase == OVER else None,
        status=_status(code) if phase == OVER else None,
        how=_how(said, code) if phase == OVER else "",
    )


def _status(code: str) -> int | None:
    """As a shell says it; PBS adds a signal to 256, and has less than nothing for what never was."""
    if not re.fullmatch(r"-?\d+", code) or int(code) < 0:
        return None
    return int(code) if int(code) < 256 else 128 + int(code) - 256


def _how(said: Mapping[str, str], code: str) -> str:
    if said.get("substate") == _DELETED:
        return CANCELLED
    if re.fullmatch(r"-\d+", code):
        known = _TORQUE_HOW if "exit_status" in said else _OPENPBS_HOW
        return known.get(int(code), "could not be run")
    used, limit = (
        parse_clock(said.get(f"{what}.walltime", "")) for what in ("resources_used", "Resource_List")
    )
    killed = (_status(code) or 0) > 128
    return WALL_LIMIT if killed and used is not None and limit is not None and used >= limit else ""


class Batch(QueueingSystem):
    """Options: *queue*, *account*, *extra* arguments for qsub; *select*, to ask for processors as only
    OpenPBS understands it ("select=1:ncpus=2") instead of as both do ("nodes=1:ppn=2").
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
