"""The servers of the test run itself."""

from __future__ import annotations

import os

import psycopg
import redis
from django.conf import settings

from monitor.core.valkey import server_url


def test_the_settings_have_the_servers_of_this_test_run() -> None:
    assert os.environ["REDIS_URL"] == settings.CELERY_BROKER_URL
    assert os.environ["GRIDCAST_VAR"] == str(settings.VAR_DIR)


def test_the_servers_of_this_test_run_answer() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    client = redis.Redis.from_url(server_url(os.environ["REDIS_URL"]))
    assert client.ping()
    client.close()
