"""Hand claims to their reporters' queues."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from monitor.celery import app
from monitor.services.claim import release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from monitor.services.claim import Claim

logger = logging.getLogger(__name__)


def send(claims: Sequence[Claim], publish: Callable[[Claim], None] | None = None) -> None:
    """Send a task for each of *claims*. When the broker does not take one, all that are left are released."""
    for place, one in enumerate(claims):
        try:
            (publish or _publish)(one)
        except (OperationalError, RedisError) as error:  # away, or it takes no writes
            left = claims[place:]
            logger.warning("the broker does not take it, %d runs are put back: %s", len(left), error)
            release(left)
            break


def _publish(one: Claim) -> None:
    app.send_task("monitor.tasks.run", (str(one.run_id),), queue=one.queue, retry=False)
