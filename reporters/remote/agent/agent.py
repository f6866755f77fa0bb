"""Assemble the agent and run it until it is told to stop."""

from __future__ import annotations

import math
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from reporters.remote import identity, this_archive, unpacked
from reporters.remote.agent.delivery import LaneDeliveries
from reporters.remote.agent.exchange import Exchange, Listener
from reporters.remote.agent.exchange_document import AgentActivity
from reporters.remote.agent.gate import PolicyGate
from reporters.remote.agent.log import AgentLog
from reporters.remote.agent.notices import ERROR, INFO, WARNING, Notices
from reporters.remote.agent.ownership import DIRECTORY, WAKE_SIGNAL, Ownership
from reporters.remote.agent.runner import RunEnd, Runner
from reporters.remote.agent.runs import RunRequest, Runs
from reporters.remote.assignment import SiteAssignment
from reporters.remote.assignment_store import AssignmentStore
from reporters.remote.clock import SiteClock
from reporters.remote.gateway import Gateway
from reporters.remote.kept_clock import KeptClock
from reporters.remote.server import ServerClient, parse_url, proxy_for
from reporters.remote.state_directory import LOG, STATUS, StateDirectory, StateError
from reporters.remote.token import TokenSource
from reporters.report import rfc3339
from reporters.spool.files import SpoolError
from reporters.spool.spool import Spool

STOP_SECONDS = 40.0  # for runs to end after SIGTERM; a service manager waits longer
_LAST_SECONDS = 5.0  # for the last delivery, and for the last exchange
_BEAT_SECONDS = 60.0
_PUBLISH_SECONDS = 1.0  # runs that follow each other at once do not wait for the status of each
_SOURCES = Path(__file__).resolve().parents[3]

Mail = Callable[[], None]


class Agent:
    """The agent of *state*. *code* is the directory with its unpacked archive; None: it runs from sources.

    With *is_quiet* it writes its messages to its log only, else to stderr as well.

    Raises:
        StateError: the reporter is not enrolled, or a file cannot be used.
        UsageFault: the server's URL, the proxy or the authorities cannot be used.
    """

    def __init__(
        self,
        state: StateDirectory,
        clock: SiteClock | None = None,
        *,
        code: Path | None = None,
        is_quiet: bool = False,
    ) -> None:
        self._state, self._clock, self._unpacked = state, clock or KeptClock(state), code
        self._mail: queue.SimpleQueue[Mail] = queue.SimpleQueue()
        self._is_stopping, self._exit_status = False, 0
        self._started_at = self._clock.now()
        log = AgentLog(state.path / LOG, None if is_quiet else sys.stderr)
        self._notices = Notices(log, self._clock.now, self._clock.steady)
        self._ownership = Ownership(state.path / DIRECTORY, tell=lambda text: self._notices.log(INFO, text))
        self._beat_at = self._clock.steady()
        self._snapshot = AgentActivity(self._started_at)
        self._published: dict[str, object] = {}
        self._published_at = self._beat_at - _PUBLISH_SECONDS
        self._assemble()

    def _assemble(self) -> None:
        me = identity.load(self._state)
        self._identity = me
        url = parse_url(me.url)
        client = ServerClient(url, ca_file=me.ca_file, proxy=proxy_for(url, me.proxy))
        self._tokens = TokenSource(me, self._state, self._clock)
        gateway = Gateway(me, client, self._tokens, self._clock)
        gate, spool = PolicyGate(self._state), Spool(self._state.spool, me.reporter)
        self._spool = spool
        self._delivery = LaneDeliveries(spool, gateway, me, self._notices, self._look_again)
        self._runner = Runner(
            self._unpacked or _SOURCES, lambda end: self._mail.put(lambda: self._ended(end)), self._killed
        )
        self._runs = Runs(
            self._state, self._clock, gate, spool, self._runner, self._notices, self._delivery.wake
        )
        listener = Listener(self._assigned, self._requested, self._revoked, lambda: self._snapshot)
        store = AssignmentStore(self._state, me)
        self._exchange = Exchange(gateway, me, store, gate, spool, self._clock, self._notices, listener)

    def serve(self) -> int:
        """Run until SIGTERM or SIGINT; return the exit status: 1 if an unexpected error ended a thread.

        Raises:
            StateError: another agent runs with the state directory.
        """
        threading.excepthook = lambda died: self._died(
            died.thread.name if died.thread else "", died.exc_value
        )
        signal.signal(WAKE_SIGNAL, lambda _number, _frame: self._mail.put(self._exchange.wake))
        self._ownership.take()
        if self._unpacked is not None:
            unpacked.remove_others(self._unpacked)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: self._mail.put(self._stop))
        self._notices.log(INFO, f"reporter {self._identity.reporter} runs for {self._identity.url}")
        assignment = self._exchange.begin()
        if assignment is not None:
            self._runs.assign(assignment)
        threads = [
            threading.Thread(target=self._delivery.serve, name="delivery", daemon=True),
            threading.Thread(target=self._exchange.serve, name="exchange", daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            while not self._is_stopping:
                self._turn(self._runs.look())
        except Exception as error:  # noqa: BLE001  # whatever it is: the runs end and their reports are kept
            self._died("main", error)
        self._end(threads)
        return self._exit_status

    def _died(self, thread: str, error: BaseException | None) -> None:
        """Log the *error* that ended a thread, and stop: its service starts the agent again.

        An agent without one of its threads would run on without exchanges, deliveries or runs.
        """
        import traceback  # noqa: PLC0415  # for this case only, and memory

        trace = traceback.format_exception(type(error), error, error.__traceback__) if error else []
        self._notices.add(ERROR, f"an error of gridcast ended the agent, thread {thread}: {error!r}")
        self._notices.log(ERROR, " | ".join("".join(trace).split("\n")))
        self._exit_status = 1
        self._mail.put(self._stop)

    def _turn(self, seconds: float) -> None:
        """Handle mail for *seconds*, at least one message if there is any."""
        try:
            self._mail.get(timeout=min(seconds, self._publish()))()
            while True:
                self._mail.get_nowait()()
        except queue.Empty:
            return

    def _end(self, threads: list[threading.Thread]) -> None:
        """End the runs, spool their reports, and tell the server."""
        self._runs.stop("the reporter was stopped during the run")
        until = self._clock.steady() + STOP_SECONDS
        while not self._runs.is_idle and self._clock.steady() < until:
            self._turn(min(1.0, self._runs.look()))
        self._runs.close()
        self._publish()
        for stop, thread in zip((self._delivery.stop, self._exchange.stop), threads):
            stop()
            thread.join(_LAST_SECONDS)
        self._runner.close()
        self._spool.close()
        self._notices.log(INFO, "stopped")
        self._publish(is_last=True)
        self._ownership.release()

    def _stop(self) -> None:
        self._is_stopping = True

    def _ended(self, end: RunEnd) -> None:
        self._runs.ended(end)

    def _killed(self, processes: int) -> None:
        text = f"killed {processes} processes that runs of a killed reporter left on this host"
        self._notices.add(WARNING, text)

    def _assigned(self, assignment: SiteAssignment) -> None:
        self._mail.put(lambda: self._runs.assign(assignment))

    def _requested(self, requests: Sequence[RunRequest]) -> None:
        self._mail.put(lambda: self._runs.request(requests))

    def _revoked(self, is_revoked: bool) -> None:
        self._mail.put(self._pause if is_revoked else self._resume)

    def _pause(self) -> None:
        self._runs.stop("the key of the reporter was revoked")

    def _resume(self) -> None:
        self._runs.resume()
        self._delivery.hurry()  # it waits for an hour after a refusal

    def _look_again(self) -> None:
        self._mail.put(lambda: None)

    def _publish(self, *, is_last: bool = False) -> float:
        """Write the status of the agent for the command ``status`` when it changed, and once a minute.

        Return the seconds until the next call, if this one came too soon after the last to do so.
        """
        self._snapshot = AgentActivity(self._started_at, self._runs.in_flight, self._runs.waiting)
        early_seconds = self._published_at + _PUBLISH_SECONDS - self._clock.steady()
        if early_seconds > 0 and not is_last:
            return early_seconds
        self._published_at = self._clock.steady()
        try:
            status = self._status()
            is_beat = self._clock.steady() - self._beat_at > _BEAT_SECONDS
            if status != self._published or is_beat:
                self._published, self._beat_at = status, self._clock.steady()
                document = {"at": rfc3339(self._clock.now()), **status}
                self._state.write_object(STATUS, document, flushes=False)  # it changes with every run
        except (StateError, SpoolError) as error:
            self._notices.add(ERROR, str(error))
        else:
            if is_beat:
                self._beat()
        return math.inf

    def _beat(self) -> None:
        """Write a heartbeat, and stop if another agent has taken the directory over."""
        self._ownership.beat()
        if self._tokens.has_new_enrolment:  # made on another host
            self._exchange.wake()
        if self._ownership.is_lost:
            self._notices.log(ERROR, "another agent owns the state directory: this one stops")
            self._stop()

    def _status(self) -> dict[str, object]:
        spool, offset, exchange = self._spool.status(), self._clock.offset(), self._exchange
        return {
            "started_at": rfc3339(self._started_at),
            "hostname": os.uname().nodename,
            "archive_sha256": this_archive.sha256(),
            "assignment": exchange.assignment_version,
            "assignment_error": exchange.assignment_error,
            "is_revoked": exchange.is_revoked,
            "exchanged_at": _time(exchange.last_at),
            "error": exchange.error,
            "in_flight": list(self._snapshot.in_flight),
            "waiting": self._snapshot.waiting,
            "spool_records": spool.records,
            "spool_bytes": spool.bytes,
            "spool_oldest_at": _time(spool.oldest_at),
            "spool_dropped_records": spool.dropped_records,
            "clock_offset_seconds": offset and round(offset.offset_seconds, 2),
        }


def _time(time: datetime | None) -> str | None:
    return None if time is None else rfc3339(time)
