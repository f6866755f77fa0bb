"""An agent, from its archive, with the real server and the real depot."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from monitor.models import Reporter, ReporterStatus, Run, Series
from monitor.models.run import State
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.fleet.enrolment import revoke
from monitor.runs.ingest.audit_chains import audit_chains
from reporters.remote import archive
from tests.monitor.runs.fleet.archive_agents import enrol, request_runs
from tests.relay import Relay
from tests.reporters.needs import needs
from tests.reporters.remote.agent_process import agent_process
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def ended(state: State = State.PASSED) -> int:
    return Run.objects.filter(state=state).count()


def is_clean(reporter: Reporter) -> bool:
    return not audit_chains(reporter).findings


@pytest.mark.parametrize("method", ["openssl", "ssh"])
def test_an_enrolled_agent_runs_what_is_requested(
    live_server: LiveServer, reporter: Reporter, pyz: Path, tmp_path: Path, method: str
) -> None:
    needs("openssl", "ssh-keygen")
    enrol(pyz, live_server.url, reporter, tmp_path / "state", method)
    request_runs()
    earlier_version = tmp_path / "state" / "code" / "0123456789abcdef"
    earlier_version.mkdir(parents=True)
    with agent_process(tmp_path / "state", pyz) as agent:
        assert eventually(lambda: ended() == 2), agent.log
        assert agent.stop() == 0
    assert not earlier_version.exists()
    status = ReporterStatus.objects.get()
    assert status.archive_sha256 == archive.digest(pyz.read_bytes())
    assert abs(status.clock_offset_seconds or 9) < 5
    assert (status.spool_records, status.assignment_error) == (0, "")
    assert is_clean(reporter)


def test_what_ran_while_the_server_was_away_arrives(
    live_server: LiveServer, reporter: Reporter, pyz: Path, tmp_path: Path
) -> None:
    needs("openssl")
    is_away = tmp_path / "is-away"  # both runs wait for this file
    waiting = {"command": f"sh -c 'until [ -e {is_away} ]; do sleep 0.05; done; echo OK'"}
    Series.objects.all().delete()
    names, bound = ("first", "second"), {"target": ["ncsa-login"]}
    define([], [SeriesDefinition(name, "nagios", bound, waiting, reporter="ncsa") for name in names])
    with Relay(urlsplit(live_server.url).port or 0) as network:
        enrol(pyz, f"http://127.0.0.1:{network.port}", reporter, tmp_path / "state")
        request_runs()
        with agent_process(tmp_path / "state", pyz) as agent:
            assert eventually(lambda: agent.status.get("assignment")), agent.log
            network.close()
            is_away.touch()
            assert eventually(lambda: agent.status.get("spool_records") and not agent.status["in_flight"])
            assert agent.stop() == 0
        with agent_process(tmp_path / "state", pyz) as agent:
            network.open()
            assert eventually(lambda: ended() == 2), agent.log
            assert eventually(lambda: agent.status.get("spool_records") == 0), agent.log
            assert agent.stop() == 0
    assert is_clean(reporter)


def test_a_revoked_agent_stops_and_keeps_its_spool(
    live_server: LiveServer, reporter: Reporter, pyz: Path, tmp_path: Path
) -> None:
    needs("openssl")
    enrol(pyz, live_server.url, reporter, tmp_path / "state")
    with agent_process(tmp_path / "state", pyz) as agent:
        assert eventually(lambda: agent.status.get("assignment")), agent.log
        agent.stop()
        revoke(reporter, "ada", timezone.now())
    with agent_process(tmp_path / "state", pyz) as agent:
        assert eventually(lambda: agent.status.get("is_revoked")), agent.log
        assert agent.stop() == 0
    assert "the key of this reporter was revoked" in agent.log
