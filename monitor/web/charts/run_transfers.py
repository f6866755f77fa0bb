"""The transfers of one run: round the ring of Circle, or from the sources of Gather and PreCo. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.web.charts.run_waterfall import DurationBar, duration_bar

if TYPE_CHECKING:
    from monitor.analysis.performance.expected_durations import ExpectedDuration
    from reporters.report import Report

RING, FAN_IN = "ring", "fan-in"


@dataclass(frozen=True)
class RunTransfer:
    """A file from the resource *source* to *target*; what was not measured is None.

    Attributes:
        metric: the beginning of the names of its metrics.
        checksum_seconds: the time to verify the file at *target*.
    """

    metric: str
    source: str
    target: str
    seconds: float | None = None
    bytes_per_second: float | None = None
    checksum_seconds: float | None = None
    retries: float | None = None


@dataclass(frozen=True)
class RunTransfers:
    """All transfers of a run, in order, and their *shape*: ``ring`` or ``fan-in``.

    Attributes:
        failed_resource: where the run failed, in any stage; empty if it did not.
        failed_target: where a transfer failed; empty if the run failed in another stage.
    """

    shape: str
    transfers: Sequence[RunTransfer]
    failed_resource: str = ""
    failed_target: str = ""

    @property
    def has_checksums(self) -> bool:
        return any(each.checksum_seconds is not None for each in self.transfers)

    @property
    def is_measured(self) -> bool:
        return any(each.seconds is not None for each in self.transfers)

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics of the durations."""
        return [f"{each.metric}.seconds" for each in self.transfers]

    def bars(self, expected: Mapping[str, ExpectedDuration]) -> list[tuple[RunTransfer, DurationBar | None]]:
        """Return each transfer with its bar; None for one that has no duration."""
        ranges = {name: expected[name] for name in self.metrics if name in expected}
        seconds = [each.seconds for each in self.transfers if each.seconds is not None]
        whole = max([*seconds, *(each.high for each in ranges.values()), 1e-9])
        return [
            (
                each,
                None
                if each.seconds is None
                else duration_bar(each.seconds, whole, ranges.get(f"{each.metric}.seconds")),
            )
            for each in self.transfers
        ]


def run_transfers(report: Report) -> RunTransfers | None:
    """Return the transfers of a run by a probe that copies files between sites; None for other probes."""
    bindings = report.bindings
    if "ring" in bindings:
        shape, links = RING, list(_hops(bindings["ring"]))
    elif "compute" in bindings and "destination" in bindings:
        shape, links = FAN_IN, list(_fan_in(bindings))
    else:
        return None
    values = {metric.name: metric.value for metric in report.metrics}
    transfers = [_measured(values, *link) for link in links]
    failed = (report.failure.resource or "") if report.failure else ""
    of_transfer = {stage.name for stage in report.stages if stage.category == "transfer"}
    if not of_transfer or len(transfers) < 2:
        return None
    is_of_transfer = report.failure is not None and report.failure.stage in of_transfer
    return RunTransfers(shape, transfers, failed, failed if is_of_transfer else "")


def _hops(ring: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the links as Circle names their metrics (``probes.circle.Hop``)."""
    for number, (source, target) in enumerate(zip(ring, [*ring[1:], *ring[:1]], strict=True), start=1):
        yield f"hop.{number}.{source}-{target}", source, target


def _fan_in(bindings: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield the links as Gather and PreCo name their metrics."""
    compute = bindings["compute"][0]
    for source in bindings.get("sources", ()):
        yield f"transfer.{source}", source, compute
    for source in bindings.get("source", ()):
        yield "transfer", source, compute
    for destination in bindings["destination"]:
        yield "transfer.results", compute, destination


def _measured(values: Mapping[str, float], metric: str, source: str, target: str) -> RunTransfer:
    return RunTransfer(
        metric,
        source,
        target,
        values.get(f"{metric}.seconds"),
        values.get(f"{metric}.bytes_per_second"),
        values.get(f"{metric}.checksum.seconds"),
        values.get(f"{metric}.retries"),
    )
