"""An agent at a host whose clock is an hour off: its runs are stored at once, with their true times."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from monitor.models import RawReport, Reporter, Run
from monitor.models.run import State
from tests.monitor.runs.fleet.archive_agents import enrol, request_runs
from tests.reporters.needs import needs
from tests.reporters.remote.agent_process import AgentProcess, agent_process
from tests.waiting import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly]
LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib64/faketime/libfaketime.so.1")


def environment(seconds: int) -> dict[str, str]:
    """Return the variables with which all clocks but the steady ones are off by *seconds*."""
    needs("faketime", "openssl")
    library = next(file for pattern in LIBRARIES for file in Path("/").glob(pattern[1:]))
    variables = {"LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}"}
    return {**variables, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}


def check_runs(agent: AgentProcess, runs: int, since: datetime) -> None:
    def ended() -> bool:
        return Run.objects.filter(state=State.PASSED).count() == runs

    assert eventually(ended), agent.log
    assert eventually(lambda: agent.status.get("spool_records") == 0), agent.log
    for run in Run.objects.filter(slot__gt=since):
        assert since <= (run.started_at or since) <= (run.ended_at or since) <= timezone.now()


@pytest.mark.parametrize("seconds", [3600, -3600, -500_000_000])
def test_runs_of_an_agent_whose_clock_is_off_have_true_times(
    live_server: LiveServer, reporter: Reporter, pyz: Path, tmp_path: Path, seconds: int
) -> None:
    state, variables = tmp_path / "state", environment(seconds)
    enrol(pyz, live_server.url, reporter, state)
    began_at = timezone.now()
    request_runs()
    with agent_process(state, pyz, **variables) as agent:
        check_runs(agent, 2, began_at)
        agent.stop()  # with an error: under libfaketime ``time.sleep`` fails
    for raw in RawReport.objects.all():
        report = raw.parsed()
        assert abs(report.clock.correction_seconds + seconds) < 30
        assert abs(report.started_at - raw.received_at - timedelta(seconds=seconds)) < timedelta(seconds=90)
    set_right_at = timezone.now()
    request_runs()
    with agent_process(state, pyz) as agent:
        check_runs(agent, 4, set_right_at)
        assert agent.stop() == 0
    assert not any(raw.parsed().clock.correction_seconds for raw in RawReport.objects.order_by("-slot")[:2])
