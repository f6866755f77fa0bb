"""Exchange with the server: tell the state of the agent, get assignments and requests. Runs in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reporters.fields import Fields, Unfit
from reporters.remote.agent.backoff import Backoff, jitter
from reporters.remote.agent.exchange_document import (
    AgentActivity,
    HeldAssignment,
    SpoolState,
    exchange_document,
)
from reporters.remote.agent.gate import PolicyGate
from reporters.remote.agent.notices import ERROR, INFO, Notice, Notices
from reporters.remote.agent.runs import RunRequest
from reporters.remote.assignment import AssignmentRefused, SiteAssignment
from reporters.remote.assignment_store import AssignmentStore
from reporters.remote.clock import SiteClock
from reporters.remote.gateway import Gateway, Revoked
from reporters.remote.identity import ReporterIdentity
from reporters.remote.server import ServerError, ServerUnavailable
from reporters.remote.signing.base import SigningError
from reporters.remote.state_directory import StateError
from reporters.spool.files import SpoolError
from reporters.spool.spool import Spool

REVOKED_SECONDS = 3600.0
MOST_WAIT_SECONDS = 300.0
_LEAST_SECONDS, _MOST_SECONDS = 5.0, 3600.0
_JITTER = 0.1
_MAX_REQUESTS = 1000


@dataclass(frozen=True)
class Listener:
    """What the thread calls: with the assignment in force, with requests, and at the ends of exchanges."""

    assigned: Callable[[SiteAssignment], None]
    requested: Callable[[Sequence[RunRequest]], None]
    revoked: Callable[[bool], None]
    state: Callable[[], AgentActivity]


class Exchange:
    """Exchanges through *gateway* until ``stop``.

    Attributes:
        last_at: time of the last answer, None before the first.
        error: why the last exchange failed; empty if it did not.
    """

    def __init__(
        self,
        gateway: Gateway,
        identity: ReporterIdentity,
        store: AssignmentStore,
        gate: PolicyGate,
        spool: Spool,
        clock: SiteClock,
        notices: Notices,
        listener: Listener,
    ) -> None:
        self._gateway, self._store, self._gate, self._spool = gateway, store, gate, spool
        self._clock, self._notices, self._listener = clock, notices, listener
        self._seconds = identity.exchange_seconds
        self._backoff = Backoff(_LEAST_SECONDS, MOST_WAIT_SECONDS)
        self._assignment: SiteAssignment | None = None
        self._assignment_error = ""
        self._wake, self._is_stopped = threading.Event(), False
        self.is_revoked = False
        self.last_at: datetime | None = None
        self.error = ""

    @property
    def assignment_version(self) -> int:
        return self._assignment.version if self._assignment else 0

    @property
    def assignment_error(self) -> str:
        """Why the newest assignment was refused; empty if it was not."""
        return self._assignment_error

    def wake(self) -> None:
        """Exchange soon: the state of the agent changed."""
        self._wake.set()

    def stop(self) -> None:
        self._is_stopped = True
        self._wake.set()

    def begin(self) -> SiteAssignment | None:
        """Read, verify and return the assignment on disk, by which the agent starts."""
        try:
            signed = self._store.current()
        except (AssignmentRefused, StateError, SigningError) as error:
            self._refuse(f"the assignment on disk is not used: {error}")
            return None
        self._assignment = None if signed is None else signed.assignment
        return self._assignment

    def serve(self) -> None:
        """Exchange until ``stop`` is called; then once more, so that the server knows of the stop."""
        while not self._is_stopped:
            self._wake.clear()
            self._wake.wait(self.exchange())
        self.exchange()

    def exchange(self) -> float:
        """Exchange once; return the seconds until the next time."""
        self._reread()
        notices = self._notices.take()
        try:
            answer = self._gateway.exchange(self._request(notices))
        except Revoked as error:
            self._fail(notices, f"the key of this reporter was revoked: {error}")
            self._set_revoked(is_revoked=True)
            return REVOKED_SECONDS
        except (ServerError, SigningError, SpoolError) as error:
            self._fail(notices, f"no exchange with the server: {error}")
            return self._wait_after(error)
        self.last_at, self.error = self._clock.now(), ""
        self._backoff.succeeded()
        self._set_revoked(is_revoked=False)
        self._obey(Fields(answer))
        return self._seconds * jitter(1 - _JITTER, 1 + _JITTER)

    def _wait_after(self, error: Exception) -> float:
        if isinstance(error, ServerUnavailable):
            return max(_LEAST_SECONDS, self._backoff.failed(error.retry_after_seconds))
        return max(self._seconds, self._backoff.failed())

    def _fail(self, notices: Sequence[Any], text: str) -> None:
        self._notices.put_back(notices)
        self.error = text
        self._notices.add(ERROR, text)

    def _set_revoked(self, *, is_revoked: bool) -> None:
        if self.is_revoked != is_revoked:
            self.is_revoked = is_revoked
            self._listener.revoked(is_revoked)

    def _request(self, notices: Sequence[Notice]) -> Mapping[str, Any]:
        document = exchange_document(
            self._listener.state(),
            HeldAssignment(self.assignment_version, self._assignment_error, self._store.has_pending),
            self._gate.status(),
            SpoolState(self._spool.status(), self._spool.heads()),
            self._clock.offset(),
            notices,
        )
        resources = self._assignment.resources.values() if self._assignment else ()
        return self._gate.disclosed_status(document, resources)

    def _obey(self, answer: Fields) -> None:
        """Use what the server sent. Each part is used, or refused, on its own."""
        try:
            self._seconds = min(max(answer.number("exchange_seconds"), _LEAST_SECONDS), _MOST_SECONDS)
            envelope = answer.value("assignment", "a signed document or null")
        except Unfit as error:
            self._notices.add(ERROR, f"the server's answer is malformed: {error}")
            return
        if envelope is not None:
            self._offer(envelope)
        try:
            requests = [_requested(one) for one in answer.each("requests")[:_MAX_REQUESTS]]
        except Unfit as error:
            self._notices.add(ERROR, f"the server's requests are malformed: {error}")
            return
        if requests:
            self._listener.requested(requests)

    def _offer(self, envelope: object) -> None:
        had_pending = self._store.has_pending
        try:
            signed = self._store.offer(envelope, self._gate.policy.approval)
        except AssignmentRefused as error:
            self._refuse(f"refused an assignment: {error}")
            return
        except (SigningError, StateError) as error:
            self._refuse(f"cannot take an assignment: {error}")
            return
        self._assignment_error = ""
        if signed is None:
            self._notices.add(INFO, "an assignment waits for approval: run `approve`")
            if not had_pending:
                self._wake.set()
        else:
            self._put_in_force(signed.assignment)

    def _refuse(self, text: str) -> None:
        is_new = text != self._assignment_error
        self._assignment_error = text
        self._notices.add(ERROR, text)
        if is_new:  # the server offers the assignment again with every exchange
            self._wake.set()

    def _put_in_force(self, assignment: SiteAssignment) -> None:
        if assignment == self._assignment:
            return
        self._assignment = assignment
        series = len(assignment.series)
        self._notices.log(INFO, f"assignment {assignment.version} is in force: {series} series")
        self._listener.assigned(assignment)
        self._wake.set()

    def _reread(self) -> None:
        """Notice that the operator has approved an assignment."""
        try:
            signed = self._store.current_if_changed()
        except (AssignmentRefused, StateError, SigningError):
            return  # the one in memory stays in force
        if signed is not None:
            self._put_in_force(signed.assignment)


def _requested(fields: Fields) -> RunRequest:
    return RunRequest(
        fields.text("run", maximum=100),
        fields.text("series", maximum=200),
        fields.time("slot"),
        fields.time("expires_at"),
    )
