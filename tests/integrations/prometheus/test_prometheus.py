"""A real Prometheus scrapes the real web server; every query of the rules and dashboards returns data."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import TransactionTestCase
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from integrations.grafana.generate import DASHBOARDS, queries
from monitor.analysis.forecasts import refresh
from monitor.analysis.traces import export as traces
from monitor.analysis.webhooks.define import WebhookDefinition, define_webhook
from monitor.analysis.webhooks.enqueue import ping
from monitor.core.counters import counters
from monitor.core.env import ROOT
from monitor.depot.rollups.worker import gather
from monitor.models import ApiToken, Reporter, Series
from monitor.models.token import READ, REPORT
from monitor.models.webhook import EventType
from monitor.operations.embedded.urls import database_url
from monitor.runs.ledger import heartbeats
from reporters import report as wire
from tests.bench.web import serving
from tests.monitor import reporter_rows
from tests.monitor.web.pages import builders
from tests.waiting import eventually

pytestmark = pytest.mark.django_db  # pytest-django creates the database for tests that have the mark
SHIPPED = ROOT / "integrations" / "prometheus"
MINUTE = timedelta(minutes=1)
COMPARISONS = re.compile(r"(?<![=!<>~])(==|!=|>=|<=|>|<)(?![=~])")


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: install the package prometheus")
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "rules", str(SHIPPED / "recording-rules.yaml"), str(SHIPPED / "alerts.yaml")],
        ["test", "rules", str(ROOT / "tests/integrations/prometheus/rules.yaml")],
        ["check", "config", "--syntax-only", str(SHIPPED / "prometheus.yaml")],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_promtool_accepts_what_is_shipped(arguments: list[str]) -> None:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


class RunningPrometheus:
    """A Prometheus server that scrapes once a second; *url* is its address."""

    def __init__(self, directory: Path, target: str, token: str) -> None:
        self.log = directory / "log"
        (directory / "token").write_text(token, encoding="ascii")
        for name in ("recording-rules.yaml", "alerts.yaml"):
            shutil.copy(SHIPPED / name, directory)
        config = yaml.safe_load((SHIPPED / "prometheus.yaml").read_text(encoding="utf-8"))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (job,) = config["scrape_configs"]
        job |= {"scheme": "http", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
        job["authorization"] = {"credentials_file": str(directory / "token")}
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._argv = [
            program("prometheus"),
            f"--config.file={directory / 'prometheus.yaml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

    def __enter__(self) -> RunningPrometheus:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def query(self, expression: str) -> list[Any]:
        """Return the samples of *expression* now; empty while the server is not up."""
        assert self._process.poll() is None, self.log.read_text(encoding="utf-8")
        parameters = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?{parameters}", timeout=30) as answer:
                result: list[Any] = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return []
            raise AssertionError(f"{expression}: {error.read().decode()}") from None
        except urllib.error.URLError:
            return []
        return result


@pytest.fixture(scope="module")
def prometheus(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningPrometheus]:
    program("prometheus")
    with django_db_blocker.unblock():
        read, report = fill_depot()
        name = connection.settings_dict["NAME"]
        url = urllib.parse.urlsplit(database_url())._replace(path=f"/{name}").geturl()
        try:
            with serving("monitor.wsgi", {"DATABASE_URL": url, "GRIDCAST_DEPOT_DIRECTORY": "/"}) as address:
                send_reports(address, report)
                target = f"{address[0]}:{address[1]}"
                with RunningPrometheus(tmp_path_factory.mktemp("prometheus"), target, read) as server:
                    yield server
        finally:
            TransactionTestCase._fixture_teardown(None)  # type: ignore[attr-defined]


def fill_depot() -> tuple[str, str]:
    """Store a series with forecasts, a site that is down, a remote reporter and a webhook.

    Returns a token that reads and one that reports.
    """
    now = timezone.now()
    (ring,) = builders.circles(["ring"], builders.sites(2))
    receiver = WebhookDefinition("ops", "https://hooks.example.org/", [EventType.RUN_ENDED])
    ada = builders.user("ada", is_superuser=True)
    ping(define_webhook(receiver, author=ada, now=now)[0], now)
    counters.add(traces.DROPPED)
    builders.history(ring, 10, until=now - 3 * MINUTE, with_forecasts=False)
    refresh.refresh_all(now)
    (broken,) = builders.circles(["broken"], builders.sites(3)[1:])
    for minutes in (3, 2, 1):
        sent = builders.report(broken, now - minutes * MINUTE)
        builders.delivered(builders.failed(sent, "transfer_ring", "site3-login", "Connection refused"))
    gather()
    for component in (heartbeats.SCHEDULER, heartbeats.HOME_REPORTER):
        heartbeats.record(component, now)
    reporter_rows.status(reporter_rows.enrolled("ncsa", now), now)
    reader, sender = builders.user("prometheus"), builders.user("sender")
    sender.user_permissions.add(Permission.objects.get(codename="add_rawreport"))
    reader.user_permissions.add(Permission.objects.get(codename="manage_reporters"))
    home = Reporter.objects.get(name="home")
    report = ApiToken.objects.issue(sender, "sender", [REPORT], home)
    return ApiToken.objects.issue(reader, "prometheus", [READ]), report


def send_reports(address: tuple[str, int], token: str) -> None:
    """Send a report that is accepted and one that is refused."""
    ring = Series.objects.get(name="ring")
    passed = wire.to_json(builders.report(ring, timezone.now() - MINUTE)).decode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    url = f"http://{address[0]}:{address[1]}/api/v1/reports"
    answer = httpx.post(url, content=f"[{passed}, {{}}]", headers=headers, timeout=600.0)
    assert answer.status_code == 200, answer.text


def rules() -> Iterator[str]:
    """Yield every expression of the rules; a comparison returns 0 or 1 instead of filtering."""
    for file in ("recording-rules.yaml", "alerts.yaml"):
        for group in yaml.safe_load((SHIPPED / file).read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                outside = re.split(r"(\{[^}]*\})", rule["expr"])  # matchers of labels stay
                yield "".join(
                    part if part.startswith("{") else COMPARISONS.sub(r"\1 bool", part) for part in outside
                )


def shown(expression: str) -> str:
    """Return a query of a dashboard with its variables as Grafana fills them for *All*."""
    return expression.replace("$suite", ".*").replace("$series", ".*")


def test_every_query_of_the_rules_and_dashboards_returns_data(prometheus: RunningPrometheus) -> None:
    every = [*rules(), *(shown(query) for name in DASHBOARDS for query in queries(name))]
    assert len(every) > 60
    waiting = set(every)

    def answered() -> bool:
        waiting.difference_update({query for query in list(waiting) if prometheus.query(query)})
        return not waiting

    assert eventually(answered), sorted(waiting)


def test_prometheus_reads_the_answer_as_openmetrics_without_a_fault(prometheus: RunningPrometheus) -> None:
    assert eventually(lambda: [sample["value"][1] for sample in prometheus.query("up")] == ["1"])
    samples = eventually(lambda: prometheus.query("scrape_samples_scraped"))
    assert int(samples[0]["value"][1]) > 50


def test_the_counters_of_all_web_processes_are_one(prometheus: RunningPrometheus) -> None:
    receipts = 'sum by (receipt) (gridcast_ingest_reports_total{receipt=~"accepted|refused"}) > 0'
    found = eventually(lambda: prometheus.query(receipts))
    assert {sample["metric"]["receipt"] for sample in found} == {"accepted", "refused"}
    scraped = 'gridcast_http_requests_total{route="/metrics", status="2xx"}'
    assert eventually(lambda: len(prometheus.query(f"{scraped} > 0")) == 1)
