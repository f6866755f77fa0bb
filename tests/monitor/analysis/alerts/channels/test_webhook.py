"""A webhook posts JSON to one URL and no other, signed if the rule names a secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest

from monitor.analysis.alerts import channels
from monitor.analysis.alerts.channels.base import NotDelivered
from tests.contracts.test_notifiers import OPENED
from tests.monitor.receivers import REFUSES, Hook, hook


@pytest.fixture
def server() -> Iterator[Hook]:
    with hook() as running_hook:
        yield running_hook


def test_the_body_is_json_with_every_field(server: Hook) -> None:
    channels.notifier(server.channel).send(OPENED)
    ((headers, body),) = server.requests
    assert headers["Content-Type"] == "application/json"
    content = json.loads(body)
    assert (content["type"], content["timestamp"]) == ("alert.opened", "2026-03-01T12:00:00+00:00")
    assert content["data"] == {
        "id": "notification-1",
        "event": "opened",
        "rule": "three-in-a-row",
        "severity": "",
        "series": "circle-main",
        "reporter": "",
        "text": OPENED.text,
        "since": "2026-03-01T12:00:00+00:00",
        "at": "2026-03-01T12:00:00+00:00",
        "url": "https://gridcast.example.org/alerts/",
        "incident": 12,
        "cause": "No space left on the device, at a",
        "open_alerts": 3,
    }


def test_a_secret_of_the_environment_signs_the_message(server: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 32).decode()
    monkeypatch.setenv("GRIDCAST_WEBHOOK_OPS", secret)
    channels.notifier({**server.channel, "secret_variable": "GRIDCAST_WEBHOOK_OPS"}).send(OPENED)
    ((headers, body),) = server.requests
    signed = f"notification-1.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(b"k" * 32, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["webhook-id"] == "notification-1"


def test_a_message_is_not_sent_unsigned_when_its_secret_is_missing(server: Hook) -> None:
    channel = {**server.channel, "secret_variable": "GRIDCAST_WEBHOOK_NOWHERE"}
    with pytest.raises(NotDelivered, match="GRIDCAST_WEBHOOK_NOWHERE is not set"):
        channels.notifier(channel).send(OPENED)
    assert not server.requests


@pytest.mark.parametrize("name", ["GRIDCAST_SECRET_KEY", "DATABASE_URL", "GRIDCAST_WEBHOOK_", "HOME"])
def test_no_other_variable_of_the_environment_is_used_as_a_secret(name: str) -> None:
    channel = {"kind": "webhook", "url": "https://hooks.example.org/", "secret_variable": name}
    ((path, message),) = channels.faults(channel)
    assert path == ("secret_variable",)
    assert message.startswith("expected a name such as GRIDCAST_WEBHOOK_SECRET")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: Hook, status: int) -> None:
    with hook() as other:
        server.mode, server.answer = REFUSES, (status, {"Location": f"http://{other.address}/"})
        with pytest.raises(NotDelivered, match=f"answered {status}, a redirect to .* not followed"):
            channels.notifier(server.channel).send(OPENED)
        assert not other.requests


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org",
        "//example.org/",
        "https://",
        "https://example.org:port/",
        "https://example.org:0/",
        "https://[::1/",
        "https://ada:secret@example.org/",
        "http://example.org/a b",
        "http://example.org/\r\nX: y",
        "https://münchen.example/",
    ],
)
def test_an_invalid_url_is_refused(url: str) -> None:
    ((path, message),) = channels.faults({"kind": "webhook", "url": url})
    assert (path, message[:8]) == (("url",), "expected")


def test_an_error_does_not_show_the_path_which_may_be_a_secret(server: Hook) -> None:
    channel: dict[str, Any] = {"kind": "webhook", "url": f"http://{server.address}/services/t0ken?key=t0ken"}
    server.mode = REFUSES
    with pytest.raises(NotDelivered) as refused:
        channels.notifier(channel).send(OPENED)
    assert "t0ken" not in str(refused.value)


def test_an_internal_address_is_refused_unless_the_settings_allow_it(server: Hook, settings: Any) -> None:
    settings.GRIDCAST_INTERNAL_WEBHOOK_HOSTS = frozenset()
    with pytest.raises(NotDelivered, match=r"127.0.0.1 has the loopback address .* GRIDCAST_INTERNAL"):
        channels.notifier(server.channel).send(OPENED)
    assert server.requests == []
