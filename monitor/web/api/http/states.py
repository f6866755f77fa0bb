"""The state of a site or resource in an answer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ninja import Schema
from pydantic import Field

from monitor.analysis.availability.site_states import OperationalState

if TYPE_CHECKING:
    from monitor.analysis.availability.site_states import CurrentState, StateReason


class StateReasonOut(Schema):
    """What prevents runs at a site or resource."""

    state: OperationalState = Field(description="The state that it causes.", examples=["maintenance"])
    since: datetime = Field(description="When it began.", examples=["2026-03-01T08:00:00Z"])
    until: datetime | None = Field(
        description="When it ends by itself; null if that is not known.", examples=["2026-03-02T08:00:00Z"]
    )
    resource: str | None = Field(
        description="The resource that fails; null if the whole site is affected.", examples=["ncsa-login"]
    )
    text: str = Field(
        description="The reason in words.", examples=["the site ncsa is closed, maintenance: new disks"]
    )


class WithState(Schema):
    """The present state of a site or resource. Only a change of it changes the answer, and its `ETag`."""

    state: OperationalState = Field(
        description=(
            "`up`: runs may start. `maintenance`: a window is open. `held`: a user paused the site."
            " `down`: the newest runs, at least three, failed there. `unknown`: no run passed or failed there"
            " in two days. Runs count if you may see their series."
        ),
        examples=["up"],
    )
    since: datetime | None = Field(
        description=(
            "When the state began. Of `up`: when a run failed there, or maintenance or a hold ended, for the"
            " last time; null if none is known. Null of `unknown`."
        ),
        examples=["2026-03-01T08:00:00Z"],
    )
    until: datetime | None = Field(
        description="When the state ends by itself; null if that is not known.",
        examples=["2026-03-02T08:00:00Z"],
    )
    reasons: list[StateReasonOut] = Field(
        description="What prevents runs. A site that is up has reasons if one of its resources is down."
    )


def state_fields(current: CurrentState) -> dict[str, Any]:
    """Return the fields of ``WithState``."""
    return {
        "state": current.state.value,
        "since": current.since,
        "until": current.until,
        "reasons": [_reason(reason) for reason in current.reasons],
    }


def _reason(reason: StateReason) -> dict[str, Any]:
    return {
        "state": reason.state.value,
        "since": reason.since,
        "until": reason.until,
        "resource": reason.resource or None,
        "text": reason.text,
    }
