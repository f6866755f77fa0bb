"""Store the reports of a request, and answer for single reports."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from monitor.runs.ingest.group_commit import QueueFull
from monitor.runs.ingest.http_senders import IngestBusy, SentReports, sender_commit
from monitor.runs.ingest.service import SlotsTaken
from monitor.web.api.http.problems import Refused, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.http import HttpRequest, HttpResponse

    from monitor.runs.ingest.receipt import ReportReceipt

BUSY_SECONDS = 1
_ERROR_CHARACTERS = 500


class ReportsBusy(Exception):
    """As many reports wait as may wait, or others take the slots; ``answer`` asks the sender to retry."""

    def answer(self) -> HttpResponse:
        response = problem(503, "busy", f"{self}; try again in a second")
        response["Retry-After"] = str(BUSY_SECONDS)
        return response


def announced(run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return *run*, which answers requests with reports, changed so that a group commit waits for them.

    *run* authenticates the sender before it calls the view: the group commit waits from then on.
    """

    @wraps(run)
    def answer(request: HttpRequest, **path: Any) -> HttpResponse:
        with sender_commit.announced():
            return run(request, **path)

    return answer


def store(sent: SentReports) -> Sequence[ReportReceipt]:
    """Store the reports of a request, together with those of concurrent requests; return their receipts.

    Raises:
        ReportsBusy: nothing was stored.
    """
    try:
        return sender_commit.submit(sent)
    except (QueueFull, IngestBusy, SlotsTaken) as error:
        raise ReportsBusy(str(error)) from error


def receipt_fields(receipt: ReportReceipt) -> dict[str, Any]:
    return {
        "run": str(receipt.run) if receipt.run else None,
        "accepted": receipt.accepted,
        "duplicate": receipt.duplicate,
        "conflict": receipt.conflict,
        "error": receipt.error[:_ERROR_CHARACTERS],
    }


def refuse_conflict(receipt: ReportReceipt) -> None:
    """Raise Refused if another report of the run was stored before the only report of a request."""
    if receipt.conflict:
        detail = f"the run {receipt.run} has another report already, which stays: do not send this one again"
        if receipt.error:
            detail = f"{detail}; {receipt.error}"
        raise Refused(409, "conflict", detail, receipts=[receipt_fields(receipt)])
