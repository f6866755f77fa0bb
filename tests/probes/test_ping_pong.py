"""Ping-pong: the fit on synthetic times, real runs, and connections that the server must refuse."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from probes.base import ProbeFailed
from probes.common.kernels import kernel_source
from probes.ping_pong import Timing, hockney, parse_port, parse_timings
from tests.probes.runs import logged, metrics, run_locally
from tests.reporters.ssh_sites import SshSites
from tests.waiting import eventually

SECRET = "0123456789abcdef" * 2
SIZES = [2**power for power in range(25)]


def timings(points: Sequence[tuple[int, float]]) -> list[Timing]:
    return [Timing(size, 10, seconds, seconds) for size, seconds in points]


@pytest.mark.parametrize(
    ("latency_seconds", "bytes_per_second"), [(50e-6, 1.25e9), (0.04, 12.5e6), (0.15, 1e5), (1e-6, 1e10)]
)
def test_the_fit_recovers_latency_and_bandwidth_of_the_model(
    latency_seconds: float, bytes_per_second: float
) -> None:
    fit = hockney(timings([(size, latency_seconds + size / bytes_per_second) for size in SIZES]))
    assert fit is not None
    assert fit.latency_seconds == pytest.approx(latency_seconds, rel=1e-6)
    assert fit.bytes_per_second == pytest.approx(bytes_per_second, rel=1e-6)
    assert fit.error < 1e-6


def test_small_messages_weigh_as_much_as_large_ones() -> None:
    disturbed = [(size, 1e-3 + size / 1e8 + (0.05 if size == SIZES[-1] else 0)) for size in SIZES]
    fit = hockney(timings(disturbed))
    assert fit is not None
    assert fit.latency_seconds == pytest.approx(1e-3, rel=0.05)
    assert 0 < fit.error < 0.2


@pytest.mark.parametrize(
    "points",
    [
        [(1, 1e-3)],
        [(8, 1e-3), (8, 2e-3)],
        [(1, 2e-3), (1000, 1e-3), (100_000, 1e-4)],
        [(1000, 1e-6), (2000, 1e-2)],
    ],
)
def test_times_without_a_valid_model_have_no_fit(points: list[tuple[int, float]]) -> None:
    assert hockney(timings(points)) is None


def test_two_sizes_are_fitted_exactly() -> None:
    fit = hockney(timings([(1, 2.0), (3, 4.0)]))
    assert fit is not None
    assert [fit.latency_seconds, fit.bytes_per_second] == pytest.approx([1.0, 1.0])
    assert fit.error == pytest.approx(0.0, abs=1e-9)


def test_the_output_of_the_client_is_parsed() -> None:
    text = "1 100 0.000007964 0.000006550\n2 100 0.000000000 0.000000000\n"
    assert parse_timings(text, "iu") == [Timing(1, 100, 7.964e-6, 6.55e-6), Timing(2, 100, 1e-9, 1e-9)]


@pytest.mark.parametrize("text", ["", "1 2 3", "one 1 1 1"])
def test_other_output_is_unreadable_and_quoted(text: str) -> None:
    with pytest.raises(ProbeFailed, match=f"unreadable output of pingpong at iu: '{text}'"):
        parse_timings(text, "iu")
    with pytest.raises(ProbeFailed, match="unreadable output of pingpong at iu"):
        parse_port(text, "iu")


def test_a_run_measures_every_size_and_leaves_no_file(tmp_path: Path) -> None:
    parameters = {"min_bytes": 8, "max_bytes": 1_000_000, "repetitions": 20, "most_bytes": 4_000_000}
    report = run_locally("ping_pong", tmp_path, parameters, "client", "server")
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    sizes = [8 * 2**power for power in range(17)]
    assert [name for name in values if name.startswith("message.")] == [
        f"message.{size}.seconds" for size in sizes
    ]
    assert values["latency.seconds"] == values["message.8.seconds"]
    rates = [size / values[f"message.{size}.seconds"] for size in sizes]
    assert values["bandwidth.bytes_per_second"] == pytest.approx(max(rates))
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_the_secret_does_not_appear_in_the_log(tmp_path: Path) -> None:
    report = run_locally("ping_pong", tmp_path, {"max_bytes": 1}, "client", "server")
    assert any("at-server listens on 127.0.0.1 port" in line for line in logged(report, "info"))
    assert "secret" not in repr(report.log)


def test_sites_are_reached_under_their_addresses() -> None:
    with SshSites("iu", "ncsa") as sites:
        resources = {name: replace(sites.resource(name), address="localhost") for name in ("iu", "ncsa")}
        report = run_locally(
            "ping_pong",
            sites.directory,
            {"max_bytes": 64, "repetitions": 5},
            bindings={"client": ["iu"], "server": ["ncsa"]},
            resources=resources,
        )
    assert report.outcome == "passed", report.reason
    assert metrics(report)["latency.seconds"] > 0


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        report = run_locally("ping_pong", tmp_path, {"port": listener.getsockname()[1]}, "client", "server")
    assert report.failure is not None
    assert (report.outcome, report.failure.stage, report.failure.resource) == (
        "failed",
        "exchange",
        "at-server",
    )
    assert "cannot listen: Address already in use" in report.reason


def test_an_unreachable_server_fails_the_run_and_both_ends_are_named(tmp_path: Path) -> None:
    report = run_locally(
        "ping_pong", tmp_path, {}, "client", "server", resource={"address": "no-such-host.invalid"}
    )
    assert report.outcome == "failed"
    assert "cannot exchange messages with at-server (no-such-host.invalid port" in report.reason
    assert "at at-client" in report.reason


def test_a_largest_message_below_the_smallest_is_refused(tmp_path: Path) -> None:
    report = run_locally("ping_pong", tmp_path, {"min_bytes": 9, "max_bytes": 8}, "client", "server")
    assert "invalid parameters: max_bytes" in report.reason


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled kernel, beside it files with the right and with wrong secrets."""
    directory = tmp_path_factory.mktemp("pingpong")
    (directory / "pingpong.c").write_text(kernel_source("pingpong"))
    (directory / "secret").write_text(SECRET)
    (directory / "wrong").write_text("0" * 32)
    (directory / "short").write_text("0" * 31)
    strict = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run(["cc", *strict, "-o", "pingpong", "pingpong.c"], cwd=directory, check=True)
    return directory / "pingpong"


@contextlib.contextmanager
def serving(kernel: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    server = subprocess.Popen(
        [kernel, "serve", "0", kernel.with_name("secret")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        yield server, parse_port(server.stdout.readline().strip(), "here")
        server.stdin.close()
        assert server.wait(timeout=60) is not None


def measure(kernel: Path, port: int, secret: str = "secret") -> subprocess.CompletedProcess[str]:
    sizes = ["1", "4", "3", "100"]
    argv = [str(kernel), "measure", "127.0.0.1", str(port), str(kernel.with_name(secret)), *sizes]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def is_closed_by_server(client: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError):
        return client.recv(1) == b""
    return True


@pytest.mark.parametrize(
    "data", [b"0" * 32, SECRET[:-1].encode() + b"!", b"GET / HTTP/1.1\r\nHost: x.example\r\n"]
)
def test_a_connection_without_the_secret_is_closed_and_the_client_is_served(
    kernel: Path, data: bytes
) -> None:
    with serving(kernel) as (_, port), connected(port) as intruder:
        intruder.sendall(data)
        assert is_closed_by_server(intruder)
        assert len(parse_timings(measure(kernel, port).stdout, "here")) == 3


def test_a_client_with_a_wrong_secret_reports_the_refusal(kernel: Path) -> None:
    with serving(kernel) as (_, port):
        completed = measure(kernel, port, "wrong")
        assert (completed.returncode, completed.stderr) == (1, "pingpong: refused by the server\n")


def test_a_secret_that_is_too_short_is_reported(kernel: Path) -> None:
    completed = measure(kernel, 1, "short")
    assert completed.returncode == 1
    assert completed.stderr == f"pingpong: cannot read the secret: {kernel.with_name('short')} is too short\n"


def test_silent_connections_do_not_block_the_client(kernel: Path) -> None:
    with serving(kernel) as (_, port), contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(port)) for _ in range(10)]
        silent[0].sendall(SECRET[:7].encode())
        assert measure(kernel, port).returncode == 0
        assert all(is_closed_by_server(connection) for connection in silent)


def test_the_server_accepts_only_one_client(kernel: Path) -> None:
    with serving(kernel) as (server, port), connected(port) as client:
        client.sendall(SECRET.encode())
        assert client.recv(1) == b"!"
        with pytest.raises(ConnectionError):
            connected(port)
        client.close()
        assert server.wait(timeout=60) == 0


def test_the_server_ends_when_its_input_is_closed_during_a_message(kernel: Path) -> None:
    with serving(kernel) as (server, port), connected(port) as client:
        client.sendall(SECRET.encode() + (1000).to_bytes(8, "big") + (1).to_bytes(8, "big") + b"half")
        assert server.stdin is not None
        server.stdin.close()
        assert eventually(lambda: server.poll() is not None)


@pytest.mark.parametrize("header", [(2**30 + 1, 1), (2**64 - 1, 1), (1, 2**63)])
def test_requests_beyond_the_limits_are_refused(kernel: Path, header: tuple[int, int]) -> None:
    with serving(kernel) as (server, port), connected(port) as client:
        client.sendall(SECRET.encode() + b"".join(number.to_bytes(8, "big") for number in header))
        assert server.wait(timeout=60) == 1
