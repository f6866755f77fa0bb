"""A scrape of ``/metrics``: what it says of series and of the service, to whom, and at what cost."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

from monitor.analysis.forecasts import refresh
from monitor.core.env import ROOT
from monitor.depot.rollups.worker import gather
from monitor.models import ApiToken, Series, Suite
from monitor.models.role import UserRole
from monitor.models.run import State
from monitor.models.token import READ, RUN
from monitor.runs.ledger import heartbeats
from monitor.web.metrics import definitions as of
from monitor.web.metrics.definitions import DEFINITIONS
from monitor.web.metrics.exposition import CACHE, MOST_SCRAPES, AnswerCache, ScrapesBusy
from monitor.web.metrics.negotiation import preferred_format
from monitor.web.metrics.text_format import OPENMETRICS, TEXT, Family, compressed, decompressed
from tests.monitor.web.pages import builders
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)
REFUSED = "cannot connect to site2.example.org:22: Connection refused"
Samples = Mapping[tuple[str, tuple[str, ...]], float]


@pytest.fixture(autouse=True)
def _fresh_answers(settings: Any) -> None:
    """Collect again for every scrape of these tests."""
    settings.GRIDCAST_METRICS_VALID_SECONDS = 0.0


@pytest.fixture
def client(db: None) -> Client:
    """A Prometheus server with a token that may read."""
    return with_token(User.objects.create_user("prometheus"), READ)


@pytest.fixture
def rings(db: None) -> list[Series]:
    return builders.circles(["ring-0", "ring-1"], builders.sites(2))


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


def with_token(user: User, scope: str) -> Client:
    return Client(headers={"authorization": f"Bearer {ApiToken.objects.issue(user, 'prometheus', [scope])}"})


def scrape(client: Client, **query: Any) -> Samples:
    answer = client.get("/metrics", query)
    assert answer.status_code == 200, answer.content
    text = answer.content.decode()
    families = parser.text_string_to_metric_families(text)
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_series_has_state_times_durations_stages_and_forecasts(
    rings: list[Series], client: Client, now: datetime
) -> None:
    builders.history(rings[0], 12, until=now - 3 * MINUTE)
    passed = builders.passed(rings[0], now - 2 * MINUTE)
    refresh.refresh_all(now)
    failed = builders.failed(builders.report(rings[0], now - MINUTE), "transfer_ring", "site2-login", REFUSED)
    builders.delivered(failed)
    found = scrape(client)
    ring = ("ring-0", "main")
    assert found["gridcast_series_state", ("ring-0", "failed", "main")] == 1
    assert found["gridcast_series_passed", ring] == 0
    assert passed.ended_at is not None
    assert found["gridcast_series_last_success_timestamp_seconds", ring] == pytest.approx(
        passed.ended_at.timestamp()
    )
    assert found["gridcast_series_last_result_timestamp_seconds", ring] > passed.ended_at.timestamp()
    assert 0 <= found["gridcast_series_result_age_seconds", ring] < 3600
    assert found["gridcast_series_duration_seconds", (*ring, "total")] == pytest.approx(6.8)
    assert found["gridcast_series_duration_seconds", (*ring, "core")] == pytest.approx(4.5)
    assert found["gridcast_series_stage_seconds", ("ring-0", "transfer_ring", "main")] == pytest.approx(4.2)
    quantiles = [
        found["gridcast_series_forecast_seconds", (level, *ring)] for level in ("0.05", "0.5", "0.95")
    ]
    assert quantiles == sorted(quantiles)
    assert 0 < quantiles[0] < 60
    assert 0 < found["gridcast_series_success_probability", ring] <= 1
    assert found["gridcast_series_info", ("circle", "home", "ring-0", "site1,site2", "main")] == 1


def test_a_series_without_a_result_is_counted_and_has_no_numbers(rings: list[Series], client: Client) -> None:
    found = scrape(client)
    assert found["gridcast_series_by_state", ("none",)] == 2
    assert not [name for name, labels in found if "ring-0" in labels and not name.endswith("_info")]


def test_a_skipped_slot_hides_neither_the_last_result_nor_the_last_success(
    rings: list[Series], client: Client, now: datetime
) -> None:
    builders.passed(rings[0], now - 90 * MINUTE)
    builders.not_run(rings[0], now - MINUTE, State.SKIPPED, "maintenance")
    found = scrape(client)
    assert found["gridcast_series_passed", ("ring-0", "main")] == 1
    assert found["gridcast_series_result_age_seconds", ("ring-0", "main")] > 80 * 60


def test_an_answer_describes_a_bounded_number_of_series_and_says_what_it_leaves_out(
    rings: list[Series], client: Client, settings: Any
) -> None:
    settings.GRIDCAST_METRICS_MAX_SERIES = 1
    found = scrape(client)
    assert found["gridcast_metrics_series", ()] == 1
    assert found["gridcast_metrics_left_out_series", ()] == 1
    assert {labels[2] for name, labels in found if name == "gridcast_series_info"} == {"ring-0"}


def test_the_number_of_queries_does_not_depend_on_the_number_of_series(
    rings: list[Series], client: Client, now: datetime
) -> None:
    for ring in rings:
        builders.passed(ring, now - MINUTE)
    with CaptureQueriesContext(
        connection,
    ) as few:
        scrape(client)
    for ring in builders.circles([f"more-{number}" for number in range(8)], builders.sites(2)):
        builders.passed(ring, now - MINUTE)
    with CaptureQueriesContext(connection) as many:
        scrape(client)
    assert len(many) == len(few)


def test_suite_site_and_group_select_a_part(rings: list[Series], client: Client, now: datetime) -> None:
    builders.circles(["other"], builders.sites(1), in_suite="side")
    builders.passed(rings[0], now - MINUTE)
    part = scrape(client, suite="main", site="site2", **{"collect[]": ["series", "stages"]})
    assert {labels[2] for name, labels in part if name == "gridcast_series_info"} == {"ring-0", "ring-1"}
    assert {name for name, _ in part} >= {"gridcast_series_stage_seconds", "gridcast_series_state"}
    assert not {name for name, _ in part} & {"gridcast_http_requests_total", "gridcast_depot_up"}


@pytest.mark.parametrize("query", ["?colect[]=series", "?collect[]=everything", "?suite=%00"])
def test_an_unknown_parameter_is_refused_with_the_known_ones(client: Client, query: str) -> None:
    answer = client.get(f"/metrics{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert "collect[] (service, requests" in answer.json()["detail"]


def test_invisible_series_reporters_and_alerts_do_not_appear(rings: list[Series], client: Client) -> None:
    (concealed,) = builders.circles(["concealed"], builders.sites(1), in_suite="hidden")
    Suite.objects.get(name="hidden").viewers.add(Group.objects.create(name="insiders"))
    builders.passed(concealed, timezone.now() - MINUTE)
    answer = client.get("/metrics").content
    assert b"ring-0" in answer
    assert b"concealed" not in answer
    assert b"hidden" not in answer


def test_an_allowed_host_needs_no_token_and_sees_what_every_user_sees(
    rings: list[Series], settings: Any
) -> None:
    builders.circles(["concealed"], builders.sites(1), in_suite="hidden")
    Suite.objects.get(name="hidden").viewers.add(Group.objects.create(name="insiders"))
    settings.GRIDCAST_METRICS_ALLOW = (ip_network("192.0.2.0/24"),)
    inside, outside = (Client(REMOTE_ADDR=address) for address in ("192.0.2.7", "198.51.100.7"))
    assert b"ring-0" in inside.get("/metrics").content
    assert b"concealed" not in inside.get("/metrics").content
    assert outside.get("/metrics").status_code == 401


def test_without_a_token_the_answer_says_how_to_authenticate(db: None) -> None:
    answer = Client().get("/metrics")
    assert (answer.status_code, answer["WWW-Authenticate"][:6]) == (401, "Bearer")
    assert "GRIDCAST_METRICS_ALLOW" in answer.json()["detail"]
    wrong = Client(headers={"authorization": "Bearer gcast_wrong"}).get("/metrics")
    assert wrong.status_code == 401


def test_a_token_without_the_scope_read_is_refused(db: None) -> None:
    answer = with_token(User.objects.create_user("runner"), RUN).get("/metrics")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")


def test_a_logged_in_user_reads_the_metrics_in_the_browser(rings: list[Series]) -> None:
    browser = Client()
    browser.force_login(builders.user("reader"))
    assert scrape(browser)["gridcast_depot_up", ()] == 1


def test_the_service_has_heartbeats_runs_queues_and_space(
    rings: list[Series], client: Client, now: datetime
) -> None:
    heartbeats.record(heartbeats.SCHEDULER, now)
    builders.not_run(rings[0], now - 60 * MINUTE, State.EXPECTED, "")
    found = scrape(client)
    assert found["gridcast_heartbeat_timestamp_seconds", ("beat",)] == now.timestamp()
    assert found["gridcast_runs_due", ("home",)] == 1
    assert found["gridcast_runs_late", ("home",)] == 1
    assert found["gridcast_runs_in_flight", ("home",)] == 0
    assert found["gridcast_depot_up", ()] == found["gridcast_broker_up", ()] == 1
    assert found["gridcast_depot_size_bytes", ()] > 1_000_000
    assert found["gridcast_queue_tasks", ("control",)] >= 0


def test_sites_have_their_present_state(rings: list[Series], client: Client, now: datetime) -> None:
    for minutes in (3, 2, 1):
        report = builders.report(rings[0], now - minutes * MINUTE)
        builders.delivered(builders.failed(report, "transfer_ring", "site2-login", REFUSED))
    gather()
    found = scrape(client)
    assert found["gridcast_site_state", ("site2", "down")] == 1
    assert found["gridcast_site_state", ("site1", "up")] == 1
    assert found["gridcast_site_state_since_timestamp_seconds", ("site2",)] <= now.timestamp()


def test_a_site_whose_series_are_invisible_does_not_appear(client: Client, settings: Any) -> None:
    builders.circles(["concealed"], [builders.site("hiddensite")], in_suite="hidden")
    Suite.objects.get(name="hidden").viewers.add(Group.objects.create(name="insiders"))
    settings.GRIDCAST_METRICS_ALLOW = (ip_network("192.0.2.7"),)
    for caller in (client, Client(REMOTE_ADDR="192.0.2.7")):
        assert b"hiddensite" not in caller.get("/metrics").content


def test_the_role_scheduler_reads_no_metrics(db: None) -> None:
    user = User.objects.create_user("slurm")
    user.groups.add(Group.objects.get_or_create(name=UserRole.SCHEDULER)[0])
    assert with_token(user, READ).get("/metrics").status_code == 403


def test_receipts_and_requests_are_counted(rings: list[Series], client: Client, now: datetime) -> None:
    before = scrape(client)
    builders.passed(rings[0], now - MINUTE)
    after = scrape(client)
    accepted, request = (
        ("gridcast_ingest_reports_total", ("accepted",)),
        (
            "gridcast_http_requests_total",
            ("GET", "/metrics", "2xx"),
        ),
    )
    assert after[accepted] >= before.get(accepted, 0) + 1
    assert after[request] >= before.get(request, 0) + 1
    buckets = {
        labels: value for (name, labels), value in after.items() if name.endswith("duration_seconds_bucket")
    }
    assert buckets["+Inf", "/metrics"] >= buckets["0.005", "/metrics"]


def test_an_unknown_url_does_not_become_a_label(client: Client) -> None:
    client.get("/no/such/page-4711")
    answer = client.get("/metrics").content.decode()
    assert 'route="none",status="4xx"' in answer
    assert "page-4711" not in answer


def test_prometheus_gets_openmetrics_and_a_browser_text(rings: list[Series], client: Client) -> None:
    asked = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    answer = client.get("/metrics", headers={"accept": asked})
    assert answer["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    text = answer.content.decode()
    assert text.endswith("# EOF\n")
    families = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    assert {family.name for family in families} > {"gridcast_series"}
    plain = client.get("/metrics", headers={"accept": "text/plain;version=0.0.4"})
    assert plain["Content-Type"].startswith("text/plain; version=0.0.4")


PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        (PROMETHEUS_3, (OPENMETRICS, "1.0.0")),
        (f"application/vnd.google.protobuf;encoding=delimited;q=0.9,{PROMETHEUS_3}", (OPENMETRICS, "1.0.0")),
        ("application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.3", (TEXT, "0.0.4")),
        ("text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.2", (TEXT, "1.0.0")),
        ('application/openmetrics-text; version="1.0.0" ; q=0.5', (OPENMETRICS, "1.0.0")),
        ("application/openmetrics-text", (OPENMETRICS, "1.0.0")),
        ("application/openmetrics-text;version=0.0.1", (TEXT, "0.0.4")),
        ("text/plain;q=0.1, application/*;q=0.7", (OPENMETRICS, "1.0.0")),
        ("text/plain;version=0.0.4;q=0, */*", (OPENMETRICS, "1.0.0")),
        ("TEXT/PLAIN; Q=0.5", (TEXT, "0.0.4")),
        ("text/plain;q=none,application/openmetrics-text;q=0.1", (OPENMETRICS, "1.0.0")),
        (BROWSER, (TEXT, "0.0.4")),
        ("*/*", (TEXT, "0.0.4")),
        ("image/png", (TEXT, "0.0.4")),
        (";;,=;q=,", (TEXT, "0.0.4")),
        ("", (TEXT, "0.0.4")),
    ],
)
def test_the_format_is_the_one_that_accept_prefers(accept: str, format: tuple[str, str]) -> None:
    assert preferred_format(accept) == format


def test_prometheus_3_gets_openmetrics_with_units(rings: list[Series], client: Client, now: datetime) -> None:
    builders.passed(rings[0], now - MINUTE)
    answer = client.get("/metrics", headers={"accept": PROMETHEUS_3})
    assert answer["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = list(openmetrics.text_string_to_metric_families(answer.content.decode()))  # type: ignore[no-untyped-call]
    units = {family.name: family.unit for family in families}
    assert units["gridcast_depot_size_bytes"] == "bytes"
    assert units["gridcast_series_duration_seconds"] == "seconds"
    assert units["gridcast_build"] == ""
    newer = client.get("/metrics", headers={"accept": "text/plain;version=1.0.0"})
    assert newer["Content-Type"] == "text/plain; version=1.0.0; charset=utf-8"


def test_promtool_finds_nothing_to_complain_about(rings: list[Series], client: Client, now: datetime) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing: install the package prometheus")
    builders.passed(rings[0], now - MINUTE)
    text = client.get("/metrics").content
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_the_documentation_lists_every_metric_with_its_labels_and_meaning() -> None:
    text = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    rows = [
        f"| `{each.name}` | {each.kind} | {', '.join(each.labels)} | {each.meaning} |" for each in DEFINITIONS
    ]
    missing = "\n".join(row for row in rows if row not in text)
    assert not missing, f"docs/monitoring.md needs\n{missing}"
    named = set(re.findall(r"^\| `(gridcast_\w+)` \|", text, re.MULTILINE))
    assert named == {each.name for each in DEFINITIONS}


def test_while_the_database_is_away_an_allowed_host_sees_that(depot_away: None, settings: Any) -> None:
    settings.GRIDCAST_METRICS_ALLOW = (ip_network("192.0.2.7"),)
    found = scrape(Client(REMOTE_ADDR="192.0.2.7"))
    assert found["gridcast_depot_up", ()] == 0
    assert found["gridcast_broker_up", ()] == 1
    assert "gridcast_http_requests_total" in {name for name, _ in found}


NASTY = 'a "quoted" back\\slash\nand a line'


@pytest.mark.parametrize("media_type", [TEXT, OPENMETRICS])
@pytest.mark.parametrize("value", [0.1, -1e-7, 1e300, 1_764_147_000.123456, float("inf"), float("nan")])
def test_strict_parsers_read_back_every_value_and_label(media_type: str, value: float) -> None:
    gauge, counter, info = Family(of.QUEUE_TASKS), Family(of.RECEIPTS), Family(of.BUILD)
    for family in (gauge, counter, info):
        family.add(value if family is gauge else 1, NASTY)
    text = decompressed(compressed([gauge, counter, info], media_type)).decode()
    read = parser if media_type == TEXT else openmetrics
    families = list(read.text_string_to_metric_families(text))
    samples = {sample.name: sample for family in families for sample in family.samples}
    assert {*samples} == {of.QUEUE_TASKS.name, of.RECEIPTS.name, of.BUILD.name}
    assert {*samples[of.RECEIPTS.name].labels.values()} == {NASTY}
    assert samples[of.QUEUE_TASKS.name].value == pytest.approx(value, rel=0, abs=0, nan_ok=True)


def test_a_compressed_answer_is_the_same_text(rings: list[Series], client: Client, settings: Any) -> None:
    settings.GRIDCAST_METRICS_VALID_SECONDS = 60.0
    plain = client.get("/metrics", {"suite": "main"})
    packed = client.get("/metrics", {"suite": "main"}, headers={"accept-encoding": "gzip, deflate"})
    assert (packed["Content-Encoding"], "Content-Encoding" in plain) == ("gzip", False)
    assert gzip.decompress(packed.content) == plain.content


@pytest.mark.parametrize(("seconds", "made"), [(4.9, 1), (5.0, 2)])
def test_an_answer_is_kept_for_some_seconds(settings: Any, seconds: float, made: int) -> None:
    settings.GRIDCAST_METRICS_VALID_SECONDS = 5.0
    clock, calls = [0.0], []

    def make() -> bytes:
        calls.append(clock[0])
        clock[0] += 60.0  # a slow scrape: its answer is kept from its end
        return b""

    cache = AnswerCache(lambda: clock[0])
    cache.get(("key",), make)
    clock[0] += seconds
    cache.get(("key",), make)
    assert len(calls) == made


def test_few_scrapes_wait_for_the_one_that_collects_and_share_its_answer(
    client: Client, settings: Any
) -> None:
    settings.GRIDCAST_METRICS_VALID_SECONDS = 60.0
    may_end, made = threading.Event(), []

    def make() -> bytes:
        made.append(1)
        may_end.wait()
        return b"answer"

    with ThreadPoolExecutor(MOST_SCRAPES + 2) as pool:
        scrapes = [pool.submit(CACHE.get, ("key",), make) for _ in range(MOST_SCRAPES + 2)]
        assert eventually(lambda: sum(scrape.done() for scrape in scrapes) == 2)
        refused = client.get("/metrics")
        may_end.set()
    assert (refused.status_code, refused.json()["code"], refused["Retry-After"]) == (503, "busy", "5")
    errors = [scrape.exception() for scrape in scrapes if scrape.exception()]
    assert [type(error) for error in errors] == [ScrapesBusy, ScrapesBusy]
    assert len(made) == 1
    assert client.get("/metrics").status_code == 200
