"""A record leaves the spool only against a receipt that the server has signed for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware.pki import Authority
from reporters.remote import identity, signing
from reporters.remote.agent.delivery import PREMATURE_SECONDS, Delivery, LaneDeliveries
from reporters.remote.agent.log import AgentLog
from reporters.remote.agent.notices import Notices
from reporters.remote.clock import SiteClock
from reporters.remote.gateway import Gateway
from reporters.remote.main import main
from reporters.remote.server import ServerClient, parse_url
from reporters.remote.state_directory import StateDirectory
from reporters.remote.token import TokenSource
from reporters.report import to_json
from reporters.spool.set_aside import MOST_FILES
from reporters.spool.spool import Spool
from tests.monitor.agents.feeder import report_of
from tests.reporters.needs import needs
from tests.reporters.remote.assignments import enrolled, sign
from tests.reporters.remote.grid_server import GridServer, grid_server
from tests.reporters.scripted_https import Connection, Request
from tests.waiting import eventually


class Site:
    """The delivery of the spool of the reporter ncsa to *server*, in this thread."""

    def __init__(self, directory: Path, server: GridServer, authority: Authority) -> None:
        state = StateDirectory.create(directory)
        ca_file = str(authority.identity.certificate)
        me, clock = enrolled(state, url=server.url, ca_file=ca_file), SiteClock()
        client = ServerClient(parse_url(me.url), ca_file=ca_file)
        self.state, self.identity = state, me
        self.log = state.path / "agent.log"
        self.spool = Spool(state.spool, me.reporter)
        gateway = Gateway(me, client, TokenSource(me, state, clock), clock)
        notices = Notices(AgentLog(self.log), clock.now, clock.steady)
        self.delivery = Delivery(self.spool, gateway, me, notices, lambda: None)
        self.lanes = LaneDeliveries(self.spool, gateway, me, notices, lambda: None)

    @property
    def waiting(self) -> int:
        """The number of reports in the spool."""
        return len(self.spool.pending_runs())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    needs("openssl")
    return Authority.create(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture
def server(authority: Authority) -> Iterator[GridServer]:
    with grid_server(authority, GridServer()) as server:
        yield server


@pytest.fixture
def site(tmp_path: Path, server: GridServer, authority: Authority) -> Iterator[Site]:
    site = Site(tmp_path / "state", server, authority)
    site.spool.append(to_json(report_of("ncsa", 0)))
    site.spool.append(to_json(report_of("ncsa", 1)))
    yield site
    site.spool.close()


def with_document(**changes: Any) -> Any:
    """Return a change of a receipt: these fields of its document, signed by the server."""

    def change(answer: dict[str, Any]) -> None:
        document = {**json.loads(answer["receipt"]["document"]), **changes}
        answer["receipt"] = sign(json.dumps(document), signing.RECEIPT)

    return change


def test_reports_leave_the_spool_against_their_receipt(site: Site, server: GridServer) -> None:
    assert site.delivery.deliver() is None
    assert site.waiting == 0
    assert [report.run for report in server.reports] == [report_of("ncsa", number).run for number in (0, 1)]


def with_another_signature(answer: dict[str, Any]) -> None:
    answer["receipt"] = sign(answer["receipt"]["document"], signing.ASSIGNMENT)


def without_receipt(answer: dict[str, Any]) -> None:
    del answer["receipt"]


def with_another_hash(answer: dict[str, Any]) -> None:
    records = json.loads(answer["receipt"]["document"])["records"]
    with_document(records=[{**each, "hash": "0" * 64} for each in records])(answer)


FORGERIES = {
    "signed for another purpose": (with_another_signature, "is not signed by the server"),
    "missing": (without_receipt, "has no receipt"),
    "for other records": (with_another_hash, "expected the hash"),
    "for another reporter": (with_document(reporter="sdsc"), "a receipt for the reporter 'sdsc'"),
    "malformed": (with_document(records=[{"chain": "../../x"}]), "is malformed"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_receipt_removes_nothing_and_is_reported(
    site: Site, server: GridServer, forgery: str
) -> None:
    server.change_receipt, message = FORGERIES[forgery]
    assert site.delivery.deliver() is not None
    assert site.waiting == 2
    assert message in site.log.read_text()
    server.change_receipt = lambda _answer: None
    assert site.delivery.deliver() is None
    assert site.waiting == 0


def test_premature_reports_stay_in_the_spool_and_are_sent_again(site: Site, server: GridServer) -> None:
    server.change_receipt = with_document(records=[])
    wait_seconds = site.delivery.deliver()
    assert wait_seconds is not None
    assert wait_seconds >= PREMATURE_SECONDS
    assert site.waiting == 2
    assert "ahead of its clock" in site.log.read_text()
    server.change_receipt = lambda _answer: None
    assert site.delivery.deliver() is None
    assert site.waiting == 0


@pytest.mark.parametrize("status", [429, 503, 507])
def test_a_busy_server_decides_how_long_to_wait(site: Site, server: GridServer, status: int) -> None:
    def refuse(connection: Connection, _request: Request) -> bool:
        connection.answer(status, b"{}", Retry_After="1234")
        return True

    server.refuse = refuse
    wait_seconds = site.delivery.deliver()
    assert wait_seconds is not None
    assert wait_seconds >= 1234
    assert site.waiting == 2


def test_both_lanes_try_again_as_soon_as_the_key_is_accepted(site: Site, server: GridServer) -> None:
    """After a refusal of the key each lane waits for an hour."""
    refused: list[str] = []

    def refuse(connection: Connection, request: Request) -> bool:
        refused.append(request.headers.get("Gridcast-Lane", "fresh"))
        connection.answer(401, b'{"code": "revoked"}')
        return True

    server.refuse = refuse
    lanes = site.lanes
    thread = threading.Thread(target=lanes.serve, daemon=True)
    thread.start()
    assert eventually(lambda: refused)
    server.refuse = lambda _connection, _request: False

    def is_delivered() -> bool:
        lanes.hurry()
        return site.waiting == 0

    assert eventually(is_delivered)
    lanes.stop()
    thread.join()


def test_refused_reports_that_find_no_room_are_counted_and_told(
    site: Site, server: GridServer, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = site.spool.directory / "refused"
    refused.mkdir()
    for number in range(MOST_FILES):
        (refused / str(number)).touch()

    def refuse_both(answer: dict[str, Any]) -> None:
        (covered,) = json.loads(answer["receipt"]["document"])["records"]
        errors = [{"chain": covered["chain"], "sequence": number, "error": "no"} for number in (1, 2)]
        with_document(refused=errors)(answer)

    server.change_receipt = refuse_both
    assert site.delivery.deliver() is None
    assert "refused/ of the spool is full: 2 refused reports were not kept" in site.log.read_text()
    identity.save(site.state, site.identity)
    main(["status", f"--state={site.state.path}"])
    assert f"REFUSED      0 reports in {refused}, 2 were not kept\n" in capsys.readouterr().out
