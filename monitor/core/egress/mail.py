"""Mail that goes out: each message within one deadline, from the name of the server to its last answer.

A timeout of a socket starts again with every byte, and looking up names has none.
"""

from __future__ import annotations

import contextlib
import smtplib
import socket
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.mail.backends import smtp

from monitor.core.egress.deadline import CallDeadline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.core.mail import EmailMessage


class EmailBackend(smtp.EmailBackend):
    """Django's connection to the mail server, within ``EMAIL_TIMEOUT`` seconds for all that it does."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lock_of_channel = threading.Lock()
        self._begin()

    @property
    def connection_class(self) -> Callable[..., smtplib.SMTP]:  # type: ignore[override]  # called only
        kind = _WatchedTlsConnection if self.use_ssl else _WatchedConnection
        return lambda *args, **options: kind(self._watch, *args, **options)

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Send *email_messages*; return their number.

        Raises:
            TimeoutError: the mail server has not accepted them in time; it may accept them nevertheless.
            OSError: the mail server refuses them or cannot be reached.
        """
        self._begin()
        deadline, sent = CallDeadline(settings.EMAIL_TIMEOUT), Future[int]()
        threading.Thread(
            target=self._send_in_thread, args=(email_messages, sent), name="send mail", daemon=True
        ).start()
        try:
            return sent.result(deadline.left())
        except TimeoutError:
            if sent.done():  # the socket's
                raise
            self._cut()
            if self._number_sent == len(email_messages):  # only its last farewell is missing
                return self._number_sent
            raise deadline.over() from None

    def _begin(self) -> None:
        self._channel: socket.socket | None = None
        self._is_over, self._number_sent = False, 0

    def _send_in_thread(self, email_messages: Sequence[EmailMessage], sent: Future[int]) -> None:
        try:
            sent.set_result(super().send_messages(email_messages))
        except Exception as error:  # noqa: BLE001  # the thread that waits raises it
            sent.set_exception(error)
        finally:
            with self._lock_of_channel:
                if self._channel is not None:
                    self._channel.close()

    def _send(self, email_message: EmailMessage) -> bool:
        is_sent: bool = super()._send(email_message)  # type: ignore[misc]  # of Django's class
        self._number_sent += is_sent
        return is_sent

    def _watch(self, channel: socket.socket) -> None:
        """Let ``_cut`` end *channel*, over which TLS may follow."""
        with self._lock_of_channel:
            if self._is_over:
                channel.close()
                raise TimeoutError("connected too late")
            self._channel = channel.dup()

    def _cut(self) -> None:
        """End the connection, so that the thread that sends ends, also one to which bytes still trickle."""
        with self._lock_of_channel:
            self._is_over = True
            if self._channel is not None:
                with contextlib.suppress(OSError):  # it has just ended
                    self._channel.shutdown(socket.SHUT_RDWR)


class _WatchedConnection(smtplib.SMTP):
    def __init__(self, watch: Callable[[socket.socket], None], *args: Any, **options: Any) -> None:
        self._watch = watch
        super().__init__(*args, **options)

    def _get_socket(self, *args: Any) -> socket.socket:
        channel: socket.socket = super()._get_socket(*args)  # type: ignore[misc]  # the seam of SMTP_SSL, too
        self._watch(channel)
        return channel


class _WatchedTlsConnection(smtplib.SMTP_SSL, _WatchedConnection):
    """Gets its socket from ``_WatchedConnection``, and begins TLS on it."""

    def __init__(self, watch: Callable[[socket.socket], None], *args: Any, **options: Any) -> None:
        self._watch = watch
        smtplib.SMTP_SSL.__init__(self, *args, **options)
