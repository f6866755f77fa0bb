"""The web server's entry: ``gunicorn monitor.wsgi``."""

import gc
import os

from django.core.wsgi import get_wsgi_application

gc.disable()  # until everything is loaded: MonitorConfig.ready enables it
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monitor.settings")
application = get_wsgi_application()
