"""The exchange of a remote reporter with the server: its state for its assignment and requested runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.fleet import agent_state, signatures
from monitor.fleet.assignment import current_assignment
from monitor.fleet.signatures import Purpose
from monitor.ingest.chains import declare_heads
from monitor.ledger import agent_runs, heartbeats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from monitor.ledger.agent_runs import RequestedRun
    from monitor.models import ReporterKey

EXCHANGE_SECONDS = 60


@dataclass(frozen=True)
class SignedDocument:
    """JSON text, and the server's signature of it."""

    document: str
    signature: str


@dataclass(frozen=True)
class ExchangeAnswer:
    """The answer to an exchange; *assignment* is None if the agent has the newest version."""

    assignment: SignedDocument | None
    requests: Sequence[RequestedRun]


def exchange(key: ReporterKey, body: bytes, now: datetime) -> ExchangeAnswer:
    """Store the state of the agent that *key* belongs to, and answer it.

    Raises:
        reporters.fields.Unfit: *body* is malformed or exceeds a bound.
    """
    reporter = key.reporter
    state = agent_state.parse_state(reporter, body, now)
    agent_state.store_status(state.status)
    heartbeats.record(reporter.component, now)
    declare_heads(reporter.name, state.heads)
    if state.in_flight:
        agent_runs.renew_leases(reporter, state.in_flight, now)
    newest = current_assignment(reporter, now)
    is_current = newest.version == state.status.assignment_version
    document = None if is_current else sign(key, Purpose.ASSIGNMENT, newest.document)
    return ExchangeAnswer(document, agent_runs.requested_runs(reporter, now))


def sign(key: ReporterKey, purpose: Purpose, document: str) -> SignedDocument:
    """Sign *document* in the method of the agent that *key* belongs to."""
    return SignedDocument(document, signatures.sign(key.method, purpose, document.encode()))
