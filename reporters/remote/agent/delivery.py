"""Deliver the spool: a record leaves it only against a receipt with the server's signature.

Runs in a thread. A failure is followed by a wait that grows; fresh records travel beside a backlog.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from reporters.remote import signing
from reporters.remote.agent.backoff import Backoff
from reporters.remote.agent.notices import ERROR, INFO, WARNING, Notices
from reporters.remote.gateway import Gateway, Revoked
from reporters.remote.identity import ReporterIdentity
from reporters.remote.server import ServerError, ServerRefused, ServerUnavailable
from reporters.remote.signing.base import InvalidSignature, SigningError
from reporters.spool.files import SpoolError
from reporters.spool.lanes import FRESH_SECONDS, Lane
from reporters.spool.receipts import MalformedReceipt, Receipt
from reporters.spool.records import MOST_RECORDS, Part, encode_parts
from reporters.spool.spool import Spool

FIRST_WAIT_SECONDS, MOST_WAIT_SECONDS = 2.0, 600.0
REVOKED_SECONDS = 3600.0
PREMATURE_SECONDS = 60.0
_GATHER_SECONDS = 0.5  # reports that end together travel together
_IDLE_SECONDS = 60.0  # records of other processes, and those of an agent before


class Delivery:
    """Delivers a *lane* of *spool* through *gateway* until ``stop``.

    *delivered* is called after each delivery.
    """

    def __init__(
        self,
        spool: Spool,
        gateway: Gateway,
        identity: ReporterIdentity,
        notices: Notices,
        delivered: Callable[[], None],
        lane: Lane = Lane.BOTH,
        most_wait_seconds: float = MOST_WAIT_SECONDS,
    ) -> None:
        self._spool, self._gateway, self._notices, self._delivered = spool, gateway, notices, delivered
        self._server_key, self._method = identity.server_key, signing.load(identity.method)
        self._lane = lane
        self._backoff = Backoff(FIRST_WAIT_SECONDS, most_wait_seconds)
        self._most_records = MOST_RECORDS
        self._wake, self._retry, self._stopped = threading.Event(), threading.Event(), threading.Event()

    def wake(self) -> None:
        """Deliver soon: a report has been spooled."""
        self._wake.set()

    def hurry(self) -> None:
        """Try again soon after failures: the server answers others."""
        self._retry.set()

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()
        self._retry.set()

    def serve(self) -> None:
        """Deliver until ``stop`` is called, then one batch more: the reports of the runs that were ended."""
        while not self._stopped.is_set():
            wait_seconds = self.deliver()
            if wait_seconds is not None:
                self._retry.clear()
                if not self._stopped.wait(min(wait_seconds, FIRST_WAIT_SECONDS)):
                    self._retry.wait(wait_seconds - FIRST_WAIT_SECONDS)
            elif self._wake.wait(_IDLE_SECONDS):
                self._stopped.wait(_GATHER_SECONDS)
        self.deliver()

    def deliver(self) -> float | None:
        """Deliver batches until the spool is empty: return None, or the seconds to wait after a failure."""
        self._wake.clear()
        try:
            while parts := self._spool.batch(self._most_records, lane=self._lane):
                self._deliver_batch(parts)
                self._backoff.succeeded()
                self._most_records = MOST_RECORDS
                if self._stopped.is_set():
                    break
        except Revoked:
            return REVOKED_SECONDS  # the exchange tells the operator
        except ServerUnavailable as error:
            self._notices.add(WARNING, f"reports stay in the spool: {error}")
            return self._backoff.failed(error.retry_after_seconds)
        except (ServerError, SigningError, SpoolError, InvalidReceipt) as error:
            self._notices.add(ERROR, f"reports stay in the spool: {error}")
            return self._backoff.failed()
        return None

    def _deliver_batch(self, parts: Sequence[Part]) -> None:
        try:
            answer = self._gateway.records(encode_parts(parts), is_backlog=self._lane is Lane.BACKLOG)
            receipt = self._verified(answer.get("receipt"))
            acknowledged = self._spool.acknowledge(receipt)
        except ServerRefused:
            self._most_records = max(1, self._most_records // 4)  # one of them may be at fault
            raise
        finally:
            self._spool.release(parts)
        for reason in acknowledged.ignored:
            self._notices.add(WARNING, f"ignored a part of a receipt: {reason}")
        for refused in receipt.refused:
            self._notices.add(
                WARNING, f"the server refused a report, which is in the spool's refused/: {refused.error}"
            )
        if acknowledged.not_kept:
            text = f"refused/ of the spool is full: {acknowledged.not_kept} refused reports were not kept"
            self._notices.add(ERROR, f"{text}; read its files and remove them")
        for conflict in receipt.conflicts:
            self._notices.add(
                WARNING, f"the server already has another report of run {conflict.run}; it keeps both"
            )
        if not receipt.records:
            raise ServerUnavailable(
                "the server accepts them when their time has come: their slots lie ahead of its clock",
                PREMATURE_SECONDS,
            )
        if not acknowledged.records:
            raise InvalidReceipt("the receipt of the server covers none of the records that were sent")
        self._notices.log(INFO, f"delivered {acknowledged.records} records")
        self._delivered()

    def _verified(self, envelope: Any) -> Receipt:
        values = envelope if isinstance(envelope, dict) else {}
        document, signature = values.get("document"), values.get("signature")
        if not isinstance(document, str) or not isinstance(signature, str):
            raise InvalidReceipt("the answer has no receipt")
        try:
            self._method.verify(self._server_key, signing.RECEIPT, document, signature)
            return Receipt.from_document(document)
        except InvalidSignature as error:
            raise InvalidReceipt(f"the receipt is not signed by the server: {error}") from None
        except MalformedReceipt as error:
            raise InvalidReceipt(f"the receipt is malformed: {error}") from None


class LaneDeliveries:
    """Delivers fresh records and the backlog of a spool beside each other, so that neither delays the other.

    The arguments are those of ``Delivery``.
    """

    def __init__(
        self,
        spool: Spool,
        gateway: Gateway,
        identity: ReporterIdentity,
        notices: Notices,
        delivered: Callable[[], None],
    ) -> None:
        self._backlog = Delivery(spool, gateway, identity, notices, delivered, Lane.BACKLOG)

        def delivered_fresh() -> None:
            self._backlog.hurry()
            delivered()

        # Fresh records soon find out that the server is back.
        self._fresh = Delivery(spool, gateway, identity, notices, delivered_fresh, Lane.FRESH, FRESH_SECONDS)

    def wake(self) -> None:
        """Deliver soon: a report has been spooled."""
        self._fresh.wake()

    def hurry(self) -> None:
        """Try again soon after failures: the server accepts the key of this reporter again."""
        self._fresh.hurry()
        self._backlog.hurry()

    def stop(self) -> None:
        self._fresh.stop()
        self._backlog.stop()

    def serve(self) -> None:
        """Deliver until ``stop`` is called, then one batch more of each lane."""
        fresh = threading.Thread(target=self._fresh.serve, name="fresh delivery", daemon=True)
        fresh.start()
        self._backlog.serve()
        fresh.join()


class InvalidReceipt(Exception):
    """The server's answer acknowledges nothing."""
