"""The web server's entry: ``gunicorn monitor.wsgi``."""

import gc
import os

import django
from django.urls import get_resolver

gc.disable()  # until everything is loaded: MonitorConfig.ready enables it
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monitor.settings")
django.setup(set_prefix=False)

from monitor.core import statement_timeout  # noqa: E402 - needs the settings
from monitor.web.pages.http import static_files  # noqa: E402
from monitor.web.pages.http.utf8 import Utf8Handler  # noqa: E402

statement_timeout.limit_statements()
static_files.write_copies()  # before the application: it lists the files that it serves
application = Utf8Handler()
gc.disable()
# Django would load API and pages with the first request, after the fork: each collection of the oldest
# generation would then visit them, and stop the process for a tenth of a second.
get_resolver().url_patterns  # noqa: B018  # a cached property
gc.freeze()
gc.enable()
