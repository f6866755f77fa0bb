"""What an agent says of itself in an exchange: read strictly, within bounds, and stored.

An agent may be hostile: every text is cut, every list and number is bounded.
"""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monitor.models import Reporter, ReporterStatus
from monitor.models.reporter import PolicyStatus
from monitor.runs.ingest.chains import DeclaredHead
from reporters.fields import Fields, Unfit, parse_object
from reporters.report import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

logger = logging.getLogger(__name__)
MAX_BYTES = 1024 * 1024
MAX_IN_FLIGHT = 1_000
MAX_CHAINS = 2_000
MAX_MESSAGES = 100
MAX_SUMMARY_BYTES = 64 * 1024
_HOSTNAME, _SHORT, _ERROR, _MESSAGE = 253, 50, 2_000, 1_000  # characters
_LEVELS = ("debug", "info", "warning", "error")
_MOST_SECONDS = 1e10
_SMALL = 2**31 - 1
_SHA256 = "[0-9a-f]{64}|"
_COLUMNS = (
    *("seen_at", "started_at", "hostname", "archive_sha256", "version", "python"),
    *("assignment_version", "assignment_error", "pending_approvals", "in_flight"),
    *("policy_status", "policy_sha256", "policy_error", "policy_summary"),
    *("spool_records", "spool_bytes", "spool_oldest_at", "dropped_records"),
    *("clock_offset_seconds", "clock_bound_seconds"),
)


@dataclass(frozen=True)
class AgentState:
    """The state of an agent; *status* is not stored yet."""

    status: ReporterStatus
    in_flight: tuple[uuid.UUID, ...]
    heads: tuple[DeclaredHead, ...]


def parse_state(reporter: Reporter, body: bytes, now: datetime) -> AgentState:
    """Parse the body of an exchange.

    Raises:
        Unfit: *body* is malformed or exceeds a bound.
    """
    fields = Fields(parse_object(body, max_bytes=MAX_BYTES))
    in_flight = tuple(_uuid(text, fields, "in_flight") for text in _some(fields, "in_flight"))
    status = ReporterStatus(
        reporter=reporter,
        seen_at=now,
        started_at=fields.time("started_at"),
        hostname=fields.text("hostname")[:_HOSTNAME],
        archive_sha256=fields.text("archive_sha256", pattern=_SHA256),
        version=fields.text("version")[:_SHORT],
        python=fields.text("python")[:_SHORT],
        pending_approvals=min(fields.integer("pending_approvals", minimum=0), _SMALL),
        in_flight=len(in_flight),
        messages=_messages(fields),
        **_assignment(fields.fields("assignment")),
        **_policy(fields.fields("policy")),
        **_spool(fields.fields("spool")),
        **(fields.optional("clock", lambda name: _clock(fields.fields(name))) or {}),
    )
    heads = fields.each("chains")
    if len(heads) > MAX_CHAINS:
        raise fields.refuse("chains", f"at most {MAX_CHAINS} chains")
    return AgentState(status, in_flight, tuple(_head(head) for head in heads))


def store_status(status: ReporterStatus) -> None:
    """Store *status* in place of the earlier one; new messages are appended to the earlier messages."""
    columns = list(_COLUMNS)
    earlier = ReporterStatus.objects.filter(pk=status.reporter_id).first()
    known = [] if earlier is None else earlier.messages
    fresh = [message for message in status.messages if message not in known]
    if earlier is not None and earlier.started_at > status.started_at:
        fresh += _second_agent(earlier, status, known)
    if fresh:
        status.messages = [*known, *fresh][-MAX_MESSAGES:]
        columns.append("messages")
    ReporterStatus.objects.bulk_create(
        [status], update_conflicts=True, unique_fields=["reporter"], update_fields=columns
    )


def _second_agent(
    earlier: ReporterStatus, status: ReporterStatus, known: list[dict[str, str]]
) -> list[dict[str, str]]:
    """Return the message that two agents have one key, unless it is *known*: an older one came back."""
    agents = (f"{each.hostname}, started {each.started_at:%Y-%m-%d %H:%M:%S}" for each in (status, earlier))
    text = (
        f"two agents use the key of this reporter: {' and '.join(agents)}; if its state directory was copied,"
        " remove one and enrol it as another reporter"
    )
    if any(message["text"] == text[:_MESSAGE] for message in known):
        return []
    logger.warning("reporter %r: %s", status.reporter.name, text)
    return [{"at": rfc3339(status.seen_at), "level": "error", "text": text[:_MESSAGE]}]


def _assignment(fields: Fields) -> dict[str, Any]:
    return {
        "assignment_version": fields.integer("version", minimum=0),
        "assignment_error": fields.text("error")[:_ERROR],
    }


def _policy(fields: Fields) -> dict[str, Any]:
    summary = fields.mapping("summary")
    if len(json.dumps(summary)) > MAX_SUMMARY_BYTES:
        raise Unfit(f"{fields.path('summary')}: expected at most {MAX_SUMMARY_BYTES} bytes")
    return {
        "policy_status": fields.choice("status", PolicyStatus.values),
        "policy_sha256": fields.text("sha256", pattern=_SHA256),
        "policy_error": fields.text("error")[:_ERROR],
        "policy_summary": summary,
    }


def _spool(fields: Fields) -> dict[str, Any]:
    return {
        "spool_records": fields.integer("records", minimum=0),
        "spool_bytes": fields.integer("bytes", minimum=0),
        "spool_oldest_at": fields.optional("oldest_at", fields.time),
        "dropped_records": fields.integer("dropped_records", minimum=0),
    }


def _clock(fields: Fields) -> dict[str, Any]:
    def seconds(name: str) -> float:
        return fields.number(name, minimum=-_MOST_SECONDS, maximum=_MOST_SECONDS)

    return {
        "clock_offset_seconds": fields.optional("offset_seconds", seconds),
        "clock_bound_seconds": fields.optional("bound_seconds", seconds),
    }


def _messages(fields: Fields) -> list[dict[str, str]]:
    return [
        {
            "at": rfc3339(message.time("at")),
            "level": message.choice("level", _LEVELS),
            "text": message.text("text")[:_MESSAGE],
        }
        for message in fields.each("messages")[-MAX_MESSAGES:]
    ]


def _head(fields: Fields) -> DeclaredHead:
    chain = _uuid(fields.text("chain"), fields, "chain")
    return DeclaredHead(chain, fields.integer("next", minimum=0), fields.text("head", pattern=_SHA256))


def _some(fields: Fields, name: str) -> tuple[str, ...]:
    texts = fields.texts(name)
    if len(texts) > MAX_IN_FLIGHT:
        raise fields.refuse(name, f"at most {MAX_IN_FLIGHT} runs")
    return texts


def _uuid(text: str, fields: Fields, name: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise fields.refuse(name, "a UUID") from None
