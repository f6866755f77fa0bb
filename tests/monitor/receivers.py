"""Receivers of notifications: real servers that accept, refuse, or do not answer."""

from __future__ import annotations

import email
import email.policy
import json
import logging
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from django.test import override_settings

ACCEPTS, REFUSES, HANGS = "accepts", "refuses", "hangs"


class Receiver(Protocol):
    """The target of a channel. Tests may change *mode*, except for a log, which always accepts."""

    mode: str
    channel: Mapping[str, Any]
    address: str

    def received(self) -> list[str]:
        """Return each received message as text."""


class Log(logging.Handler):
    """A log handler, like the one of the worker."""

    channel: Mapping[str, Any] = {"kind": "log"}
    mode = ACCEPTS
    address = ""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def received(self) -> list[str]:
        return [record.getMessage() for record in self.records]


class _Server:
    """Base of both servers; *over* ends the handlers that hang."""

    def __init__(self) -> None:
        self.mode = ACCEPTS
        self.over = threading.Event()


class Mailbox(_Server, socketserver.ThreadingTCPServer):
    """A minimal SMTP server."""

    daemon_threads = True

    def __init__(self) -> None:
        _Server.__init__(self)
        socketserver.ThreadingTCPServer.__init__(self, ("127.0.0.1", 0), _MailHandler)
        self.mails: list[tuple[list[str], bytes]] = []
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.channel: Mapping[str, Any] = {"kind": "email", "to": ["ada@example.org", "bob@example.org"]}

    def received(self) -> list[str]:
        texts = []
        for _, content in self.mails:
            mail = email.message_from_bytes(content, policy=email.policy.default)
            texts.append(f"{mail['Subject']}\n{mail.get_content()}")
        return texts


class _MailHandler(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        if self.server.mode == HANGS:
            self.server.over.wait()
            return
        self._say("220 mailbox")
        recipients: list[str] = []
        for line in self.rfile:
            verb = line[:4].upper().strip()
            if verb == b"RCPT":
                if self.server.mode == REFUSES:
                    self._say("550 no such user here")
                    continue
                recipients.append(line.decode().partition(":")[2].strip())
            elif verb == b"DATA":
                self._say("354 go on")
                self.server.mails.append((recipients, self._content()))
            elif verb == b"QUIT":
                self._say("221 bye")
                return
            self._say("250 fine")

    def _content(self) -> bytes:
        return b"".join(iter(self.rfile.readline, b".\r\n"))

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


class Hook(_Server, ThreadingHTTPServer):
    """A web server that stores POST requests; *answer* and *reason* are those of a refusal."""

    daemon_threads = True

    def __init__(self, kind: str) -> None:
        _Server.__init__(self)
        ThreadingHTTPServer.__init__(self, ("127.0.0.1", 0), _HookHandler)
        self.requests: list[tuple[Mapping[str, str], bytes]] = []
        self.answer: tuple[int, Mapping[str, str]] = (503, {})
        self.reason = b"come back\nlater"
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.channel: Mapping[str, Any] = {"kind": kind, "url": f"http://{self.address}/hook?to=ops"}

    def received(self) -> list[str]:
        return [content.decode() for _, content in self.requests]

    def data(self) -> list[dict[str, Any]]:
        """Return the ``data`` of each message, which describes the event."""
        return [json.loads(content)["data"] for _, content in self.requests]


class _HookHandler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        if self.server.mode == HANGS:
            self.server.over.wait()
            return
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.mode == REFUSES:
            self._answer(*self.server.answer, self.server.reason)
        else:
            self.server.requests.append((dict(self.headers), content))
            self._answer(202, {}, b"")

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def log() -> Iterator[Log]:
    logger, handler = logging.getLogger("monitor.analysis.alerts.channels.log"), Log()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """Run an SMTP server, and point Django's settings to it."""
    with Mailbox() as server, _served(server):
        backend = "monitor.core.egress.mail.EmailBackend"
        with override_settings(
            EMAIL_BACKEND=backend, EMAIL_HOST="127.0.0.1", EMAIL_PORT=server.server_address[1]
        ):
            yield server


@contextmanager
def hook(kind: str = "webhook") -> Iterator[Hook]:
    """Run a web server for a channel of *kind* with a URL, and allow webhooks to this host."""
    with (
        Hook(kind) as server,
        _served(server),
        override_settings(GRIDCAST_INTERNAL_WEBHOOK_HOSTS={"127.0.0.1"}),
    ):
        yield server


@contextmanager
def _served(server: Mailbox | Hook) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.over.set()
        server.shutdown()
        thread.join()


RECEIVERS: Mapping[str, Callable[[], AbstractContextManager[Receiver]]] = {
    "log": log,
    "email": mailbox,
    "webhook": hook,
}
