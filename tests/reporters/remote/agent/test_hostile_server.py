"""What a hostile server can do to an agent: its answers are refused, and this is told."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware.pki import Authority
from reporters.remote import identity, signing
from reporters.remote.agent.delivery import Delivery
from reporters.remote.agent.exchange import Exchange, Listener
from reporters.remote.agent.exchange_document import AgentActivity
from reporters.remote.agent.gate import PolicyGate
from reporters.remote.agent.log import AgentLog
from reporters.remote.agent.notices import Notices
from reporters.remote.agent.runs import RunRequest
from reporters.remote.assignment import SiteAssignment
from reporters.remote.assignment_store import AssignmentStore
from reporters.remote.clock import SiteClock
from reporters.remote.gateway import Gateway
from reporters.remote.server import ServerClient, parse_url
from reporters.remote.state_directory import LOG, StateDirectory
from reporters.remote.token import TokenSource
from reporters.report import to_json
from reporters.skipped import skipped
from reporters.spool.receipts import Receipt, RecordRange
from reporters.spool.spool import Spool
from tests.reporters.needs import needs
from tests.reporters.remote.assignments import assignment, enrolled, series, sign
from tests.reporters.remote.grid_server import GridServer, grid_server, key_of
from tests.reporters.remote.policy.assignments import assignment as run_assignment
from tests.reporters.scripted_https import Connection, Request


@dataclass
class Agent:
    """The parts of an agent that talk to *server*, without threads."""

    server: GridServer
    exchange: Exchange
    delivery: Delivery
    spool: Spool
    notices: Notices
    clock: SiteClock
    state: StateDirectory
    assigned: list[SiteAssignment]
    requested: list[RunRequest]
    revoked: list[bool]

    @property
    def told(self) -> str:
        return "\n".join(notice.text for notice in self.notices.take())

    def report(self) -> None:
        self.spool.append(to_json(skipped(run_assignment(), "a test")))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    needs("openssl", "ssh-keygen")
    return Authority.create(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture
def agent(authority: Authority, tmp_path: Path) -> Iterator[Agent]:
    state = StateDirectory.create(tmp_path / "state")
    with grid_server(authority, GridServer()) as server:
        me = enrolled(state, url=server.url, ca_file=str(authority.identity.certificate))
        identity.save(state, me)
        clock = SiteClock()
        client = ServerClient(parse_url(me.url), ca_file=me.ca_file)
        gateway = Gateway(me, client, TokenSource(me, state, clock), clock)
        notices = Notices(AgentLog(state.path / LOG), clock.now, clock.steady)
        spool = Spool(state.spool, me.reporter, is_durable=False)
        assigned: list[SiteAssignment] = []
        requested: list[RunRequest] = []
        revoked: list[bool] = []
        activity = AgentActivity(clock.now())
        listener = Listener(assigned.append, requested.extend, revoked.append, lambda: activity)
        store = AssignmentStore(state, me)
        exchange = Exchange(gateway, me, store, PolicyGate(state), spool, clock, notices, listener)
        delivery = Delivery(spool, gateway, me, notices, lambda: None)
        yield Agent(server, exchange, delivery, spool, notices, clock, state, assigned, requested, revoked)


def test_an_honest_server_is_obeyed(agent: Agent) -> None:
    agent.server.assignment = assignment()
    agent.report()
    agent.exchange.exchange()
    assert agent.delivery.deliver() is None
    assert [one.version for one in agent.assigned] == [7]
    assert (agent.spool.status().records, len(agent.server.reports)) == (0, 1)
    assert agent.told == ""


def old(answer: dict[str, Any]) -> None:
    answer["assignment"] = sign(assignment(version=6))


def unsigned(answer: dict[str, Any]) -> None:
    answer["assignment"] = {"document": json.dumps(assignment(version=8)), "signature": ""}


def of_another_purpose(answer: dict[str, Any]) -> None:
    answer["assignment"] = sign(assignment(version=8), signing.RECEIPT)


def of_another_reporter(answer: dict[str, Any]) -> None:
    answer["assignment"] = sign(assignment(version=8, reporter="psc"))


def outside_scratch(answer: dict[str, Any]) -> None:
    resource = {**assignment()["resources"]["ncsa-login"], "scratch": "/scratch/../etc"}
    answer["assignment"] = sign(assignment(version=8, resources={"ncsa-login": resource}))


def of_an_unknown_probe(answer: dict[str, Any]) -> None:
    answer["assignment"] = sign(assignment(series(probe="rm"), version=8))


def huge(answer: dict[str, Any]) -> None:
    answer["assignment"] = sign("x" * 5_000_000)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (old, "version 6 is older than version 7"),
        (unsigned, "its signature is not the server's"),
        (of_another_purpose, "its signature is not the server's"),
        (of_another_reporter, "expected 'ncsa', this reporter, got 'psc'"),
        (outside_scratch, "scratch: expected an absolute path"),
        (of_an_unknown_probe, "probe: expected one of"),
        (huge, "too large"),
    ],
)
def test_an_assignment_that_is_not_acceptable_is_refused_and_told(
    agent: Agent, change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    agent.server.assignment = assignment()
    agent.exchange.exchange()
    agent.server.change = change
    agent.exchange.exchange()
    agent.server.change = lambda _: None
    agent.exchange.exchange()
    told = agent.server.exchanges[-1]
    assert reason in told["assignment"]["error"]
    assert told["assignment"]["version"] == 7
    assert any(reason in message["text"] for message in told["messages"])
    assert reason in (agent.state.path / LOG).read_text()
    assert [one.version for one in agent.assigned] == [7]


@pytest.mark.parametrize(
    "answer",
    [
        {"assignment": 5},
        {"assignment": {"document": [], "signature": {}}},
        {"requests": 5},
        {"requests": [{}]},
        {"requests": [{"run": "x", "series": "noop-ncsa", "slot": "now", "expires_at": "then"}]},
        {"exchange_seconds": "often"},
        {"exchange_seconds": None},
        {"received_at": "x", "answered_at": None},
        {"received_at": 1e300, "answered_at": 1e301},
    ],
)
def test_a_malformed_answer_changes_nothing(agent: Agent, answer: dict[str, Any]) -> None:
    agent.server.change = lambda sent: sent.update(answer)
    assert agent.exchange.exchange() > 0
    assert (agent.assigned, agent.requested) == ([], [])
    assert abs(agent.clock.now_seconds() - datetime.now(UTC).timestamp()) < 60


@pytest.mark.parametrize(("asked", "least", "most"), [(0, 4, 6), (1e9, 3000, 4000), (60, 50, 70)])
def test_the_server_cannot_make_the_agent_ask_all_the_time_or_never(
    agent: Agent, asked: float, least: float, most: float
) -> None:
    agent.server.change = lambda sent: sent.update(exchange_seconds=asked)
    assert least < agent.exchange.exchange() < most


def refuse(status: int, body: bytes) -> Callable[[Connection, Request], bool]:
    def answer(connection: Connection, _: Request) -> bool:
        connection.answer(status, body)
        return True

    return answer


def test_a_revoked_agent_is_paused_until_the_server_accepts_it_again(agent: Agent) -> None:
    agent.report()
    agent.server.refuse = refuse(401, b'{"code": "revoked", "detail": "ask for a new code"}')
    assert agent.exchange.exchange() >= 3600
    assert agent.delivery.deliver() == 3600
    assert (agent.revoked, agent.spool.status().records) == ([True], 2)
    agent.server.refuse = lambda _connection, _request: False
    agent.exchange.exchange()
    assert agent.revoked == [True, False]


def test_the_key_of_a_new_enrolment_is_used_without_a_restart(agent: Agent) -> None:
    """An enrolment revokes the earlier key, and removes it."""
    agent.exchange.exchange()
    before, method = identity.load(agent.state), signing.load("openssl")
    key_file = f"key-{'1' * 16}-openssl"
    method.make_key(agent.state.path / key_file)
    fingerprint = method.fingerprint(method.public_key(agent.state.path / key_file))
    identity.save(agent.state, replace(before, key_file=key_file, key_fingerprint=fingerprint))
    (agent.state.path / before.key_file).unlink()

    def accept_the_new_key(connection: Connection, request: Request) -> bool:
        if key_of(request) != fingerprint:
            connection.answer(401, b'{"code": "revoked"}')
        return key_of(request) != fingerprint

    agent.server.refuse = accept_the_new_key
    agent.exchange.exchange()
    assert (len(agent.server.exchanges), agent.revoked) == (2, [])
    identity.save(agent.state, replace(before, url="https://other.example.org"))
    agent.exchange.exchange()
    assert "as ncsa at https://other.example.org, with other options: restart the agent" in agent.told


def test_a_wrong_clock_is_corrected_by_the_refusal_and_the_request_sent_again(agent: Agent) -> None:
    tries: list[str] = []

    def expired_once(connection: Connection, request: Request) -> bool:
        tries.append(request.headers["Authorization"])
        if len(tries) > 1:
            return False
        server_time = int(datetime.now(UTC).timestamp()) + 7200
        problem = {"code": "token_expired", "server_time": server_time}
        connection.answer(401, json.dumps(problem).encode())
        return True

    agent.server.refuse = expired_once
    agent.server.offset_seconds = 7200.0
    agent.exchange.exchange()
    offset = agent.clock.offset()
    assert len(set(tries)) == 2, "the second try has another token"
    assert offset is not None
    assert abs(offset.offset_seconds - 7200) < 60


def forged(answer: dict[str, Any]) -> None:
    answer["receipt"]["signature"] = sign("{}", signing.RECEIPT)["signature"]


def of_an_assignment(answer: dict[str, Any]) -> None:
    answer["receipt"] = sign(answer["receipt"]["document"], signing.ASSIGNMENT)


def of_other_records(answer: dict[str, Any]) -> None:
    other = Receipt("ncsa", datetime.now(UTC), (RecordRange(uuid.uuid4(), 0, 9, "0" * 64),))
    answer["receipt"] = sign(other.to_document(), signing.RECEIPT)


def with_another_hash(answer: dict[str, Any]) -> None:
    receipt = json.loads(answer["receipt"]["document"])
    receipt["records"][0]["hash"] = "0" * 64
    answer["receipt"] = sign(receipt, signing.RECEIPT)


def to_another_reporter(answer: dict[str, Any]) -> None:
    receipt = json.loads(answer["receipt"]["document"])
    answer["receipt"] = sign({**receipt, "reporter": "psc"}, signing.RECEIPT)


def none(answer: dict[str, Any]) -> None:
    answer["receipt"] = None


def malformed(answer: dict[str, Any]) -> None:
    answer["receipt"] = sign("{}", signing.RECEIPT)


@pytest.mark.parametrize(
    "change",
    [forged, of_an_assignment, of_other_records, with_another_hash, to_another_reporter, none, malformed],
)
def test_only_the_server_s_receipt_for_our_records_empties_the_spool(
    agent: Agent, change: Callable[[dict[str, Any]], None]
) -> None:
    agent.report()
    agent.server.change_receipt = change
    assert agent.delivery.deliver() is not None
    assert agent.spool.status().records == 2, "the start of the chain, and the report"
    assert "reports stay in the spool" in agent.told
    agent.server.change_receipt = lambda _: None
    assert agent.delivery.deliver() is None
    assert agent.spool.status().records == 0


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"code": "malformed"}'),
        (302, b""),
        (503, b""),
        (507, b"{}"),
        (404, b"<html>"),
        (200, b"hello"),
    ],
)
def test_a_refusal_empties_no_spool(agent: Agent, status: int, body: bytes) -> None:
    agent.report()
    agent.server.refuse = refuse(status, body)
    assert agent.delivery.deliver() is not None
    assert agent.spool.status().records == 2


def test_a_retry_after_is_honoured(agent: Agent) -> None:
    agent.report()

    def busy(connection: Connection, _: Request) -> bool:
        connection.answer(503, b"{}", Retry_After="100")
        return True

    agent.server.refuse = busy
    assert 100 <= (agent.delivery.deliver() or 0) <= 111
