"""The page of a run: outcome, report and state history."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from monitor.analysis.incidents import actions as incident_actions
from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.core import units
from monitor.models import ConflictingReport, Incident, MaintenanceWindow, Run
from monitor.models.chain import Disposition
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.run import State
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger import holds, transitions
from monitor.web.charts.run_waterfall import waterfall
from monitor.web.charts.stage_shades import of_probe
from monitor.web.pages.run import headline, matching_lines, stage_progress
from reporters import report as wire
from tests.monitor import reporter_rows
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

STDERR = "ssh: connect to host site2 port 22: Connection refused\nscp: <closed> & gone\n"


def page(client: Client, run: Run) -> str:
    answer = client.get(f"/runs/{run.pk}/")
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def failed(grid: Grid, now: datetime) -> Run:
    report = builders.report(grid.gather, now)
    message = "cannot connect to site2.example.org:22: Connection refused"
    return builders.delivered(
        builders.failed(report, "transfer_data", "site2-login", message, stderr_tail=STDERR, exit_status=255)
    )


def test_a_failure_names_stage_resource_and_reason_with_stderr_verbatim(failed: Run, client: Client) -> None:
    text = page(client, failed)
    assert "Failed in transfer_data at site2-login" in text
    assert failed.reason in text
    assert "<dd>255</dd>" in text
    escaped = STDERR.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f'<pre tabindex="0">{escaped}</pre>' in text


def test_a_run_that_ended_in_the_future_by_its_clock_ended_now(
    grid: Grid, client: Client, now: datetime
) -> None:
    report = builders.report(grid.gather, now)
    run = builders.delivered(replace(report, started_at=datetime.now(UTC) + timedelta(minutes=3)))
    text = page(client, run)
    assert 'data-age="0">now</time>' in text
    assert "in 3 min" not in text


def test_a_correction_of_its_times_is_shown(grid: Grid, client: Client, now: datetime) -> None:
    report = builders.report(grid.gather, now)
    ahead = replace(report.clock, correction_seconds=-3600.0)
    run = builders.delivered(replace(report, started_at=report.started_at + timedelta(hours=1), clock=ahead))
    assert run.started_at == report.started_at
    assert "by \N{MINUS SIGN}3,600 s: the host's clock was ahead" in page(client, run).replace("&#x27;", "'")
    shown = client.get(f"/api/v1/runs/{run.pk}/report").json()
    assert shown["clock_correction_seconds"] == -3600.0
    assert shown["started_at"] == client.get(f"/api/v1/runs/{run.pk}").json()["started_at"]


def test_the_provenance_names_the_record_of_the_chain_that_carried_the_report(
    failed: Run, client: Client
) -> None:
    chain = reporter_rows.chain(reporter_rows.remote("ncsa"), timezone.now())
    reporter_rows.record(chain, 11, timezone.now(), run=failed.pk, disposition=Disposition.DUPLICATE)
    assert str(chain.uuid) not in page(client, failed)
    reporter_rows.record(chain, 12, timezone.now(), run=failed.pk)
    text = page(client, failed)
    assert f"12 of chain <code>{chain.uuid}</code>" in text
    assert '<a href="/reporters/home/">home</a>' in text


def test_the_state_history_has_times_and_causes(grid: Grid, client: Client, now: datetime) -> None:
    run = builders.not_run(grid.gather, now, State.EXPECTED, "")
    assert "State history" not in page(client, run)
    transitions.move(Run.objects.all(), [run.pk], State.MISSED, cause="its <grace> was over")
    text = page(client, run)
    assert "State history" in text
    assert "its &lt;grace&gt; was over" in text


def test_every_stage_metric_and_log_line_is_shown(grid: Grid, client: Client, now: datetime) -> None:
    report = builders.report(grid.gather, now)
    text = page(client, builders.delivered(report))
    for stage in report.stages:
        assert f'<td class="number">{units.seconds(stage.seconds)}' in text
    for metric in report.metrics:
        assert metric.name in text
        assert f"{metric.value / 1e6:.3g} MB/s" in text
    for line in report.log:
        assert line.text in text
    for word in ("ui1.example.org", "Linux 6.1.0", "OpenSSH_9.2p1", "synchronised"):
        assert word in text


def test_the_raw_report_is_returned_byte_for_byte(grid: Grid, client: Client, now: datetime) -> None:
    report = builders.report(grid.circle, now)
    run = builders.delivered(report)
    answer = client.get(f"/runs/{run.pk}/report.json")
    assert answer["Content-Type"] == "application/json"
    assert answer.content == wire.to_json(report)


def test_a_run_without_a_report_says_so(grid: Grid, client: Client, now: datetime) -> None:
    run = builders.not_run(grid.circle, now, State.MISSED, "no reporter took it within 120 s of its time")
    text = page(client, run)
    assert "Missed" in text
    assert run.reason in text
    assert "No report for this run." in text
    assert client.get(f"/runs/{run.pk}/report.json").status_code == 404


def test_a_running_run_shows_its_stage_and_polls_for_updates(
    grid: Grid, client: Client, now: datetime
) -> None:
    run = builders.not_run(grid.circle, now, State.RUNNING, "")
    Run.objects.filter(pk=run.pk).update(stage="transfer_ring", started_at=now)
    text = page(client, run)
    assert "Running: transfer_ring" in text
    assert 'aria-current="step"' in text
    assert 'id="run" hx-get' in text


def test_an_ended_run_does_not_poll(failed: Run, client: Client) -> None:
    assert 'id="run" hx-get' not in page(client, failed)


def test_links_lead_to_the_runs_before_and_after_but_not_to_slots_to_come(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    first = builders.passed(grid.circle, now - 2 * minute)
    second = builders.passed(grid.circle, now - minute)
    builders.not_run(grid.circle, now + minute, State.EXPECTED, "")
    builders.passed(grid.gather, now)
    assert f'rel="next" href="/runs/{second.pk}/"' in page(client, first)
    text = page(client, second)
    assert f'rel="prev" href="/runs/{first.pk}/"' in text
    assert 'rel="next"' not in text


def test_a_run_of_an_invisible_series_is_not_found(grid: Grid, client: Client, now: datetime) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    run = builders.passed(builders.circle("secret-ring", grid.resources[:2], in_suite="closed"), now)
    assert client.get(f"/runs/{run.pk}/").status_code == 404
    assert client.get(f"/runs/{run.pk}/report.json").status_code == 404


@pytest.mark.parametrize(
    ("state", "stage", "resource", "text"),
    [
        (State.PASSED, "", "", "Passed"),
        (State.FAILED, "init", "ce1", "Failed in init at ce1"),
        (State.TIMED_OUT, "compute", "", "Timed out in compute"),
        (State.BROKEN, "compare", "", "Probe broken in compare"),
        (State.LOST, "compute", "", "Lost in compute"),
        (State.CLAIMED, "", "", "Assigned to the reporter"),
        (State.RUNNING, "", "", "Running"),
    ],
)
def test_a_headline_gives_state_stage_and_resource(
    state: State, stage: str, resource: str, text: str
) -> None:
    run = Run(slot=builders.NOON, state=state, stage=stage, failed_resource=resource)
    assert headline(run, builders.NOON) == text


def test_a_slot_is_not_due_before_its_time() -> None:
    run = Run(slot=builders.NOON, due_at=builders.NOON, state=State.EXPECTED)
    assert headline(run, builders.NOON - timedelta(seconds=1)) == "Not due yet"
    assert headline(run, builders.NOON) == "Waiting for the reporter"


def test_the_bars_of_a_waterfall_stay_within_the_duration_of_the_run(grid: Grid, now: datetime) -> None:
    report = builders.report(grid.gather, now)
    bars = waterfall(replace(report, seconds=1.0), {})  # a clock that disagrees with its stages
    durations = [bar.duration for bar in bars]
    assert all(bar.left >= 0 and bar.left + bar.width <= 100.001 for bar in durations)
    assert [bar.name for bar in bars] == list(builders.GATHER)


def test_a_waterfall_without_stages_is_empty(grid: Grid, now: datetime) -> None:
    assert waterfall(replace(builders.report(grid.gather, now), stages=(), seconds=0.0), {}) == []


def test_stages_of_one_category_have_different_shades() -> None:
    shades = [(stage.category, stage.shade) for stage in of_probe("gather")]
    assert len(set(shades)) == len(shades)


@pytest.mark.parametrize(
    ("current", "progress"),
    [
        ("", ["later"] * 5),
        ("init", ["now", "later", "later", "later", "later"]),
        ("cleanup", ["done", "done", "done", "done", "now"]),
    ],
)
def test_a_running_run_shows_its_progress(current: str, progress: list[str]) -> None:
    assert [stage.progress for stage in stage_progress(of_probe("circle"), current)] == progress


def test_a_run_shows_its_segment_and_configuration(grid: Grid, client: Client, now: datetime) -> None:
    builders.passed(grid.circle, now)
    grid.circle.parameters = {"file_bytes": 100_000_000}
    text = page(client, builders.passed(grid.circle, now + timedelta(minutes=1)))
    assert '<a href="/series/circle-ring/#segments">2</a>' in text
    assert "file_bytes 100 MB" in text
    resources = re.findall(r'class="resource" href="/sites/site\d/resources/([\w-]+)/"', text)
    assert {"site1-login", "site2-login", "site3-login"} <= set(resources)


def test_conflicting_reports_are_listed_and_shown_as_received(
    grid: Grid, client: Client, now: datetime
) -> None:
    report = builders.report(grid.gather, now)
    run = builders.delivered(report)
    assert "Conflicting reports" not in page(client, run)
    other = wire.to_json(replace(report, reporter="<script>", reason="forged"))
    ingest(other)
    text = page(client, run)
    assert "Conflicting reports" in text
    assert "&lt;script&gt;" in text
    assert "<script>" not in text.partition("Conflicting reports")[2]
    digest = hashlib.sha256(other).hexdigest()
    assert f'<code class="digest">{digest}</code>' in text
    conflict = ConflictingReport.objects.get()
    assert client.get(f"/runs/{run.pk}/conflicts/{conflict.pk}.json").content == other
    assert client.get(f"/runs/{run.pk}/conflicts/{conflict.pk + 1}.json").status_code == 404
    shown = client.get(f"/api/v1/runs/{run.pk}").json()["conflicts"]
    assert [(each["reporter"], each["sha256"]) for each in shown] == [("<script>", digest)]


def test_a_run_is_compared_with_the_passed_runs_before_it(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    for number in range(6, 0, -1):
        builders.passed(grid.circle, now - number * minute)
    slow = builders.report(grid.circle, now, slowness=3.0)
    changed = replace(slow, environment=replace(slow.environment, kernel="Linux 6.9"))
    text = page(client, builders.delivered(changed))
    assert "4.2 to 4.2 s" in text  # transfer_ring
    assert "3 \N{MULTIPLICATION SIGN} median" in text
    assert "Linux 6.1.0" in text.partition("Differences from the last passed run")[2]
    assert "site1" in text.partition('class="paths"')[2]


def test_the_first_runs_of_a_series_have_no_expected_range(grid: Grid, client: Client, now: datetime) -> None:
    text = page(client, builders.passed(grid.circle, now))
    assert "No expected range" in text
    assert "No earlier run of this series passed" in text


def test_a_failed_run_links_the_same_failures_its_incident_and_earlier_ones(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    other = builders.circle("circle-other", grid.resources[:3])
    runs = [
        builders.delivered(
            builders.failed(
                builders.report(series, slot), "transfer_ring", "site2-login", "Disk quota exceeded"
            )
        )
        for slot in (now - 10 * minute, now - 9 * minute)
        for series in (grid.circle, other)
    ]
    classify_runs(now)
    text = page(client, runs[-1])
    assert "3 other runs of 2 series" in text
    assert "<dt>Incident</dt>" not in text
    update_incidents(now - 8 * minute)
    incident = Incident.objects.get()
    assert f'/incidents/{incident.pk}/">open' in page(client, runs[-1])
    incident_actions.resolve(incident.pk, "deleted old files", "ada", now - 7 * minute)
    again = builders.delivered(
        builders.failed(
            builders.report(other, now - minute), "transfer_ring", "site2-login", "Disk quota exceeded"
        )
    )
    classify_runs(now)
    assert "Ended by: deleted old files" in page(client, again)


def test_the_log_is_searched_by_text_and_level(grid: Grid, client: Client, now: datetime) -> None:
    report = builders.report(grid.circle, now)
    log = (wire.LogLine("info", 0.1, "Copying"), wire.LogLine("error", 0.2, "copy failed"))
    assert matching_lines(log, "COPY", "") == list(log)
    assert matching_lines(log, "", "warning") == [log[1]]
    run = builders.delivered(replace(report, log=log))
    answer = client.get(f"/runs/{run.pk}/", {"log": "nothing"}).content.decode()
    assert "No line matches" in answer
    assert "0 of 2 lines" in answer


def test_only_users_that_may_run_the_series_can_run_it_again(
    grid: Grid, client: Client, runner: Client, now: datetime
) -> None:
    run = builders.passed(grid.circle, now)
    assert "Run again" not in page(client, run)
    assert 'action="/series/circle-ring/run-now/"' in page(runner, run)


def test_a_skipped_run_links_the_pause_that_caused_it(grid: Grid, client: Client, now: datetime) -> None:
    scope = Scope(HoldKind.SUITE, grid.circle.suite.name)
    elsewhere = Scope(HoldKind.SERIES, grid.gather.name)  # with the same words
    for paused in (scope, elsewhere):
        holds.hold(paused, HoldMode.PAUSE, who="ada", why="new disks", now=now - timedelta(minutes=5))
    text = page(client, builders.not_run(grid.circle, now, State.SKIPPED, "paused by ada: new disks"))
    assert f'href="/holds/suite/{scope.name}/"' in text
    assert "was paused by ada" in text


def test_a_skipped_run_names_the_maintenance_that_caused_it(
    grid: Grid, client: Client, now: datetime
) -> None:
    ends_at = now + timedelta(hours=1)
    window = MaintenanceWindow.objects.create(
        name="disks", starts_at=now - timedelta(hours=1), ends_at=ends_at
    )
    window.sites.set([grid.resources[0].site])
    reason = f"maintenance: disks, until {ends_at:%Y-%m-%d %H:%M} UTC"
    text = page(client, builders.not_run(grid.circle, now, State.SKIPPED, reason))
    assert '<a href="/holds/#maintenance">disks</a>' in text
