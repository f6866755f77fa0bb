"""The transfers of a run: links of each topology, what was measured, and their drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from monitor.analysis.performance.expected_durations import ExpectedDuration
from monitor.web.charts.run_transfers import run_transfers
from monitor.web.charts.run_waterfall import duration_bar
from monitor.web.charts.transfer_svg import MOST_NODES, transfer_svg
from reporters import report as wire

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
RING = {"ring": ["a-login", "b-login", "c-login"]}
FAN_IN = {"sources": ["a-login", "b-login"], "compute": ["c-login"], "destination": ["d-login"]}


def report(
    bindings: dict[str, list[str]], metrics: dict[str, float], category: str = "transfer"
) -> wire.Report:
    return wire.Report(
        run=wire.run_id("any", NOON),
        series="any",
        slot=NOON,
        reporter="home",
        probe=wire.ProbeIdentity("circle", "1.0", ""),
        parameters={},
        started_at=NOON,
        seconds=5.0,
        outcome="passed",
        reason="",
        stages=(wire.StageTiming("copy", category, 5.0, 0.0),),
        metrics=[wire.MetricValue(name, value, "seconds") for name, value in metrics.items()],
        failure=None,
        log=(),
        environment=wire.Environment("ui", "Linux", "3.11"),
        clock=wire.Clock(NOON + timedelta(seconds=6), synchronised=True),
        bindings=bindings,
        usage={},
    )


@pytest.mark.parametrize(
    ("bindings", "links"),
    [
        (RING, [("a-login", "b-login"), ("b-login", "c-login"), ("c-login", "a-login")]),
        (FAN_IN, [("a-login", "c-login"), ("b-login", "c-login"), ("c-login", "d-login")]),
        (
            {"source": ["a-login"], "compute": ["c-login"], "destination": ["d-login"]},
            [("a-login", "c-login"), ("c-login", "d-login")],
        ),
    ],
)
def test_the_links_follow_from_the_roles(
    bindings: dict[str, list[str]], links: Sequence[tuple[str, str]]
) -> None:
    shown = run_transfers(report(bindings, {}))
    assert shown is not None
    assert [(each.source, each.target) for each in shown.transfers] == links
    assert not shown.is_measured


def test_a_probe_without_transfers_has_none() -> None:
    assert run_transfers(report({"hosts": ["a-login"]}, {})) is None
    assert run_transfers(report(RING, {}, category="compute")) is None


def test_a_hop_has_its_duration_rate_and_checksum() -> None:
    hop = "hop.2.b-login-c-login"
    names = ("seconds", "bytes_per_second", "checksum.seconds", "retries")
    shown = run_transfers(report(RING, {f"{hop}.{name}": at for at, name in enumerate(names, start=1)}))
    assert shown is not None
    first, second, _ = shown.transfers
    assert (second.seconds, second.bytes_per_second, second.checksum_seconds, second.retries) == (1, 2, 3, 4)
    assert first.seconds is None
    assert [bar is None for _, bar in shown.bars({})] == [True, False, True]


@pytest.mark.parametrize("bindings", [RING, FAN_IN])
def test_a_drawing_names_sites_escapes_them_and_marks_the_failed_resource(
    bindings: dict[str, list[str]],
) -> None:
    failed = replace(report(bindings, {}), failure=wire.Failure("copy", "b-login", "refused"))
    shown = run_transfers(failed)
    assert shown is not None
    svg = transfer_svg(shown, {"a-login": "<ncsa>"})
    assert "&lt;ncsa&gt;" in svg
    assert svg.count('class="node failed"') == 1


@pytest.mark.parametrize(("stage", "target"), [("copy", "b-login"), ("compute", "")])
def test_no_transfer_has_failed_if_another_stage_did(stage: str, target: str) -> None:
    failed = replace(report(FAN_IN, {}), failure=wire.Failure(stage, "b-login", "refused"))
    shown = run_transfers(failed)
    assert shown is not None
    assert (shown.failed_resource, shown.failed_target) == ("b-login", target)


def test_a_ring_that_cannot_be_labelled_is_not_drawn() -> None:
    ring = [f"r{number}" for number in range(MOST_NODES + 1)]
    shown = run_transfers(report({"ring": ring}, {}))
    assert shown is not None
    assert transfer_svg(shown, {}) == ""


@pytest.mark.parametrize(
    ("seconds", "deviation", "direction"),
    [
        (1.0, "", ""),
        (1.24, "", ""),
        (2.0, "2 \N{MULTIPLICATION SIGN} median", "slow"),
        (0.5, "0.5 \N{MULTIPLICATION SIGN} median", "fast"),
    ],
)
def test_a_duration_far_outside_of_the_expected_range_is_marked(
    seconds: float, deviation: str, direction: str
) -> None:
    bar = duration_bar(seconds, 4.0, ExpectedDuration(0.9, 1.0, 1.1, 50))
    assert (bar.deviation, bar.direction) == (deviation, direction)
    assert bar.range_text == "0.9 to 1.1 s"
