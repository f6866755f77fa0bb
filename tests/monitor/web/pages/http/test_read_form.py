"""A form that cannot be read is refused as such, on every path, whatever reads it first."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitor.web.pages.http.read_form import MOST_BYTES, MOST_QUERY_BYTES

URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data; boundary=xx"
FILE = b'--xx\r\nContent-Disposition: form-data; name="f%d"; filename="a"\r\n\r\nx\r\n'
END = b"--xx--\r\n"
FIELD = b'--xx\r\nContent-Disposition: form-data; name="f"'
PATHS = (
    "/nothing/",
    "/api/v1/nothing",
    "/login/",
    "/sites/",
    "/static/nothing",
    "/admin/nothing",
    "/api/v1/holds",
)
# What is wrong, its type, its body, and the answer of pages.
FORMS: dict[str, tuple[str, bytes, int]] = {
    "101 files": (MULTIPART, b"".join(FILE % number for number in range(101)) + END, 400),
    "1,001 fields": (URLENCODED, b"&".join(b"f%d=1" % number for number in range(1001)), 400),
    "no boundary": ("multipart/form-data", b"--xx--\r\n", 400),
    "a long boundary": ("multipart/form-data; boundary=" + "x" * 300, b"a=1", 400),
    "a boundary of other text": ("multipart/form-data; boundary=\xe9", b"a=1", 400),
    "many headers of a part": (MULTIPART, FIELD + b"\r\nX-Y: 1" * 3000 + b"\r\n\r\nx\r\n" + END, 400),
    "too large": (URLENCODED, b"f=" + b"x" * MOST_BYTES, 413),
    "too large for Django": (URLENCODED, b"f=" + b"x" * 2_700_000, 413),
    "too large file": (MULTIPART, FILE % 1 + b"x" * MOST_BYTES + b"\r\n" + END, 413),
}
# What Django reads all the same; no path may fail.
LENIENT: dict[str, tuple[str, bytes]] = {
    "cut": (MULTIPART, FILE[:40]),
    "NUL": (MULTIPART, FIELD + b'; filename="a\x00"\r\n\r\n\x00\r\n' + END),
    "NUL in names": (URLENCODED, b"%00=%00"),
    "not UTF-8": (URLENCODED, b"\xff\xfe=%ff"),
    "unknown charset": ("application/x-www-form-urlencoded; charset=nope", b"f=1"),
    "broken base64": (MULTIPART, FIELD + b"\r\nContent-Transfer-Encoding: base64\r\n\r\n!!\r\n" + END),
}


def browsers() -> list[Client]:
    """Return a stranger and an administrator, whose pages show more; both as real browsers are treated."""
    administrator = Client(raise_request_exception=False, enforce_csrf_checks=True)
    administrator.force_login(User.objects.create_superuser("root"))
    return [Client(raise_request_exception=False, enforce_csrf_checks=True), administrator]


@pytest.mark.django_db
@pytest.mark.parametrize("what", FORMS)
def test_an_unreadable_form_is_refused_on_every_path(what: str) -> None:
    content_type, body, status = FORMS[what]
    for browser in browsers():
        for path in PATHS:
            answer = browser.generic("POST", path, body, content_type)
            if path.startswith("/api/"):
                assert 400 <= answer.status_code < 500, path
                assert answer["Content-Type"] == "application/problem+json", path
            else:
                assert (answer.status_code, b"<h1>Bad request</h1>" in answer.content) == (status, True), path
            assert len(answer.content) < 16_000, path


@pytest.mark.django_db
@pytest.mark.parametrize("what", LENIENT)
def test_no_form_is_an_error_of_ours(what: str) -> None:
    content_type, body = LENIENT[what]
    for browser in browsers():
        for path in PATHS:
            for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                answer = browser.generic(method, path, body, content_type)
                assert answer.status_code < 500, (method, path)


@pytest.mark.django_db
def test_a_query_that_every_link_would_repeat_is_refused_unless_no_link_does() -> None:
    """A ranking takes many resources, a scrape many sites, and a provider of logins sends long codes."""
    _, administrator = browsers()
    longest, longer = "x" * (MOST_QUERY_BYTES - 2), "x" * (MOST_QUERY_BYTES - 1)
    for path in ("/", "/sites/", "/nothing/", "/audit/"):
        assert administrator.get(f"{path}?q={longest}").status_code != 414
        refused = administrator.get(f"{path}?q={longer}")
        assert refused.status_code == 414
        assert b"more than 2,000 characters after the question mark" in refused.content
        assert refused.content.count(longer.encode()) <= 1
    for path in ("/forecasts/rank/", "/metrics", "/login/", "/login/sso/callback/", "/api/v1/series"):
        assert administrator.get(f"{path}?q={longer}").status_code != 414
