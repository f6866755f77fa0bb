"""Ping-pong: measure latency and bandwidth between two resources for a range of message sizes.

A client sends a message over a TCP connection, and the server returns the message. The time of one message is
half of the round trip. Sizes double from the smallest to the largest. The result for a size is the median of
its times, because on a shared network single messages take many times as long as the others.

Hockney's model t(n) = l + n / b summarises the medians: t is the time of a message of size n, l the start-up
time and b the asymptotic bandwidth (R. W. Hockney, "The communication challenge for MPP: Intel Paragon and
Meiko CS-2", Parallel Computing 20 (1994) 389-398). The fit minimises the squares of relative errors (weights
1 / t^2): with absolute errors the largest messages would dominate.

The server listens on an open port of a shared host, so the server serves only one client, which must send a
random secret. The secret is stored in the private scratch directories of both ends and appears on no command
line.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from probes.base import (
    InvalidParameters,
    Measurement,
    Parameter,
    ProbeFailed,
    Role,
    RunPlan,
    Stage,
    in_parallel,
)
from probes.common import checks, files, kernels
from probes.grid import Grid, Location

READY_SECONDS = 30.0
MEASURE_TIMEOUT_SECONDS = 1800.0
_SECRET_BYTES = 16  # the kernel reads 32 hexadecimal digits
_LARGEST_BYTES = 2**30


@dataclass(frozen=True)
class Timing:
    """The times of messages of one size: the median and the minimum of *repetitions* half round trips."""

    size_bytes: int
    repetitions: int
    median_seconds: float
    fastest_seconds: float


@dataclass(frozen=True)
class Fit:
    """Hockney's model, fitted to the medians.

    Attributes:
        latency_seconds: the start-up time l.
        bytes_per_second: the asymptotic bandwidth b.
        error: the root mean square of the relative errors.
    """

    latency_seconds: float
    bytes_per_second: float
    error: float


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Measures latency and bandwidth between two resources by messages over TCP."
    roles = {
        "client": Role(1, 1, "connects and measures"),
        "server": Role(1, 1, "listens on a port that the client can reach"),
    }
    parameters = {
        "min_bytes": Parameter(1, "size of the smallest message, bytes", 1, _LARGEST_BYTES),
        "max_bytes": Parameter(4_194_304, "size of the largest message, bytes", 1, _LARGEST_BYTES),
        "repetitions": Parameter(100, "number of messages of each size", 3, 100_000),
        "most_bytes": Parameter(10_000_000, "maximum total of the messages of one size, bytes", 1, 1e12),
        "port": Parameter(0, "port that the server listens on; 0 for any", 0, 65535),
    }
    trial = {"max_bytes": 65_536, "repetitions": 10}
    stages = (
        Stage("init", "setup"),
        Stage("build_executable", "setup"),
        Stage("exchange", "transfer"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.client, self.server = plan.resource("client"), plan.resource("server")
        self.port = plan.integer("port")
        self.sizes = [
            str(plan.integer(name)) for name in ("min_bytes", "max_bytes", "repetitions", "most_bytes")
        ]
        if plan.integer("min_bytes") > plan.integer("max_bytes"):
            raise InvalidParameters("max_bytes: the largest message is smaller than the smallest")

    def init(self) -> None:
        ends = (self.client, self.server)
        checks.check_resources(self.grid, {end: checks.Needs(1_000_000, ("cc",)) for end in ends})
        self.address = self.grid.address(self.server)

    def build_executable(self) -> None:
        ends = list(dict.fromkeys((self.client, self.server)))
        self.executables = dict(zip(ends, in_parallel(self._build, ends)))
        secret = secrets.token_hex(_SECRET_BYTES)
        for end in ends:
            files.write_file(self.grid, Location(end, self._secret(end)), secret)

    def exchange(self) -> list[Measurement]:
        serve = [self.executables[self.server], "serve", str(self.port), self._secret(self.server)]
        with self.grid.serving(self.server, serve, within_seconds=READY_SECONDS) as line:
            port = parse_port(line, self.server)
            self.grid.log(f"{self.server} listens on {self.address} port {port}")
            text = self.grid.shell(self.client).check(
                [
                    self.executables[self.client],
                    "measure",
                    self.address,
                    str(port),
                    self._secret(self.client),
                    *self.sizes,
                ],
                timeout_seconds=MEASURE_TIMEOUT_SECONDS,
                doing=f"exchange messages with {self.server} ({self.address} port {port})",
            )
        return self._metrics(parse_timings(text, self.client))

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _build(self, end: str) -> str:
        return kernels.build_kernel(self.grid, end, "pingpong", options=("-O2", "-pthread"))

    def _secret(self, end: str) -> str:
        return f"{self.grid.scratch(end)}/secret"

    def _metrics(self, timings: Sequence[Timing]) -> list[Measurement]:
        """Return the metrics: latency, bandwidth, time of each size, and the fit if there is one."""
        rates = [timing.size_bytes / timing.median_seconds for timing in timings]
        metrics = [
            Measurement("latency.seconds", timings[0].median_seconds, "seconds"),
            Measurement("bandwidth.bytes_per_second", max(rates), "bytes_per_second"),
            *(
                Measurement(f"message.{timing.size_bytes}.seconds", timing.median_seconds, "seconds")
                for timing in timings
            ),
        ]
        fit = hockney(timings)
        if fit is None:
            self.grid.log("the times do not follow latency + size / bandwidth: no fit", "warning")
            return metrics
        return [
            *metrics,
            Measurement("fit.latency.seconds", fit.latency_seconds, "seconds"),
            Measurement("fit.bandwidth.bytes_per_second", fit.bytes_per_second, "bytes_per_second"),
            Measurement("fit.error", fit.error, "ratio"),
        ]


def hockney(timings: Sequence[Timing]) -> Fit | None:
    """Fit t(n) = l + n / b to the median times; return None if the fitted l or b is not positive."""
    points = [(float(timing.size_bytes), timing.median_seconds) for timing in timings]
    weights = [1.0 / seconds**2 for _, seconds in points]
    total = math.fsum(weights)
    mean_bytes = math.fsum(weight * size for weight, (size, _) in zip(weights, points)) / total
    mean_seconds = math.fsum(weight * seconds for weight, (_, seconds) in zip(weights, points)) / total
    spread = math.fsum(weight * (size - mean_bytes) ** 2 for weight, (size, _) in zip(weights, points))
    joint = math.fsum(
        weight * (size - mean_bytes) * (seconds - mean_seconds)
        for weight, (size, seconds) in zip(weights, points)
    )
    slope = joint / spread if spread > 0 else 0.0
    latency_seconds = mean_seconds - slope * mean_bytes
    if slope <= 0 or latency_seconds <= 0:
        return None
    errors = [(latency_seconds + slope * size) / seconds - 1 for size, seconds in points]
    return Fit(latency_seconds, 1 / slope, math.sqrt(math.fsum(error**2 for error in errors) / len(errors)))


def parse_port(line: str, server: str) -> int:
    """Return the port that the server's first *line* names.

    Raises:
        ProbeFailed: *line* is not ``listening PORT``.
    """
    word, _, port = line.partition(" ")
    if word != "listening" or not port.isdigit():
        raise ProbeFailed(f"unreadable output of pingpong at {server}: {line[:200]!r}", resource=server)
    return int(port)


def parse_timings(text: str, client: str) -> list[Timing]:
    """Parse the output of the client; return the times, smallest message first.

    Raises:
        ProbeFailed: *text* is empty, or a line cannot be parsed.
    """
    try:
        timings = [_timing(line) for line in text.splitlines()]
    except ValueError:
        timings = []
    if not timings:
        raise ProbeFailed(f"unreadable output of pingpong at {client}: {text[-200:]!r}", resource=client)
    return timings


def _timing(line: str) -> Timing:
    """Parse one line of the client; a time of 0 becomes 1 ns, because rates divide by the time.

    Raises:
        ValueError: *line* does not have four numbers.
    """
    size, repetitions, median, fastest = line.split()
    return Timing(int(size), int(repetitions), max(float(median), 1e-9), max(float(fastest), 1e-9))
