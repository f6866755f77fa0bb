"""A channel gets one message when an incident opens, and one when it ends."""

from __future__ import annotations

import pytest

from monitor.analysis.alerts.announcements import ChannelState, Handling, decide
from monitor.models.alert import Event

OPENED, CLOSED = Event.OPENED, Event.CLOSED


@pytest.mark.parametrize(
    ("event", "state", "handling"),
    [
        (OPENED, ChannelState(), Handling.SEND),
        (OPENED, ChannelState(open_alerts=3), Handling.SEND),  # alerts whose messages are not due yet
        (OPENED, ChannelState(openings=1, open_alerts=1), Handling.WITHHOLD),
        (
            OPENED,
            ChannelState(openings=1, closings=1),
            Handling.SEND,
        ),  # the incident goes on with another alert
        (OPENED, ChannelState(retried=1), Handling.WAIT),
        (OPENED, ChannelState(given_up=1), Handling.SEND),  # perhaps this attempt is accepted
        (CLOSED, ChannelState(openings=1), Handling.SEND),
        (CLOSED, ChannelState(openings=1, open_alerts=1), Handling.WITHHOLD),
        (CLOSED, ChannelState(openings=1, closings=1), Handling.WITHHOLD),
        (CLOSED, ChannelState(openings=2, closings=1), Handling.SEND),
        (CLOSED, ChannelState(given_up=1), Handling.SEND),
        (CLOSED, ChannelState(), Handling.WITHHOLD),  # its opening was withheld
    ],
)
def test_openings_and_closings_alternate(event: str, state: ChannelState, handling: Handling) -> None:
    assert decide(event, state).handling is handling


def test_no_alert_is_told_after_a_user_has_acknowledged_the_incident_but_its_end_is() -> None:
    assert decide(OPENED, ChannelState(), settled="ann has it") == (Handling.WITHHOLD, "ann has it")
    assert decide(CLOSED, ChannelState(openings=1), settled="ann has it").handling is Handling.SEND
