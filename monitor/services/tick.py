"""One tick of the monitor's clock: everything that is due at a moment."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import connection, transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from monitor.celery import app
from monitor.services import alert, claim, forecast, health, hold, notify
from monitor.services.expand import BEAT, expand
from monitor.services.reap import give_time, reap
from monitor.services.retry import retry

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from monitor.services.claim import Claim

logger = logging.getLogger(__name__)
LOCK = 0x67726964  # "grid": one tick at a time, however many beats there are


def tick(now: datetime) -> None:
    """End holds, expand schedules, reap, retry, claim and send; then open and close alerts, have people
    told, and bring forecasts up to date."""
    with transaction.atomic():
        if not _alone():
            return
        hold.end_overdue(now)
        expand(now)
        if health.was_silent(BEAT, now):
            give_time(now)
        reap(now)
        retry(now)
        health.seen(BEAT, now)
    send(claim.claim_due(now))
    alert.look(now)
    notify.ask(now)
    forecast.refresh(now)


def send(claims: list[Claim], publish: Callable[[Claim], None] | None = None) -> None:
    """Hand claims to their reporters' queues; what the broker does not take is released at once."""
    for one in claims:
        try:
            (publish or _publish)(one)
        except (OperationalError, RedisError) as error:  # away, or it takes no writes
            logger.warning("the broker does not take it, run %s is put back: %s", one.run_id, error)
            claim.release(one)


def _publish(one: Claim) -> None:
    app.send_task("monitor.tasks.run", (str(one.run_id), one.attempt), queue=one.queue, retry=False)


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])
