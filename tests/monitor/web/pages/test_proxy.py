"""Behind a TLS proxy forms are accepted and cookies are secure.

A process of its own for each setting: settings are read once.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

POST = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "monitor.settings"
import django
django.setup()
from django.conf import settings
from django.middleware.csrf import CsrfViewMiddleware
from django.test import RequestFactory
token = "a" * 32
request = RequestFactory().post("/login/", {"csrfmiddlewaretoken": token}, headers={
    "host": "localhost", "origin": "https://localhost", "referer": "https://localhost/login/",
    "x-forwarded-proto": "https"})
request.COOKIES[settings.CSRF_COOKIE_NAME] = token
check = CsrfViewMiddleware(lambda request: None)
check.process_request(request)
refused = check.process_view(request, lambda request: None, (), {})
print("refused" if refused else "accepted", settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE)
"""


@pytest.mark.parametrize(
    ("tls", "answer"),
    [("1", "accepted True True"), ("", "refused False False")],
    ids=["told of the proxy", "not told: anybody could send its header"],
)
def test_a_form_is_accepted_behind_a_configured_tls_proxy(tls: str, answer: str) -> None:
    environment = {**os.environ, "GRIDCAST_TLS": tls, "GRIDCAST_SECRET_KEY": "k" * 50}
    done = subprocess.run(
        [sys.executable, "-c", POST], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == answer


PLAIN = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "monitor.settings"
import django
django.setup()
from django.middleware.security import SecurityMiddleware
from django.http import HttpResponse
from django.test import RequestFactory
middleware = SecurityMiddleware(lambda request: HttpResponse())
for path, scheme in (("/login/", "http"), ("/healthz", "http"), ("/login/", "https")):
    request = RequestFactory().get(path, headers={"host": "localhost", "x-forwarded-proto": scheme})
    answer = middleware(request)
    print(answer.status_code, answer.get("Location"), answer.get("Strict-Transport-Security"))
"""


@pytest.mark.parametrize(
    ("tls", "answers"),
    [
        ("1", ["301 https://localhost/login/ None", "200 None None", "200 None max-age=31536000"]),
        ("0", ["200 None None", "200 None None", "200 None None"]),
    ],
    ids=["behind TLS", "without"],
)
def test_behind_tls_plain_requests_are_redirected_and_browsers_keep_to_https(
    tls: str, answers: list[str]
) -> None:
    environment = {**os.environ, "GRIDCAST_TLS": tls, "GRIDCAST_SECRET_KEY": "k" * 50}
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == answers
