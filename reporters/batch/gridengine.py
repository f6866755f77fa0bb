"""Grid Engine and its derivatives: qsub, qstat, qacct, qdel.

Waiting and running jobs are in ``qstat``; ended jobs are in ``qacct``, once the master has written the
accounting records. Times are in UTC, or in seconds or milliseconds since the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import ClassVar
from xml.etree import ElementTree  # documents with declarations are refused before parsing

from reporters.base import ResourceShell
from reporters.jobrecord import (
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
export LC_ALL=C TZ=UTC
said=$(qstat -xml -j "$id") || exit
case $said in *unknown_jobs*) qacct -j "$id" || echo "$said" ;; *) echo "$said" ;; esac
"""
LISTING = """\
said=$(qstat -xml -u "$(id -un)") && echo "$said" | awk -F '[<>]' -v name="$name" '
  $2 == "JB_job_number" { id = $3 }
  $2 == "JB_name" && $3 == name { print id }'
"""
REMOVING = 'qdel "$@"'
NEVER_ARRIVED = re.compile(r"unable to send message to qmaster|unable to contact qmaster", re.IGNORECASE)

_ID = re.compile(r"^(\d+)(?:\.\S+)?$", re.MULTILINE)
_OF_LIMIT = "37"  # "failed" in qacct for a job over a limit that the master enforced
_AFTER_JOB = "100"  # "failed" in qacct for a killed job
_EPOCH_MILLISECONDS = 1e11  # above this, a time is in milliseconds


def submit_command(
    request: JobRequest, queue: str, account: str, extra: Sequence[str], parallel_environment: str
) -> list[str]:
    """Return the submit command, which forbids reruns: a job that runs twice would be measured twice."""
    return [
        "qsub",
        "-terse",
        *("-N", request.name),
        *("-S", "/bin/sh"),
        *("-wd", request.directory),
        *("-r", "n"),
        *("-j", "y"),
        *("-o", request.output),
        *("-l", f"h_rt={request.whole_wall_seconds}"),
        *(["-pe", parallel_environment, str(request.cpus)] if request.cpus > 1 else []),
        *(["-q", queue] if queue else []),
        *(["-A", account] if account else []),
        *extra,
        request.script,
    ]


def parse_id(text: str) -> str:
    """Return the job's number from the output of ``qsub -terse``, which may begin with warnings."""
    numbers = _ID.findall(text)
    return numbers[-1] if numbers else ""


def parse_status(text: str) -> JobRecord | None:
    """Return the job's record from the output of ``qstat -xml -j`` or ``qacct -j``; None for other text."""
    if text.startswith("===="):
        return _of_accounting(parse_accounting(text))
    root = parse_xml(text)
    if root is None:
        return None
    return UNKNOWN_JOB if root.tag == "unknown_jobs" else _of_qstat(root)


def parse_xml(text: str) -> ElementTree.Element | None:
    """Parse an XML document; None if it is invalid or has declarations, which entity attacks use."""
    if "<!" in text:
        return None
    try:
        return ElementTree.fromstring(text.strip())  # noqa: S314  # see above
    except ElementTree.ParseError:
        return None


def parse_accounting(text: str) -> dict[str, str]:
    """Return the fields of the last record of ``qacct -j``, by name."""
    record = re.split(r"^=+$", text, flags=re.MULTILINE)[-1]
    rows = (line.split(None, 1) for line in record.splitlines())
    return {row[0]: row[1].strip() for row in rows if len(row) == 2}


def parse_seconds(text: str) -> float | None:
    """Return the time *text* in seconds since the epoch; None for other text.

    *text* is in seconds or milliseconds since the epoch, or a UTC date as qacct prints it.
    """
    if re.fullmatch(r"\d+", text):
        return float(text) / (1000 if float(text) > _EPOCH_MILLISECONDS else 1) or None
    form = "%a %b %d %H:%M:%S %Y" if text[:1].isalpha() else "%m/%d/%Y %H:%M:%S.%f"
    try:
        return datetime.strptime(text, form).replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def _of_qstat(root: ElementTree.Element) -> JobRecord:
    started = parse_seconds(root.findtext(".//JAT_start_time", ""))
    errors = [error.text or "" for error in root.iter("QIM_message")]
    messages = [message.text or "" for message in root.iter("MES_message")]
    state = "running" if started else "in error" if errors else "waiting"
    return JobRecord(
        RUNNING if started else WAITING,
        state,
        "; ".join(" ".join(text.split()) for text in (errors or ([] if started else messages))),
        submitted=parse_seconds(root.findtext(".//JB_submission_time", "")),
        started=started,
    )


def _of_accounting(fields: dict[str, str]) -> JobRecord:
    number, _, text = fields.get("failed", "0").partition(":")
    exit_status = fields.get("exit_status", "").partition(" ")[0]
    return JobRecord(
        OVER,
        "ended",
        text.strip(),
        submitted=parse_seconds(fields.get("qsub_time", "")),
        started=parse_seconds(fields.get("start_time", "")),
        ended=parse_seconds(fields.get("end_time", "")),
        status=int(exit_status) if exit_status.isdigit() else None,
        how=_how(number.strip()),
    )


def _how(failed: str) -> str:
    if failed in ("0", _AFTER_JOB):
        return ""
    return WALL_LIMIT if failed == _OF_LIMIT else "could not be run"


class Batch(QueueingSystem):
    """Submits jobs to Grid Engine.

    Args:
        queue: the queue, by default chosen by Grid Engine.
        account: the account of the jobs.
        extra: further arguments for qsub.
        parallel_environment: name of the parallel environment for jobs with more than one processor.
    """

    status = STATUS
    listing = LISTING
    removing = REMOVING
    never_arrived = NEVER_ARRIVED
    forgets_for_seconds: ClassVar[float] = 20.0

    def __init__(
        self,
        shell: ResourceShell,
        *,
        queue: str = "",
        account: str = "",
        extra: Sequence[str] = (),
        parallel_environment: str = "smp",
    ) -> None:
        super().__init__(shell, queue=queue, account=account, extra=extra)
        self._parallel_environment = parallel_environment

    def submit_command(self, request: JobRequest) -> list[str]:
        return submit_command(request, self.queue, self.account, self.extra, self._parallel_environment)

    def parse_id(self, text: str) -> str:
        return parse_id(text)

    def parse_status(self, text: str, complaint: str) -> JobRecord | None:
        return parse_status(text)
