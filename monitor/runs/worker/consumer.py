"""The consumer of Celery workers: it outlives the loss of the broker while tasks run."""

from __future__ import annotations

from typing import Any

from celery.worker import state
from celery.worker.consumer import Consumer


class ReconnectingConsumer(Consumer):
    """Reconnects after every loss of the broker.

    When kombu closes a lost connection, it puts the messages of running tasks back into their queue, and at
    its end a task acknowledges its message, both through a connection whose address the Redis transport has
    cleared. So a worker that was running a task ended (*'NoneType' object has no attribute 'hostname'*).
    Neither is of use: the tasks run on, and a run whose worker dies is claimed again when its lease ends. The
    messages stay in the broker for the visibility timeout, after which the tasks find nothing to do.
    """

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        transport: Any = self.connection.transport if self.connection else None
        for channel in transport.channels if transport else ():
            channel.do_restore = False
        for request in tuple(state.active_requests):
            request.acknowledged = True
        super().on_connection_error_after_connected(exc)
