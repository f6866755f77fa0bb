"""The contract of every channel, over real servers: it delivers, or reports why it could not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import override_settings

from monitor.analysis.alerts import channels
from monitor.analysis.alerts.channels.base import InvalidOptions, Message, NotDelivered, UnknownChannel
from tests.monitor.receivers import RECEIVERS, REFUSES, Receiver

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OPENED = Message(
    id="notification-1",
    event="opened",
    rule="three-in-a-row",
    series="circle-main",
    text="3 consecutive failures; latest: failed: no space left at Zürich",
    since=NOON,
    at=NOON,
    url="https://gridcast.example.org/alerts/",
    incident=12,
    cause="No space left on the device, at a",
    open_alerts=3,
)

every_channel = pytest.mark.parametrize("kind", channels.names())
every_channel_with_a_remote_receiver = pytest.mark.parametrize(
    "kind", [kind for kind in channels.names() if kind != "log"]
)


@pytest.fixture
def receiver(kind: str) -> Iterator[Receiver]:
    with RECEIVERS[kind]() as running:
        yield running


def nowhere(channel: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return *channel* with a port that nothing listens on, and that port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return {**channel, **({"url": f"http://127.0.0.1:{port}/"} if "url" in channel else {})}, f":{port}"


@every_channel
def test_every_channel_has_a_receiver_to_test_it(kind: str) -> None:
    assert kind in RECEIVERS


@every_channel
def test_a_message_arrives_once_with_every_field(kind: str, receiver: Receiver) -> None:
    channels.notifier(receiver.channel).send(OPENED)
    (received,) = receiver.received()
    for part in ("circle-main", "three-in-a-row", "3 consecutive failures", "opened"):
        assert part in received.lower()


@every_channel
def test_opened_and_closed_differ(kind: str, receiver: Receiver) -> None:
    channels.notifier(receiver.channel).send(replace(OPENED, event="closed", text="passed"))
    assert "closed" in receiver.received()[0].lower()


@every_channel
def test_markup_and_control_characters_in_a_text_stay_text(kind: str, receiver: Receiver) -> None:
    text = 'said\r\nBcc: eve@example.org\r\n.\r\nQUIT\r\n"}%s{0} \x1b[31m'
    channels.notifier(receiver.channel).send(replace(OPENED, text=text))
    (received,) = receiver.received()
    assert "eve@example.org" in received


@every_channel_with_a_remote_receiver
def test_a_refusal_is_reported_with_the_answer_of_the_receiver(kind: str, receiver: Receiver) -> None:
    receiver.mode = REFUSES
    with pytest.raises(NotDelivered, match=r"no such user here|503: come back later") as refused:
        channels.notifier(receiver.channel).send(OPENED)
    assert receiver.address in str(refused.value)
    assert not receiver.received()


@every_channel_with_a_remote_receiver
def test_an_unreachable_receiver_is_reported_with_its_address(kind: str, receiver: Receiver) -> None:
    channel, port = nowhere(dict(receiver.channel))
    with (
        override_settings(EMAIL_PORT=int(port[1:])),
        pytest.raises(NotDelivered, match=rf"127.0.0.1{port}: .*refused"),
    ):
        channels.notifier(channel).send(OPENED)


@every_channel
def test_an_unknown_option_is_refused(kind: str, receiver: Receiver) -> None:
    faults = list(channels.faults({**receiver.channel, "colour": "red"}))
    assert [path for path, _ in faults] == [("colour",)]
    with pytest.raises(InvalidOptions, match=f"colour: {kind} has no option 'colour'"):
        channels.notifier({**receiver.channel, "colour": "red"})


@every_channel
def test_an_option_of_another_type_is_refused(kind: str, receiver: Receiver) -> None:
    for option in channels.load(kind).option_types:
        assert [path for path, _ in channels.faults({**receiver.channel, option: 7})] == [(option,)]


def test_an_unknown_channel_imports_no_module() -> None:
    for kind in ("pigeon", "base", "../email", "os"):
        with pytest.raises(UnknownChannel, match=r"known are email, log.*, webhook"):
            channels.load(kind)


@pytest.mark.parametrize("channel", [None, "log", [], {}, {"kind": 1}, {"to": ["ada@example.org"]}])
def test_a_value_that_is_no_channel_is_refused(channel: Any) -> None:
    assert [path for path, _ in channels.faults(channel)] == [()]
