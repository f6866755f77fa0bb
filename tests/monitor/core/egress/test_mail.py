"""A mail ends within its bound, whatever the mail server or DNS does; all mail goes out in one way."""

from __future__ import annotations

import smtplib
import socket
import threading
from collections.abc import Callable, Iterable

import pytest
from django.core.mail import EmailMessage
from pytest_django import Settings

from tests.monitor.core.egress.test_client import Script, scripted
from tests.monitor.core.egress.test_one_client import MONITOR, imported
from tests.monitor.receivers import mailbox

SECONDS = 0.5
TO_HELO = (b"220 mail\r\n", b"250 mail\r\n")
TO_DATA = (*TO_HELO, b"250 ok\r\n", b"250 ok\r\n", b"354 go on\r\n")


def send() -> int:
    return EmailMessage("Subject", "Text", "grid@example.org", ["ada@example.org"]).send()


def says(lines: Iterable[bytes], *, then: Callable[[socket.socket], None]) -> Script:
    """Say *lines*, each after a command of the client, and then *then*."""

    def script(channel: socket.socket, _: threading.Event) -> None:
        with channel.makefile("rb") as commands:
            for number, line in enumerate(lines):
                if number:
                    commands.readline()
                channel.sendall(line)
            then(channel)

    return script


def hang(channel: socket.socket) -> None:
    """Read until the client ends the connection."""
    while channel.recv(1024):
        pass


def trickle(channel: socket.socket) -> None:
    """Send bytes of a line that never ends until the client ends the connection."""
    pause = threading.Event()
    while True:
        channel.sendall(b"2")
        pause.wait(SECONDS / 10)


def hang_after_the_mail(channel: socket.socket) -> None:
    with channel.makefile("rb") as lines:
        for _ in iter(lines.readline, b".\r\n"):
            pass
        channel.sendall(b"250 accepted\r\n")
        hang(channel)


TLS_RECORD = b"\x16\x03\x03\x3f\xff"  # its head: 16 KiB of a handshake follow
STARTTLS = (b"220 mail\r\n", b"250-mail\r\n250 STARTTLS\r\n", b"220 go on\r\n")
PLAIN = {"EMAIL_USE_SSL": False, "EMAIL_USE_TLS": False}
TLS, START = {**PLAIN, "EMAIL_USE_SSL": True}, {**PLAIN, "EMAIL_USE_TLS": True}
CASES = {
    "greeting": (says([], then=hang), PLAIN),
    "greeting trickles": (says([], then=trickle), PLAIN),
    "answer to HELO trickles": (says(TO_HELO[:1], then=trickle), PLAIN),
    "answer to RCPT": (says(TO_DATA[:3], then=hang), PLAIN),
    "answer to the text": (says(TO_DATA, then=hang), PLAIN),
    "TLS": (says([], then=hang), TLS),
    "TLS trickles": (says([TLS_RECORD], then=trickle), TLS),
    "STARTTLS": (says(STARTTLS, then=hang), START),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mail_server_that_hangs_is_left_in_time(case: str, settings: Settings) -> None:
    """``scripted`` ends only when the server has seen the end of the connection."""
    script, options = CASES[case]
    settings.EMAIL_BACKEND, settings.EMAIL_TIMEOUT = "monitor.core.egress.mail.EmailBackend", SECONDS
    for name, value in options.items():
        setattr(settings, name, value)
    with scripted(script) as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.host, server.port
        with pytest.raises(OSError, match=r"within 0.5 s|timed out"):
            send()


def test_a_name_that_is_not_resolved_is_left_in_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, looked_up, resolve = threading.Event(), threading.Event(), socket.getaddrinfo

    def hanging(*args: object, **options: object) -> object:
        over.wait()
        looked_up.set()
        return resolve("127.0.0.1", 1)

    settings.EMAIL_BACKEND, settings.EMAIL_TIMEOUT = "monitor.core.egress.mail.EmailBackend", SECONDS
    settings.EMAIL_HOST = "mail.example.org"
    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    try:
        with pytest.raises(TimeoutError, match=r"no answer within 0.5 s"):
            send()
    finally:
        over.set()
    assert looked_up.wait(10), "the thread that waited for it goes on, and ends"


def test_a_mail_that_was_accepted_is_sent_although_the_server_then_hangs(settings: Settings) -> None:
    settings.EMAIL_BACKEND, settings.EMAIL_TIMEOUT = "monitor.core.egress.mail.EmailBackend", SECONDS
    with scripted(says(TO_DATA, then=hang_after_the_mail)) as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.host, server.port
        assert send() == 1


def test_refusals_are_those_of_the_server() -> None:
    with mailbox() as server:
        server.mode = "refuses"
        with pytest.raises(smtplib.SMTPRecipientsRefused, match="no such user here"):
            send()


def test_all_mail_goes_out_in_one_way(settings: Settings) -> None:
    """A further room that sends mail must not do so in a request, or beside the backend with the bound."""
    rooms = {
        str(file.relative_to(MONITOR))
        for file in MONITOR.rglob("*.py")
        if any(name.startswith(("smtplib", "django.core.mail")) for name in imported(file))
    }
    assert rooms == {
        "web/accounts/mail.py",  # stores the mails of requests, and sends them in the control worker
        "analysis/alerts/channels/email.py",  # is asked by the control worker
        "core/egress/mail.py",
    }
