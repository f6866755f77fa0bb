"""The Celery application: one beat entry, ``tick``, decides; workers do."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import task_prerun
from django.db import close_old_connections
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monitor.settings")

BROKER_REFUSES = (OperationalError, RedisError)  # it is away, or takes no writes

app = Celery("gridcast")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf["CELERY_DB_REUSE_MAX"] = 1000  # tasks; it is read by this very name, which the namespace would cut
app.autodiscover_tasks(["monitor"])


@task_prerun.connect
def use_a_connection_that_works(**_: Any) -> None:
    """Keep the connection to the depot between tasks, as the web does between requests, if it still works.

    Celery by itself connects for every task; to plan its first statements costs a new connection more than
    most tasks cost.
    """
    close_old_connections()
