"""The Celery application."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import task_prerun
from django.db import close_old_connections
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monitor.settings")

BROKER_REFUSES = (OperationalError, RedisError)  # unavailable, or refuses writes

app = Celery("gridcast")
app.config_from_object("django.conf:settings", namespace="CELERY")
# In tasks. Celery reads this very name; as a Django setting it would lose its prefix.
app.conf["CELERY_DB_REUSE_MAX"] = 1000
app.autodiscover_tasks(["monitor"])


@task_prerun.connect
def keep_usable_connection(**_: Any) -> None:
    """Keep the database connection between tasks if it still works, as Django does between requests.

    By default Celery connects for every task. On a new connection, planning the first statements costs more
    than most tasks.
    """
    close_old_connections()
