"""HTCondor: condor_submit, condor_q and condor_history, condor_rm.

HTCondor has no queues, and its times are seconds since the epoch. A held job stays held until a user releases
it. There is no wall limit: the job's description asks for its removal after the limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from reporters.base import ResourceShell
from reporters.jobrecord import (
    CANCELLED,
    OVER,
    RUNNING,
    UNKNOWN_JOB,
    WAITING,
    WALL_LIMIT,
    JobRecord,
    JobRequest,
)
from reporters.queueing import QueueingSystem

_ATTRIBUTES = (
    "JobStatus,QDate,JobStartDate,JobCurrentStartDate,JobCurrentStartExecutingDate,CompletionDate,"
    "EnteredCurrentStatus,ExitBySignal,ExitCode,ExitSignal,RemoveReason,HoldReason,LastRejMatchReason"
)
STATUS = f"""\
condor_q -json -attributes {_ATTRIBUTES} "$id" || exit
condor_history -json -limit 1 -attributes {_ATTRIBUTES} "$id"
"""
LISTING = """condor_q -constraint "JobBatchName == \\"$name\\"" -af ClusterId"""
REMOVING = 'condor_rm "$@"'
NEVER_ARRIVED = re.compile(
    r"Failed to connect|Can't find address of local schedd|Unable to locate local daemon"
)

_ID = re.compile(r"^(\d+\.\d+)(?: - \S+)?\s*$", re.MULTILINE)
_ADS = re.compile(r"\[.*?^\]", re.MULTILINE | re.DOTALL)
_PHASES = {1: WAITING, 2: RUNNING, 3: OVER, 4: OVER, 5: WAITING, 6: RUNNING, 7: RUNNING}
_STATES = {
    1: "idle",
    2: "running",
    3: "removed",
    4: "completed",
    5: "held",
    6: "transferring output",
    7: "suspended",
}
_DESCRIPTION = """\
universe = vanilla
executable = /bin/sh
transfer_executable = False
should_transfer_files = NO
arguments = {arguments}
initialdir = {directory}
output = {output}
error = {output}
request_cpus = {cpus}
notification = never
periodic_remove = JobStatus == 2 && time() - EnteredCurrentStatus > {wall_seconds}
+JobBatchName = "{name}"
{more}queue
"""


def submit_command(request: JobRequest, account: str, extra: Sequence[str]) -> list[str]:
    """Return the submit command, which passes the submit description to condor_submit on stdin."""
    script = 'description=$1; shift; exec "$@" <<end\n$description\nend'
    return ["sh", "-c", script, "sh", description(request, account), "condor_submit", "-terse", *extra]


def description(request: JobRequest, account: str) -> str:
    """Return HTCondor's submit description of *request*."""
    return _DESCRIPTION.format(
        arguments=quoted([request.script]),
        directory=request.directory,
        output=request.output,
        cpus=request.cpus,
        wall_seconds=request.whole_wall_seconds,
        name=request.name,
        more=f"accounting_group = {account}\n" if account else "",
    )


def quoted(arguments: Sequence[str]) -> str:
    """Return *arguments* in HTCondor's "new" syntax: "'first' 'it''s' 'third'"; quotes inside are doubled."""
    single = (argument.replace("'", "''").replace('"', '""') for argument in arguments)
    return '"{}"'.format(" ".join(f"'{argument}'" for argument in single))


def parse_id(text: str) -> str:
    """Return the job's number from the output of ``condor_submit -terse``, such as "12.0 - 12.0"."""
    match = _ID.search(text)
    return match[1] if match else ""


def parse_status(text: str, complaint: str) -> JobRecord | None:
    """Return the job's record; None if the output is no record.

    *text* is the stdout of the command ``STATUS``, *complaint* is its stderr. Both condor_q and
    condor_history print a JSON list or nothing.
    """
    ads = parse_ads(text)
    if ads:
        return _record(ads[0])
    return None if text.strip("[] \n") or complaint.strip() else UNKNOWN_JOB


def parse_ads(text: str) -> list[dict[str, Any]]:
    """Return all job ads (descriptions of jobs) in *text*; an empty list if *text* is no JSON."""
    try:
        return [ad for ads in _ADS.findall(text) for ad in json.loads(ads)]
    except ValueError:
        return []


def _record(ad: Mapping[str, Any]) -> JobRecord:
    number = ad.get("JobStatus", 0)
    phase = _PHASES.get(number, WAITING)
    reason = {1: "LastRejMatchReason", 3: "RemoveReason", 5: "HoldReason"}.get(number, "")
    began = (ad.get(name) for name in ("JobCurrentStartExecutingDate", "JobCurrentStartDate", "JobStartDate"))
    ended = ad.get("CompletionDate") or ad.get("EnteredCurrentStatus")
    return JobRecord(
        phase,
        _STATES.get(number, f"in status {number}"),
        " ".join(str(ad.get(reason, "")).split()),
        submitted=_seconds(ad.get("QDate")),
        started=next((float(at) for at in began if at), None),
        ended=_seconds(ended) if phase == OVER else None,
        status=_status(ad) if phase == OVER else None,
        how=_how(ad) if phase == OVER else "",
    )


def _seconds(at: Any) -> float | None:
    return float(at) if at else None


def _status(ad: Mapping[str, Any]) -> int | None:
    """Return the job's exit status, 128 + n for signal n; None if *ad* has none."""
    if ad.get("ExitBySignal"):
        return 128 + int(ad.get("ExitSignal", 0))
    return int(ad["ExitCode"]) if "ExitCode" in ad else None


def _how(ad: Mapping[str, Any]) -> str:
    if ad.get("JobStatus") != 3:
        return ""
    return WALL_LIMIT if "PeriodicRemove" in str(ad.get("RemoveReason")) else CANCELLED


class Batch(QueueingSystem):
    """Submits jobs to HTCondor.

    Args:
        account: an accounting group.
        extra: further arguments for condor_submit.
    """

    status = STATUS
    listing = LISTING
    removing = REMOVING
    never_arrived = NEVER_ARRIVED

    def __init__(self, shell: ResourceShell, *, account: str = "", extra: Sequence[str] = ()) -> None:
        super().__init__(shell, account=account, extra=extra)

    def submit_command(self, request: JobRequest) -> list[str]:
        return submit_command(request, self.account, self.extra)

    def parse_id(self, text: str) -> str:
        return parse_id(text)

    def parse_status(self, text: str, complaint: str) -> JobRecord | None:
        return parse_status(text, complaint)
