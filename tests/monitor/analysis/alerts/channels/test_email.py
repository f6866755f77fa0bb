"""Mail goes to every address of the rule, by the server and from the address of the environment."""

from __future__ import annotations

import email
from typing import Any

import pytest
from django.test import override_settings

from monitor.analysis.alerts import channels
from monitor.analysis.alerts.channels.base import NotDelivered
from monitor.core import env
from monitor.core.mail_server import parse_email_url
from tests.contracts.test_notifiers import OPENED
from tests.monitor.receivers import mailbox


def test_the_subject_of_a_mail_names_event_and_series() -> None:
    with mailbox() as server, override_settings(DEFAULT_FROM_EMAIL="grid@example.org"):
        channels.notifier(server.channel).send(OPENED)
        ((recipients, content),) = server.mails
    mail = email.message_from_bytes(content, policy=email.policy.default)
    assert recipients == ["<ada@example.org>", "<bob@example.org>"]
    assert mail["Subject"].strip() == f"[gridcast] alert: circle-main (and 2 more): {OPENED.text}"
    assert (mail["From"], mail["Auto-Submitted"]) == ("grid@example.org", "auto-generated")
    assert mail["Message-ID"] == "<notification-1@gridcast>"
    assert "https://gridcast.example.org/alerts/" in mail.get_content()


def test_without_a_server_the_error_names_the_missing_variable() -> None:
    with override_settings(EMAIL_HOST=""), pytest.raises(NotDelivered, match="GRIDCAST_EMAIL_URL is not set"):
        channels.notifier({"kind": "email", "to": ["ada@example.org"]}).send(OPENED)


@pytest.mark.parametrize("to", [[], ["ada"], ["ada@example.org", "a@b\nBcc: c@example.org"]])
def test_an_invalid_address_is_refused(to: list[str]) -> None:
    ((path, message),) = channels.faults({"kind": "email", "to": to})
    assert (path, message[:8]) == (("to",), "expected")


@pytest.mark.parametrize(
    ("url", "means"),
    [
        ("", {"host": ""}),
        ("smtp://mail", {"host": "mail", "port": 25, "tls": False, "starttls": False, "user": ""}),
        ("smtp+starttls://mail", {"port": 587, "tls": False, "starttls": True}),
        (
            "smtps://ada:s%40fe@mail.example.org:4650?from=grid%40example.org",
            {"port": 4650, "tls": True, "user": "ada", "password": "s@fe", "sender": "grid@example.org"},
        ),
    ],
)
def test_one_variable_describes_the_mail_server(url: str, means: dict[str, Any]) -> None:
    assert means.items() <= vars(parse_email_url(url)).items()


@pytest.mark.parametrize("url", ["mail.example.org", "http://mail", "smtp://", "smtp://mail:0x19"])
def test_an_invalid_mail_server_is_refused_with_the_name_of_its_variable(url: str) -> None:
    with pytest.raises(env.InvalidVariable, match="GRIDCAST_EMAIL_URL: expected"):
        parse_email_url(url)
