"""The exchange of a remote reporter with the server: its state for its assignment and requested runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import DateTimeField, F, Q, Value
from django.db.models.functions import Greatest, Least

from monitor.models import ReporterKey
from monitor.runs.fleet import agent_state, signatures
from monitor.runs.fleet.assignment import current_assignment
from monitor.runs.fleet.signatures import Purpose
from monitor.runs.ingest.chains import declare_heads
from monitor.runs.ledger import agent_runs, heartbeats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from monitor.runs.ledger.agent_runs import RequestedRun

EXCHANGE_SECONDS = 60
PACE = timedelta(seconds=2)  # on average; an agent that is killed and started again exchanges more often
BURST = 300  # exchanges beyond the pace


class TooManyExchanges(Exception):
    """The agent exchanges too often; it is to wait for *retry_seconds*."""

    def __init__(self) -> None:
        self.retry_seconds = round(PACE.total_seconds())
        super().__init__(
            f"more than {BURST} exchanges, and more than one in {self.retry_seconds} s; exchange every"
            f" {EXCHANGE_SECONDS} s"
        )


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
        TooManyExchanges: the agent exchanges too often.
        reporters.fields.Unfit: *body* is malformed or exceeds a bound.
        monitor.runs.ingest.chain_limit.TooManyChains: it declares too many chains; it does not count as seen.
    """
    reporter = key.reporter
    _pace(key, now)
    state = agent_state.parse_state(reporter, body, now)
    declare_heads(reporter.name, state.heads)
    agent_state.store_status(state.status)
    heartbeats.record(reporter.component, now)
    if state.in_flight:
        agent_runs.renew_leases(reporter, state.in_flight, now)
    newest = current_assignment(reporter, now)
    is_current = newest.version == state.status.assignment_version
    document = None if is_current else sign(key, Purpose.ASSIGNMENT, newest.document)
    return ExchangeAnswer(document, agent_runs.requested_runs(reporter, now))


def _pace(key: ReporterKey, now: datetime) -> None:
    """Count an exchange. A time later than the pace allows is ignored: the server's clock went back."""
    latest = now + BURST * PACE
    may = Q(paced_until=None) | Q(paced_until__lte=latest) | Q(paced_until__gt=latest + PACE)
    times = [Value(time, DateTimeField()) for time in (now, latest)]
    counted = Least(Greatest(F("paced_until"), times[0]), times[1]) + Value(PACE)
    if not ReporterKey.objects.filter(may, pk=key.pk).update(paced_until=counted):
        raise TooManyExchanges


def sign(key: ReporterKey, purpose: Purpose, document: str) -> SignedDocument:
    """Sign *document* in the method of the agent that *key* belongs to."""
    return SignedDocument(document, signatures.sign(key.method, purpose, document.encode()))
