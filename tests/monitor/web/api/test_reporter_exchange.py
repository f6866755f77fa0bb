"""The operations for agents over HTTP: enrolment, exchange and records, also by hostile agents."""

from __future__ import annotations

import fcntl
import gzip
import json
import logging
import uuid
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from monitor.models import (
    ApiToken,
    Chain,
    ChainRecord,
    EnrolmentAttempt,
    Heartbeat,
    Reporter,
    ReporterKey,
    ReporterStatus,
    Run,
    Series,
)
from monitor.models.run import State
from monitor.operations.gridfile.define import define
from monitor.operations.web_server.proxies import ON_THIS_HOST
from monitor.runs.fleet.agent_state import _COLUMNS, MAX_BYTES
from monitor.runs.fleet.enrolment import MAX_ATTEMPTS_PER_ADDRESS, create_code, revoke
from monitor.runs.fleet.exchange import BURST, PACE, TooManyExchanges, exchange
from monitor.runs.fleet.signatures import METHODS, server_fingerprint, server_public_key
from monitor.runs.ingest.chain_limit import MAX_OPEN_CHAINS
from monitor.runs.ingest.disk_guard import gauge
from monitor.runs.ingest.http_senders import places
from monitor.runs.ledger.run_now import run_now
from monitor.web.api.http import envelope
from monitor.web.api.reporter_exchange import RECORDS
from reporters.report import parse_rfc3339, rfc3339, run_id
from reporters.spool.receipts import Receipt, RecordRange
from reporters.spool.records import encode_parts
from tests.monitor.runs.fleet.agents import (
    ROOT,
    SiteAgent,
    admin,
    agent_state,
    enrolled_agent,
    remote_reporter,
)
from tests.monitor.runs.fleet.remote_series import RESOURCES, disk, remote_grid
from tests.monitor.runs.fleet.site_keys import is_verified
from tests.monitor.runs.ingest.spooled import SpooledChain

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def reporter(db: None) -> Reporter:
    return remote_reporter()


def problem(response: Any) -> tuple[int, str]:
    assert response["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


@pytest.mark.parametrize("method", METHODS)
def test_an_agent_enrols_over_http(reporter: Reporter, tmp_path: Path, method: str) -> None:
    agent = SiteAgent(reporter, tmp_path, method)
    code = create_code(reporter, None, timezone.now())
    answers = [agent.enrol(code) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    expected = {
        "reporter": "ncsa",
        "server_key": server_public_key(method),
        "server_fingerprint": server_fingerprint(),
        "exchange_seconds": 60,
    }
    assert answers[0].json() == answers[1].json() == expected
    assert ReporterKey.objects.get().hostname == "login1.example.org"


def test_a_refused_enrolment_is_a_problem_with_a_code(reporter: Reporter, tmp_path: Path) -> None:
    agent = SiteAgent(reporter, tmp_path)
    code = create_code(reporter, None, timezone.now())
    assert problem(agent.enrol("AAAA-BBBB")) == (403, "invalid_code")
    assert problem(agent.enrol(code, signature="MA==")) == (403, "invalid_signature")
    assert problem(agent.enrol(code, public_key="none")) == (422, "invalid")
    assert problem(agent.enrol(code, method="rot13")) == (422, "invalid")
    assert problem(agent.enrol(code, hostname="x" * 300)) == (422, "invalid")
    assert problem(agent.client.post(f"{ROOT}/enrol", b"{", content_type="application/json"))[0] == 400
    assert not ReporterKey.objects.exists()


def test_a_client_that_guesses_codes_has_to_wait(reporter: Reporter, tmp_path: Path) -> None:
    agent = SiteAgent(reporter, tmp_path)
    guesses = [agent.enrol(f"AAAA-{number}").status_code for number in range(MAX_ATTEMPTS_PER_ADDRESS)]
    assert set(guesses) == {403}
    answer = agent.enrol(create_code(reporter, None, timezone.now()))
    assert problem(answer) == (429, "too_many_attempts")
    assert 0 < int(answer["retry-after"]) <= 900


def test_behind_a_proxy_the_client_is_the_last_forwarded_address(
    reporter: Reporter, tmp_path: Path, settings: LazySettings
) -> None:
    agent = SiteAgent(reporter, tmp_path)
    agent.client = Client(headers={"x-forwarded-for": "198.51.100.1, 192.0.2.9"})
    agent.enrol("AAAA")
    settings.GRIDCAST_PROXIES = ON_THIS_HOST
    agent.enrol("AAAA")
    assert set(EnrolmentAttempt.objects.values_list("address", flat=True)) == {"127.0.0.1", "192.0.2.9"}


@pytest.fixture
def agent(tmp_path: Path, settings: LazySettings) -> SiteAgent:
    """The enrolled agent of the reporter ncsa, which runs an hourly series."""
    settings.VAR_DIR = tmp_path
    return enrolled_agent(remote_grid(), tmp_path)


def hour() -> datetime:
    return timezone.now().replace(minute=0, second=0, microsecond=0)


def expected_run(slot: datetime, **fields: Any) -> Run:
    series = Series.objects.get(name="disk-ncsa")
    return Run.objects.create(id=run_id(series.name, slot), series=series, slot=slot, due_at=slot, **fields)


@pytest.mark.parametrize("method", METHODS)
def test_an_agent_gets_its_signed_assignment_once(tmp_path: Path, method: str) -> None:
    agent = enrolled_agent(remote_grid(), tmp_path, method)
    answer = agent.exchange()
    assert (answer.status_code, answer["content-type"]) == (200, "application/json; charset=utf-8")
    signed = answer.json()["assignment"]
    key, text = server_public_key(method), signed["document"].encode()
    assert is_verified(method, key, "gridcast assignment 1", text, signed["signature"], tmp_path)
    assert not is_verified(method, key, "gridcast receipt 1", text, signed["signature"], tmp_path)
    version = json.loads(signed["document"])["version"]
    assert agent.exchange(assignment={"version": version, "error": ""}).json()["assignment"] is None
    assert agent.exchange(assignment={"version": version + 1, "error": ""}).json()["assignment"] is not None


def test_an_exchange_tells_the_time_of_the_server(agent: SiteAgent) -> None:
    before = timezone.now().timestamp()
    answer = agent.exchange().json()
    assert before <= answer["received_at"] <= answer["answered_at"] <= timezone.now().timestamp()
    assert answer["exchange_seconds"] == 60


def test_an_exchange_records_the_state_of_the_agent(agent: SiteAgent) -> None:
    message = {"at": "2026-03-01T12:00:00.000000Z", "level": "warning", "text": "refused assignment 8"}
    answer = agent.exchange(
        assignment={"version": 7, "error": "too old"},
        policy={"status": "in_force", "sha256": "b" * 64, "error": "", "summary": {"probes": ["disk"]}},
        pending_approvals=2,
        spool={"records": 3, "bytes": 4711, "oldest_at": "2026-03-01T12:00:00Z", "dropped_records": 1},
        clock={"offset_seconds": 0.012, "bound_seconds": 0.034},
        messages=[message],
    )
    assert answer.status_code == 200
    status = ReporterStatus.objects.get()
    assert (status.reporter.name, status.hostname, status.python) == ("ncsa", "login1.example.org", "3.9.18")
    assert (status.assignment_version, status.assignment_error) == (7, "too old")
    assert (status.policy_status, status.policy_summary) == ("in_force", {"probes": ["disk"]})
    assert (status.spool_records, status.spool_bytes, status.dropped_records) == (3, 4711, 1)
    assert (status.clock_offset_seconds, status.clock_bound_seconds) == (0.012, 0.034)
    assert (status.pending_approvals, status.messages) == (2, [message])
    assert Heartbeat.objects.get(name="reporter.ncsa").seen_at == status.seen_at
    agent.exchange()
    assert ReporterStatus.objects.get().messages == [message]
    later = {**message, "text": "later"}
    agent.exchange(messages=[message, later])
    status.refresh_from_db()
    assert (status.messages, status.spool_records) == ([message, later], 0)


def test_a_copied_state_directory_is_told_as_two_agents_with_one_key(agent: SiteAgent) -> None:
    first: dict[str, Any] = {"hostname": "login1", "started_at": "2026-03-01T12:00:00Z"}
    second: dict[str, Any] = {"hostname": "login2", "started_at": "2026-03-02T12:00:00Z"}
    for state in (first, first, second, second):  # the agent was started again, on another host
        agent.exchange(**state)
    assert ReporterStatus.objects.get().messages == []
    for state in (first, second, first, second):
        agent.exchange(**state)
    (message,) = ReporterStatus.objects.get().messages
    assert message["level"] == "error"
    agents = "login1, started 2026-03-01 12:00:00 and login2, started 2026-03-02 12:00:00"
    assert message["text"].startswith(f"two agents use the key of this reporter: {agents}; ")


def test_a_clock_may_be_unknown(agent: SiteAgent) -> None:
    assert agent.exchange(clock=None).status_code == 200
    assert ReporterStatus.objects.get().clock_offset_seconds is None


def test_every_column_of_the_state_is_stored() -> None:
    names = {field.name for field in ReporterStatus._meta.concrete_fields}
    assert names - {"reporter", "messages"} == set(_COLUMNS)


def test_an_exchange_declares_the_heads_of_chains(agent: SiteAgent) -> None:
    chain = uuid.uuid4()
    agent.exchange(chains=[{"chain": str(chain), "next": 12, "head": "c" * 64}])
    stored = Chain.objects.get()
    assert (stored.uuid, stored.declared_next, stored.declared_head) == (chain, 12, "c" * 64)


def test_runs_in_flight_are_running(agent: SiteAgent) -> None:
    run = expected_run(hour())
    agent.exchange(in_flight=[str(run.pk), str(uuid.uuid4())])
    run.refresh_from_db()
    assert run.state == State.RUNNING
    assert run.lease_until is not None
    first_lease = run.lease_until
    agent.exchange(in_flight=[str(run.pk)])
    run.refresh_from_db()
    assert run.lease_until > first_lease
    assert list(run.transitions.values_list("target", flat=True)) == ["claimed", "running"]


def test_a_requested_run_is_asked_for_until_it_runs(agent: SiteAgent) -> None:
    run = run_now(Series.objects.get(), who="ada")
    requests = [agent.exchange().json()["requests"] for _ in range(2)]
    (asked,) = requests[0]
    assert requests[1] == requests[0]
    assert (asked["run"], asked["series"], asked["slot"]) == (str(run.pk), "disk-ncsa", rfc3339(run.slot))
    assert parse_rfc3339(asked["expires_at"]) == run.slot + timedelta(days=1)
    assert agent.exchange(in_flight=[str(run.pk)]).json()["requests"] == []


def test_records_are_stored_and_receipted(agent: SiteAgent, tmp_path: Path) -> None:
    chain = SpooledChain(reporter="ncsa").report(hour(), series="disk-ncsa")
    answer = agent.deliver([chain.part()])
    assert answer.status_code == 200, answer.content
    signed = answer.json()["receipt"]
    key, text = server_public_key("openssl"), signed["document"].encode()
    assert is_verified("openssl", key, "gridcast receipt 1", text, signed["signature"], tmp_path)
    receipt = Receipt.from_document(signed["document"])
    assert receipt.records == (RecordRange(chain.name, 0, 1, chain.head),)
    assert (receipt.reporter, receipt.refused) == ("ncsa", ())
    assert Run.objects.get().state == State.PASSED
    assert agent.deliver([chain.part()]).status_code == 200
    assert ChainRecord.objects.count() == 2


def test_a_skip_by_policy_is_an_ordinary_report(agent: SiteAgent) -> None:
    slot = hour()
    expected_run(slot)
    skipped = {"outcome": "skipped", "reason": "policy: forbidden hours", "stages": [], "metrics": []}
    chain = SpooledChain(reporter="ncsa").report(slot, series="disk-ncsa", **skipped)
    agent.deliver([chain.part()])
    run = Run.objects.get()
    assert (run.state, run.reason) == (State.SKIPPED, "policy: forbidden hours")


HOSTILE: dict[str, Any] = {
    "a text as number": {"pending_approvals": "1"},
    "a negative number": {"spool": {"records": -1, "bytes": 0, "oldest_at": None, "dropped_records": 0}},
    "a huge number": {"spool": {"records": 2**63, "bytes": 0, "oldest_at": None, "dropped_records": 0}},
    "an unknown status": {"policy": {"status": "<script>", "sha256": "", "error": "", "summary": {}}},
    "a summary of a megabyte": {
        "policy": {"status": "absent", "sha256": "", "error": "", "summary": {"a": "x" * 100_000}}
    },
    "a run that is no UUID": {"in_flight": ["../../etc/passwd"]},
    "thousands of runs": {"in_flight": [str(uuid.uuid4())] * 1_001},
    "a chain that is no UUID": {"chains": [{"chain": "x", "next": 1, "head": "c" * 64}]},
    "a head that is no hash": {"chains": [{"chain": str(uuid.uuid4()), "next": 1, "head": "<script>"}]},
    "thousands of chains": {"chains": [{"chain": str(uuid.uuid4()), "next": 1, "head": ""}] * 2_001},
    "a NUL": {"hostname": "login\x00"},
    "a hash with a tag": {"archive_sha256": "<script>"},
    "a time without zone": {"started_at": "2026-03-01T12:00:00"},
    "no messages": {"messages": None},
    "an infinite clock": {"clock": {"offset_seconds": 1e300, "bound_seconds": None}},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_state_out_of_bounds_is_refused(agent: SiteAgent, what: str) -> None:
    assert problem(agent.exchange(**HOSTILE[what])) == (422, "invalid")
    assert not ReporterStatus.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a": NaN}', b'{"a":' * 100_000, b"\xff", b"{}"])
def test_a_body_that_is_no_state_is_refused(agent: SiteAgent, body: bytes) -> None:
    assert problem(agent.post("exchange", body, "application/json")) == (422, "invalid")


def test_an_agent_that_exchanges_too_often_has_to_wait(agent: SiteAgent) -> None:
    assert agent.exchange().status_code == 200
    paced_until = ReporterKey.objects.get().paced_until
    assert paced_until is not None
    assert abs(paced_until - timezone.now() - PACE) < MINUTE
    key = ReporterKey.objects.all()

    def pace(exchanges: float) -> None:
        key.update(paced_until=timezone.now() + exchanges * PACE)

    pace(BURST - 0.1)
    assert agent.exchange().status_code == 200
    for body in (json.dumps(agent_state(hostname="other")).encode(), b"{"):
        status = 0
        while status != 429:  # the bounds are one exchange, two seconds, apart: a request may take longer
            seen_at = ReporterStatus.objects.get().seen_at
            pace(BURST + 1.0)
            answer = agent.post("exchange", body, "application/json")
            status = answer.status_code
        assert (problem(answer), answer["retry-after"]) == ((429, "too_many_exchanges"), "2")
        assert ReporterStatus.objects.get().seen_at == seen_at
    pace(BURST + 2000)  # the server's clock went back
    assert agent.exchange().status_code == 200


def test_every_exchange_uses_up_a_part_of_the_burst(agent: SiteAgent) -> None:
    now, body = timezone.now(), json.dumps(agent_state()).encode()
    key = ReporterKey.objects.select_related("reporter").get()
    key.paced_until = now + (BURST - 1.5) * PACE
    key.save()
    exchange(key, body, now)
    exchange(key, body, now)
    for number in range(1, 4):  # at the pace
        with pytest.raises(TooManyExchanges):
            exchange(key, body, now + (number - 1) * PACE)
        exchange(key, body, now + number * PACE)


def open_chains(reporter: Reporter, count: int) -> None:
    """Create chains of which nothing has arrived."""
    now = timezone.now()
    Chain.objects.bulk_create(
        [Chain(reporter=reporter, uuid=uuid.uuid4(), first_seen_at=now) for _ in range(count)],
        batch_size=5_000,
    )


def test_an_agent_with_too_many_open_chains_starts_no_other(
    agent: SiteAgent, caplog: pytest.LogCaptureFixture
) -> None:
    chain, late = SpooledChain("ncsa"), SpooledChain("ncsa")
    head = {"chain": str(chain.name), "next": 1, "head": chain.head}
    open_chains(Reporter.objects.get(name="ncsa"), MAX_OPEN_CHAINS - 1)
    assert agent.exchange(chains=[head]).status_code == 200
    caplog.clear()
    seen_at = ReporterStatus.objects.get().seen_at
    refused = agent.exchange(chains=[head, {"chain": str(late.name), "next": 1, "head": late.head}])
    for answer in (refused, agent.deliver([late.part()])):
        assert (problem(answer), answer["retry-after"]) == ((429, "too_many_chains"), "600")
    assert not Chain.objects.filter(uuid=late.name).exists()
    assert ReporterStatus.objects.get().seen_at == seen_at
    assert [
        record.getMessage() for record in caplog.records if record.name.startswith("monitor.runs.ingest")
    ] == [
        "the reporter 'ncsa' may start no chain: it names 1 new ones, and the ends of 10000 have not arrived"
    ] * 2
    assert agent.exchange(chains=[head]).status_code == 200
    assert agent.deliver([chain.part()]).status_code == 200  # which makes room
    assert agent.deliver([late.part()]).status_code == 200


def test_received_chains_and_those_of_others_are_no_open_chains(agent: SiteAgent) -> None:
    open_chains(remote_reporter("sdsc"), MAX_OPEN_CHAINS)
    chains = [SpooledChain("ncsa") for _ in range(3)]
    assert agent.deliver([chain.part() for chain in chains]).status_code == 200
    open_chains(Reporter.objects.get(name="ncsa"), MAX_OPEN_CHAINS - 1)
    assert agent.deliver([SpooledChain("ncsa").part()]).status_code == 200
    heads = [{"chain": str(chain.name), "next": 2, "head": "c" * 64} for chain in chains]
    fresh = {"chain": str(uuid.uuid4()), "next": 1, "head": "c" * 64}
    assert agent.exchange(chains=[heads[0]]).status_code == 200  # record 1 of it is open now
    assert problem(agent.exchange(chains=[fresh])) == (429, "too_many_chains")


def test_texts_of_a_hostile_agent_are_cut_and_harmless(agent: SiteAgent) -> None:
    script = "<script>alert(1)</script>" * 1_000
    texts = [f"{number} {script[:2_000]}" for number in range(300)]
    messages = [{"at": "2026-03-01T12:00:00Z", "level": "error", "text": text} for text in texts]
    answer = agent.exchange(
        hostname=script,
        version=script,
        python=script,
        assignment={"version": 0, "error": script},
        policy={"status": "unreadable", "sha256": "", "error": script, "summary": {script[:1_000]: 1}},
        messages=messages,
    )
    assert answer.status_code == 200
    assert b"<script>" not in answer.content
    status = ReporterStatus.objects.get()
    lengths = [len(status.hostname), len(status.version), len(status.python)]
    lengths += [len(status.assignment_error), len(status.policy_error)]
    assert lengths == [253, 50, 50, 2_000, 2_000]
    assert [len(message["text"]) for message in status.messages] == [1_000] * 100
    assert status.messages[-1]["text"].startswith("299 ")


def test_a_token_opens_only_the_paths_of_its_reporter(agent: SiteAgent) -> None:
    remote_reporter("sdsc")
    for path in ("exchange", "records"):
        answer = agent.post(f"{ROOT}/sdsc/{path}", b"{}", RECORDS)
        assert problem(answer) == (403, "not_yours")
    for path in ("/api/v1/series", "/api/v1/reporters"):
        assert agent.client.get(path, headers=agent.bearer()).status_code == 401
    assert agent.post("/api/v1/reports", b"[]", "application/json").status_code == 401


def test_no_other_credential_opens_the_paths_of_agents(agent: SiteAgent) -> None:
    user = admin()
    token = ApiToken.objects.issue(user, "program", ["read", "report"])
    browser = Client()
    browser.force_login(user)
    url = f"{ROOT}/ncsa/exchange"
    assert browser.post(url, b"{}", "application/json").status_code == 401
    headers = {"authorization": f"Bearer {token}"}
    assert problem(Client().post(url, b"{}", "application/json", headers=headers)) == (401, "invalid_token")


def test_a_wrong_clock_is_told_the_time(agent: SiteAgent) -> None:
    now = int(timezone.now().timestamp())
    for skew, code in ((-3_600, "token_expired"), (3_600, "token_not_yet_valid")):
        headers = agent.bearer(issued_at=now + skew, expires_at=now + skew + 600)
        answer = agent.client.post(f"{ROOT}/ncsa/exchange", b"{}", "application/json", headers=headers)
        assert problem(answer) == (401, code)
        assert abs(answer.json()["server_time"] - timezone.now().timestamp()) < 60


def test_revocation_stops_the_next_request(agent: SiteAgent) -> None:
    headers = agent.bearer()
    body = json.dumps(agent_state()).encode()
    url = f"{ROOT}/ncsa/exchange"
    assert agent.client.post(url, body, "application/json", headers=headers).status_code == 200
    revoke(Reporter.objects.get(name="ncsa"), "ada", timezone.now())
    assert problem(agent.client.post(url, body, "application/json", headers=headers)) == (401, "revoked")
    assert problem(agent.deliver([SpooledChain(reporter="ncsa").part()])) == (401, "revoked")
    assert not ChainRecord.objects.exists()


def test_a_series_of_another_reporter_cannot_be_reported(agent: SiteAgent) -> None:
    define(RESOURCES, [disk("home-disk", reporter="home")])
    chain = SpooledChain(reporter="ncsa").report(hour(), series="home-disk")
    receipt = Receipt.from_document(agent.deliver([chain.part()]).json()["receipt"]["document"])
    assert [refused.sequence for refused in receipt.refused] == [1]
    assert not Run.objects.filter(state=State.PASSED).exists()
    run = Run.objects.create(
        id=run_id("home-disk", hour()),
        series=Series.objects.get(name="home-disk"),
        slot=hour(),
        due_at=hour(),
    )
    agent.exchange(in_flight=[str(run.pk)])
    run.refresh_from_db()
    assert run.state == State.EXPECTED


def test_a_chain_of_another_reporter_cannot_be_continued(agent: SiteAgent, tmp_path: Path) -> None:
    chain = SpooledChain(reporter="ncsa").report(hour(), series="disk-ncsa")
    agent.deliver([chain.part([0])])
    (tmp_path / "other").mkdir()
    other = enrolled_agent(remote_reporter("sdsc"), tmp_path / "other")
    receipt = Receipt.from_document(other.deliver([chain.part([1])]).json()["receipt"]["document"])
    assert [refused.error for refused in receipt.refused] == ["the chain is of another reporter"]


def test_malformed_records_are_refused_as_a_whole(agent: SiteAgent) -> None:
    good = encode_parts([SpooledChain(reporter="ncsa").report(hour(), series="disk-ncsa").part()])
    for body in (good[:-10], good.replace(b"passed", b"failed"), b"chain ../..\n", good + good):
        assert problem(agent.post("records", body, RECORDS)) == (400, "malformed")
    assert problem(agent.post("records", good, "application/json")) == (415, "unsupported")
    assert problem(agent.post("records", good, RECORDS, **{"content-encoding": "gzip"})) == (400, "malformed")
    assert not ChainRecord.objects.exists()


def test_a_compression_bomb_is_refused(agent: SiteAgent) -> None:
    bomb = gzip.compress(bytes(envelope.MAX_BYTES + 1))
    encoding = {"content-encoding": "gzip"}
    assert problem(agent.post("records", bomb, RECORDS, **encoding)) == (413, "too_large")
    assert problem(agent.post("exchange", bomb, "application/json", **encoding)) == (413, "too_large")
    assert problem(agent.post("exchange", b" " * (2 * MAX_BYTES), "application/json")) == (422, "invalid")


def test_a_backlog_leaves_places_to_fresh_records(agent: SiteAgent) -> None:
    with ExitStack() as others:
        for file in places()[: len(places()) // 2]:
            fcntl.flock(others.enter_context(file.open("w")), fcntl.LOCK_EX)
        waiting = agent.deliver([SpooledChain("ncsa").part()], **{"gridcast-lane": "backlog"})
        fresh = agent.deliver([SpooledChain("ncsa").part()])
    assert (problem(waiting), waiting["retry-after"]) == ((503, "busy"), "1")
    assert fresh.status_code == 200
    again = agent.deliver([SpooledChain("ncsa").part()], **{"gridcast-lane": "backlog"})
    assert again.status_code == 200


def test_while_all_places_are_taken_the_agent_is_to_try_again(
    agent: SiteAgent, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        for file in places():
            stream = stack.enter_context(file.open("w"))
            fcntl.flock(stream, fcntl.LOCK_EX)
        answer = agent.deliver([SpooledChain(reporter="ncsa").part()])
    assert (problem(answer), answer["retry-after"]) == ((503, "busy"), "1")
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]
    assert agent.deliver([SpooledChain(reporter="ncsa").part()]).status_code == 200


def test_an_agent_whose_records_store_no_reports_is_to_wait(agent: SiteAgent) -> None:
    Reporter.objects.filter(name="ncsa").update(paced_until=timezone.now() + timedelta(days=1, hours=1))
    answer = agent.deliver([SpooledChain(reporter="ncsa").part()])
    assert problem(answer) == (429, "too_many_records")
    assert 3590 <= int(answer["retry-after"]) <= 3610
    assert not ChainRecord.objects.exists()


def test_while_the_disk_is_full_the_agent_is_to_try_again(agent: SiteAgent, settings: LazySettings) -> None:
    settings.GRIDCAST_DEPOT_RESERVE_BYTES = 2**62
    settings.GRIDCAST_DEPOT_DIRECTORY = settings.VAR_DIR
    gauge.reset()
    try:
        answer = agent.deliver([SpooledChain(reporter="ncsa").part()])
    finally:
        gauge.reset()
    assert problem(answer) == (507, "depot_full")
    assert int(answer["retry-after"]) > 0
