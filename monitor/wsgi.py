"""The web server's entry: ``gunicorn monitor.wsgi``."""

import gc
import os

import django
from django.core.wsgi import get_wsgi_application

gc.disable()  # until everything is loaded: MonitorConfig.ready enables it
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monitor.settings")
django.setup(set_prefix=False)

from monitor.pages.http import static_files  # noqa: E402 - needs the settings

static_files.write_copies()  # before the application: it lists the files that it serves
application = get_wsgi_application()
