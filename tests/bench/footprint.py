"""Modules that the overview loads, start-up time, queries of each page: against bare Django."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from monitor.models import Run
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.bench.base import Result, interleaved
from tests.monitor.builders import circle_report

TIMES = 5
RUNS = 50
# A project with the same contributed applications, the same database and no application of its own.
BARE_SETTINGS = """
from monitor.settings import DATABASES, SECRET_KEY
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.messages", "django.contrib.staticfiles", "django.contrib.postgres",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {
    "context_processors": [
        "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]}}]
ROOT_URLCONF = "bare_urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
"""
BARE_URLS = """
from django.contrib import admin
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
"""
COUNT_MODULES = "import sys, django; django.setup(); {}; print(len(sys.modules))"
CHECK = "from django.core.management import execute_from_command_line as run; run(['manage.py', 'check'])"


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "bare_settings.py").write_text(BARE_SETTINGS, encoding="utf-8")
        (Path(directory) / "bare_urls.py").write_text(BARE_URLS, encoding="utf-8")
        return [_modules(directory), _start_up(directory), *_queries()]


def _python(directory: str, settings: str, code: str) -> str:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": settings,
        "PYTHONPATH": os.pathsep.join((directory, str(Path.cwd()))),
    }
    argv = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout


def _modules(directory: str) -> Result:
    bare = int(_python(directory, "bare_settings", COUNT_MODULES.format("import bare_urls")))
    overview = COUNT_MODULES.format("import monitor.web.pages.overview")
    ours = int(_python(directory, "monitor.settings", overview))
    figures = {"modules": ours, "modules, bare Django": bare}
    return Result("footprint: modules of the overview / bare Django", ours / bare, 3.0, "lower", figures)


def _start_up(directory: str) -> Result:
    ours, bare = interleaved(
        lambda: _python(directory, "monitor.settings", CHECK),
        lambda: _python(directory, "bare_settings", CHECK),
        TIMES,
    )
    figures = {"seconds": ours, "seconds, bare Django": bare}
    return Result("footprint: manage.py check / bare Django", ours / bare, 4.5, "lower", figures)


def _queries() -> list[Result]:
    """Queries of each page, a grid with runs behind it, against those of the admin's empty index."""
    _fill()
    client = Client()
    client.force_login(User.objects.create_superuser("bench-footprint"))
    run = Run.objects.latest("slot")
    pages = {
        "overview": reverse("overview"),
        "series": reverse("series", args=["circle"]),
        "run": reverse("run", args=[run.pk]),
        "holds": reverse("holds"),
        "alerts": reverse("alerts"),
        "scoreboard": reverse("scoreboard"),
    }
    bare = _count(client, reverse("admin:password_change_done"))
    return [
        Result(f"footprint: queries of {name} / bare page", _count(client, url) / bare, 15.0, "lower")
        for name, url in pages.items()
    ]


def _count(client: Client, url: str) -> int:
    with override_settings(ALLOWED_HOSTS=["testserver"]):
        client.get(url)  # the first request fills caches
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200
    return len(queries)


def _fill() -> None:
    resources = [ResourceConfig(name, f"site-of-{name}", f"/scratch/{name}") for name in ("here", "there")]
    bindings = {"ring": ["here", "there"]}
    define(resources, [SeriesDefinition("circle", "circle", bindings, {"file_bytes": 1000}, "* * * * *")])
    first = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=RUNS)
    for number in range(RUNS):
        ingest(wire.to_json(circle_report(first + timedelta(minutes=number))))
