"""The Celery application: one beat entry, ``tick``, decides; workers do."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monitor.settings")

app = Celery("gridcast")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["monitor"])
