"""Weight of the pages: bytes until a page is complete, without Plotly; static files; polls."""

from __future__ import annotations

import gzip
import re
from datetime import datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.db import connection
from django.templatetags.static import static
from django.test import Client, override_settings
from whitenoise.middleware import WhiteNoiseMiddleware

from monitor.core.env import ROOT
from monitor.web.charts import chart_choice
from monitor.web.pages.http import static_files
from tests.by_night import by_night
from tests.monitor.web.pages import builders, depots
from tests.monitor.web.pages.test_screens import addresses

MOST_BYTES = 150_000  # compressed
SHORTEST_POLL_SECONDS = 10
STATIC = re.compile(r'<(?:link|script|img|use)\b[^>]*?\b(?:href|src)="(/static/[^"#]+)')
HASHED = re.compile(r"/static/.+\.[0-9a-f]{12}\.[a-z]+")
POLL = re.compile(r'hx-trigger="[^"]*\bevery (\d+)(m?s)\b')
OWN = ROOT / "monitor" / "static"
COMPRESSIBLE = {".css", ".js", ".svg"}


# A run every ten minutes until an hour ago, with a value of each metric of the series; one in fifty failed.
MANY_RUNS = """
WITH runs AS (
    INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, state, reason, attempt, stage,
        failed_resource, cause, forced, started_at, ended_at)
    SELECT gen_random_uuid(), %(series)s, slot, slot, 'schedule',
        CASE WHEN n %% 50 = 7 THEN 'failed' ELSE 'passed' END, '', 1, '', '', '', false, slot, slot
    FROM generate_series(1, %(runs)s) AS n,
        LATERAL (SELECT %(now)s - make_interval(mins => 50 + 10 * n) AS slot) AS at
    RETURNING slot
)
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT metric.id, slot, slot, CASE metric.unit WHEN 'seconds' THEN 10 ELSE 1e7 END * (1 + random()), true
FROM runs, monitor_metric AS metric JOIN monitor_segment AS segment ON segment.id = metric.segment_id
WHERE segment.series_id = %(series)s
"""


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["full", by_night("huge"), by_night("stale"), by_night("broken")])
def test_no_page_is_heavy_or_polls_more_often_than_every_ten_seconds(kind: str) -> None:
    depots.BUILDERS[kind]()
    browser = Client(headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
    browser.force_login(User.objects.get(username="administrator"))
    wrong, seen = [], 0
    for address in addresses():
        answer = browser.get(address)
        if answer.status_code != 200 or answer.get("Content-Encoding") != "gzip":
            continue  # forms only, a download or a small part
        seen += 1
        body = gzip.decompress(answer.content).decode()
        files = {*STATIC.findall(body)}
        if (weight := len(gzip.compress(body.encode())) + sum(map(compressed_bytes, files))) > MOST_BYTES:
            wrong.append(f"{address}: {weight} bytes")
        wrong += [f"{address}: {file} has no digest" for file in files if not HASHED.fullmatch(file)]
        polls = [int(count) / (1 if unit == "s" else 1000) for count, unit in POLL.findall(body)]
        if len(polls) > 1 or any(seconds < SHORTEST_POLL_SECONDS for seconds in polls):
            wrong.append(f"{address}: polls every {polls} s")
    assert seen > 20
    assert wrong == []


@pytest.mark.django_db
def test_a_chart_of_two_thousand_runs_is_not_heavy(now: datetime) -> None:
    series = builders.circle("circle-ring", builders.sites(3))
    builders.passed(series, now)
    with connection.cursor() as cursor:
        cursor.execute(MANY_RUNS, {"series": series.pk, "now": now, "runs": chart_choice.MOST_RUNS_ASKED})
    browser = Client(headers={"Accept": "text/html"})
    browser.force_login(builders.user("administrator", is_superuser=True))
    body = browser.get(f"/series/{series.name}/", {"interval": "run", "range": "all"}).content
    files = {*STATIC.findall(body.decode())}
    assert b" of 2,000 runs drawn" in body
    assert len(gzip.compress(body)) + sum(map(compressed_bytes, files)) < MOST_BYTES


def test_every_static_file_has_a_digest_and_is_kept_by_browsers_compressed(tmp_path: Path) -> None:
    with override_settings(VAR_DIR=tmp_path, WHITENOISE_AUTOREFRESH=False):
        static_files.write_copies()
        server = WhiteNoiseMiddleware(lambda request: None, settings)
    names = [str(path.relative_to(OWN)) for path in OWN.rglob("*") if path.suffix in COMPRESSIBLE]
    assert "monitor/base.css" in names
    for name in names:
        headers = [dict(headers) for _, _, headers in server.files[static(name)].alternatives]
        assert HASHED.fullmatch(static(name)), name
        assert [each.get("Content-Encoding") for each in headers] == ["br", "gzip", None], name
        assert all("immutable" in each["Cache-Control"] for each in headers), name


def compressed_bytes(url: str) -> int:
    """Return the size of a static file as gzip, which is more than that of the Brotli that browsers get."""
    found = finders.find(url.removeprefix("/static/"))
    return len(gzip.compress(Path(str(found)).read_bytes()))
