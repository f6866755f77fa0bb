"""Mail goes to all of its addresses, from the one that the environment says, by the server that it names."""

from __future__ import annotations

import email
from typing import Any

import pytest
from django.test import override_settings

from monitor import env
from monitor.alerts import channels
from monitor.alerts.channels.base import NotDelivered
from tests.contracts.test_notifiers import OPENED
from tests.monitor.receivers import mailbox


def test_a_mail_says_what_it_is_about_in_its_subject() -> None:
    with mailbox() as server, override_settings(DEFAULT_FROM_EMAIL="grid@example.org"):
        channels.made(server.channel).send(OPENED)
        ((recipients, content),) = server.mails
    mail = email.message_from_bytes(content, policy=email.policy.default)
    assert recipients == ["<ada@example.org>", "<bob@example.org>"]
    assert mail["Subject"].strip() == f"[gridcast] alert: circle-main: {OPENED.text}"
    assert (mail["From"], mail["Auto-Submitted"]) == ("grid@example.org", "auto-generated")
    assert mail["Message-ID"] == "<notification-1@gridcast>"
    assert "https://gridcast.example.org/alerts/" in mail.get_content()


def test_without_a_server_it_says_which_variable_is_missing() -> None:
    with override_settings(EMAIL_HOST=""), pytest.raises(NotDelivered, match="GRIDCAST_EMAIL_URL is not set"):
        channels.made({"kind": "email", "to": ["ada@example.org"]}).send(OPENED)


@pytest.mark.parametrize("to", [[], ["ada"], ["ada@example.org", "a@b\nBcc: c@example.org"]])
def test_an_address_that_is_none_is_refused(to: list[str]) -> None:
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
def test_the_server_is_one_variable(url: str, means: dict[str, Any]) -> None:
    assert means.items() <= vars(env.parse_email_url(url)).items()


@pytest.mark.parametrize("url", ["mail.example.org", "http://mail", "smtp://", "smtp://mail:0x19"])
def test_a_server_that_is_none_is_refused_by_the_name_of_its_variable(url: str) -> None:
    with pytest.raises(env.InvalidVariable, match="GRIDCAST_EMAIL_URL: expected"):
        env.parse_email_url(url)
