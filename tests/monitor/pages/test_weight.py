"""Weight of the pages: bytes until a page is complete, without Plotly; static files; polls."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.test import Client, override_settings
from whitenoise.middleware import WhiteNoiseMiddleware

from monitor.env import ROOT
from monitor.pages.http import static_files
from tests.by_night import by_night
from tests.monitor.pages import depots
from tests.monitor.pages.test_screens import addresses

MOST_BYTES = 150_000  # compressed
SHORTEST_POLL_SECONDS = 10
STATIC = re.compile(r'<(?:link|script|img|use)\b[^>]*?\b(?:href|src)="(/static/[^"#]+)')
HASHED = re.compile(r"/static/.+\.[0-9a-f]{12}\.[a-z]+")
POLL = re.compile(r'hx-trigger="[^"]*\bevery (\d+)(m?s)\b')
OWN = ROOT / "monitor" / "static"
COMPRESSIBLE = {".css", ".js", ".svg"}


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
