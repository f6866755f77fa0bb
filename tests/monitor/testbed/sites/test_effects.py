"""Effects of drawn conditions on sites, sessions and links."""

from __future__ import annotations

import pytest

from monitor.testbed.sites.effects import (
    IncomingLink,
    Terrain,
    fault_of,
    incoming_link,
    program_seconds,
    session_environment,
)
from monitor.testbed.weather.conditions import Conditions, SiteFault

SECONDS = {
    "login": 40.0,
    "disk": 20.0,
    "compile": 10.0,
    "inbound": 8.0,
    "queue": 80.0,
    "compute": 18.0,
    "outbound": 16.0,
    "unlink": 4.0,
}
TERRAIN = Terrain(
    scale=2.0, reference_file_bytes=1_000_000, reference_result_bytes=5_000_000, sources=(0, 1, 2, 3, 4)
)
COMPUTE, DESTINATION = 5, 6


def drawn(slowest: int = 1, fault: SiteFault | None = None) -> Conditions:
    return Conditions(
        index=3,
        seconds=SECONDS,
        slowest_site=dict.fromkeys(SECONDS, slowest),
        others_fraction=0.5,
        fault=fault,
    )


@pytest.mark.parametrize(
    ("mechanism", "slowest", "site", "seconds"),
    [
        pytest.param("login", 1, 1, 20.0, id="the slowest site takes the drawn time, scaled"),
        pytest.param("login", 1, 2, 10.0, id="other sites take their fraction"),
        pytest.param("disk", 6, 1, 10.0, id="a site that is no source cannot be the slowest source"),
        pytest.param("disk", 6, 2, 5.0, id="other sources take the fraction"),
        pytest.param("login", 6, 6, 20.0, id="any site can be slow to log in to"),
    ],
)
def test_the_drawn_seconds_belong_to_the_slowest_site(
    mechanism: str, slowest: int, site: int, seconds: float
) -> None:
    assert TERRAIN.seconds(drawn(slowest), mechanism, site) == pytest.approx(seconds)


def test_the_environment_of_a_session_has_the_seconds_of_its_site() -> None:
    assert session_environment(drawn(), 1, program_seconds(drawn(), 1, TERRAIN)) == {
        "SITE_DISK_SECONDS": "10.000",
        "SITE_COMPILE_SECONDS": "5.000",
        "SITE_UNLINK_SECONDS": "2.000",
        "SITE_QUEUE_SECONDS": "40.000",
        "SITE_COMPUTE_SECONDS": "9.000",
    }


def test_the_environment_of_a_session_has_faults_of_its_site_only() -> None:
    weather = drawn(fault=SiteFault(2, "disk", "full"))
    assert session_environment(weather, 2, {})["SITE_DISK_FAULT"] == "full"
    assert "SITE_DISK_FAULT" not in session_environment(weather, 3, {})


@pytest.mark.parametrize("mechanism", ["compile", "queue", "compute", "outbound"])
def test_faults_of_computing_apply_at_every_compute_site(mechanism: str) -> None:
    assert fault_of(drawn(fault=SiteFault(2, mechanism, "kind")), mechanism, COMPUTE) == "kind"


@pytest.mark.parametrize(
    ("sender", "receiver", "computed_at", "link"),
    [
        pytest.param(
            1, COMPUTE, None, IncomingLink(250_000.0, None), id="the slowest source is as slow as drawn"
        ),
        pytest.param(2, COMPUTE, None, IncomingLink(500_000.0, None), id="the other sources are faster"),
        pytest.param(
            None, 1, None, IncomingLink(250_000.0, None), id="from outside the link of the receiver counts"
        ),
        pytest.param(
            COMPUTE,
            DESTINATION,
            COMPUTE,
            IncomingLink(625_000.0, None, "outbound"),
            id="a result travels outbound",
        ),
        pytest.param(
            COMPUTE,
            DESTINATION,
            None,
            IncomingLink(500_000.0, None),
            id="a ring passes the compute site as any other",
        ),
    ],
)
def test_the_rate_of_a_link_depends_on_its_ends_and_its_file(
    sender: int | None, receiver: int, computed_at: int | None, link: IncomingLink
) -> None:
    weather = Conditions(**{**vars(drawn()), "slowest_site": {**drawn().slowest_site, "outbound": COMPUTE}})
    assert incoming_link(weather, TERRAIN, sender=sender, receiver=receiver, computed_at=computed_at) == link


@pytest.mark.parametrize(
    ("fault", "sender", "receiver", "computed_at", "kind"),
    [
        pytest.param(SiteFault(1, "inbound", "reset"), 1, COMPUTE, None, "reset", id="the sender is cut off"),
        pytest.param(SiteFault(1, "inbound", "reset"), 0, 1, None, "reset", id="the receiver is cut off"),
        pytest.param(SiteFault(1, "inbound", "reset"), 0, 2, None, None, id="other links are not affected"),
        pytest.param(
            SiteFault(5, "outbound", "stall"), COMPUTE, DESTINATION, COMPUTE, "stall", id="a result"
        ),
        pytest.param(SiteFault(5, "outbound", "stall"), COMPUTE, DESTINATION, None, None, id="no result"),
    ],
)
def test_a_fault_breaks_the_links_of_its_site(
    fault: SiteFault, sender: int, receiver: int, computed_at: int | None, kind: str | None
) -> None:
    link = incoming_link(
        drawn(fault=fault), TERRAIN, sender=sender, receiver=receiver, computed_at=computed_at
    )
    assert link.fault == kind
