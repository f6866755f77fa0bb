"""Sessions at a site: drawn durations as lower bounds, and faults with the messages of the real tools.

A busy machine only adds time. So `make test` checks lower bounds, and that a step which must not be slow ends
although an endless time was drawn for it. Upper bounds are nightly.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitor.testbed.sites.processes import pids_with_variable
from monitor.testbed.sites.run_clock import LONGEST_RESERVE_SECONDS
from monitor.testbed.weather.conditions import Conditions, SiteFault
from tests.monitor.testbed.sites.local_grid import ENDLESS_SECONDS, Client, conditions, shortest_seconds
from tests.waiting import eventually

SLACK_SECONDS = 0.8
SLOW_COMMANDS = [
    ("disk", "dd if=/dev/zero of=/dev/null count=1 status=none"),
    ("compile", "echo 'int main(void){return 0;}' > t.c && cc -o t t.c && ./t"),
    ("unlink", "mkdir -p gone && rm -rf gone && test ! -e gone"),
    ("queue", "batch-start true"),
    ("compute", "batch-start true"),
]


def run(client: Client, site: str, command: str, weather: Conditions) -> subprocess.CompletedProcess[str]:
    """Run *command* in a run with *weather*."""
    return client.run(site, command, label=client.new_label(weather))


def timed(
    client: Client, site: str, command: str, label: str | None = None
) -> tuple[subprocess.CompletedProcess[str], float]:
    start = time.monotonic()
    done = client.run(site, command, label=label)
    return done, time.monotonic() - start


@contextmanager
def left_by_test(argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run *argv*, which may still run when the block ends: it is killed then."""
    with subprocess.Popen(argv) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_first_login_of_a_run_is_slow_and_the_others_are_not(client: Client) -> None:
    label = client.new_label(conditions(seconds={"login": 1.0}))
    assert timed(client, "anl", "true", label)[1] >= 1.0 - LONGEST_RESERVE_SECONDS
    client.weather.by_label[label] = conditions(seconds={"login": ENDLESS_SECONDS})
    assert client.run("anl", "true", label=label).returncode == 0


def test_without_a_label_every_connection_is_a_login(client: Client) -> None:
    with client.now(conditions(seconds={"login": 0.6})):
        for _ in range(2):
            assert timed(client, "anl", "true")[1] >= 0.6


@pytest.mark.nightly
def test_a_login_takes_no_longer_than_was_drawn(client: Client) -> None:
    with client.now(conditions(seconds={"login": 0.6})):
        seconds = shortest_seconds(lambda: timed(client, "anl", "true")[1], 0.6 + SLACK_SECONDS)
    assert 0.6 <= seconds < 0.6 + SLACK_SECONDS


def test_a_client_that_disconnects_during_a_slow_login_starts_nothing(client: Client) -> None:
    label = client.new_label(conditions(seconds={"login": ENDLESS_SECONDS}))
    witness = client.scratch("anl") / "started"
    argv = client.argv("anl", f"touch {witness}", label=label)
    with left_by_test(argv) as session:
        assert eventually(lambda: label in client.weather.asked_labels)
        assert session.poll() is None
    assert client.run("anl", "true", label=label).returncode == 0
    assert not witness.exists()


@pytest.mark.parametrize(("mechanism", "command"), SLOW_COMMANDS)
def test_a_program_takes_at_least_as_long_as_was_drawn(client: Client, mechanism: str, command: str) -> None:
    with client.now(conditions(seconds={mechanism: 0.8})):
        done, seconds = timed(client, "anl", command)
    assert (done.returncode, done.stderr) == (0, "")
    assert seconds >= 0.8


@pytest.mark.nightly
@pytest.mark.parametrize(("mechanism", "command"), SLOW_COMMANDS)
def test_a_program_takes_no_longer_than_was_drawn(client: Client, mechanism: str, command: str) -> None:
    with client.now(conditions(seconds={mechanism: 0.8})):
        seconds = shortest_seconds(lambda: timed(client, "anl", command)[1], 0.8 + SLACK_SECONDS)
    assert seconds < 0.8 + SLACK_SECONDS


def test_real_work_that_takes_longer_is_not_cut_short(client: Client) -> None:
    with client.now(conditions(seconds={"compute": 0.1})):
        done, seconds = timed(client, "anl", "batch-start sh -c 'sleep 0.6; exit 5'")
    assert done.returncode == 5
    assert seconds >= 0.6


def test_removing_a_missing_file_is_never_slow(client: Client) -> None:
    with client.now(conditions(seconds={"unlink": ENDLESS_SECONDS})):
        assert client.run("anl", "rm -f nothing").returncode == 0


def test_programs_of_sites_without_weather_are_the_real_ones(client: Client) -> None:
    done = client.run("anl", "dd if=/dev/zero bs=1 count=3 status=none | od -An -tu1; rm nothing")
    assert done.stdout.split() == ["0", "0", "0"]
    assert "No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("fault", "command", "status", "message"),
    [
        (
            SiteFault(5, "disk", "full"),
            "dd if=/dev/zero of=part count=9",
            1,
            "dd: error writing 'part': No space left on device\n",
        ),
        (
            SiteFault(5, "disk", "unwritable"),
            "dd if=/dev/zero of=x count=9",
            1,
            "dd: failed to open 'x': Permission denied\n",
        ),
        (
            SiteFault(5, "unlink", "busy"),
            "mkdir -p d; rm -rf d",
            1,
            "rm: cannot remove 'd': Device or resource busy",
        ),
        (SiteFault(5, "compile", "missing"), "cc --version", 127, "/bin/sh: 1: cc: not found\n"),
        (
            SiteFault(5, "compile", "crash"),
            "cc x.c",
            4,
            "cc: internal compiler error: Segmentation fault signal terminated",
        ),
        (SiteFault(5, "queue", "rejected"), "batch-start true", 1, "error: Batch job submission failed"),
        (SiteFault(5, "compute", "exit"), "batch-start true", 3, "batch-start: error: job step aborted"),
    ],
)
def test_a_broken_site_prints_the_messages_of_the_real_tools(
    client: Client, fault: SiteFault, command: str, status: int, message: str
) -> None:
    done = run(client, "ncsa", command, conditions(fault=fault))
    assert done.returncode == status
    assert message in done.stderr


def test_a_full_disk_leaves_a_part_of_the_file(client: Client) -> None:
    weather = conditions(fault=SiteFault(5, "disk", "full"))
    done = run(client, "ncsa", "dd if=/dev/zero of=part bs=1M count=1; wc -c < part", weather)
    assert 0 < int(done.stdout) < 1 << 20


def test_a_busy_directory_is_emptied_and_stays(client: Client) -> None:
    weather = conditions(fault=SiteFault(5, "unlink", "busy"))
    done = run(client, "ncsa", "mkdir -p d; touch d/f; rm -rf d; ls -a d | wc -l", weather)
    assert done.stdout.strip() == "2"


def test_a_missing_compiler_fails_the_check_for_tools_too_and_no_other_tool_is_missing(
    client: Client,
) -> None:
    weather = conditions(fault=SiteFault(5, "compile", "missing"))
    done = run(client, "ncsa", "for t in cc dd sha256sum env; do command -v $t >&2 || echo $t; done", weather)
    assert done.stdout.split() == ["cc"]


def test_a_killed_job_ends_by_the_signal(client: Client) -> None:
    weather = conditions(seconds={"compute": 0.2}, fault=SiteFault(5, "compute", "killed"))
    done = run(client, "ncsa", "sh -c 'batch-start sleep 60'; echo $?", weather)
    assert done.stdout.strip() == "137"


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_stuck_job_never_starts_and_ends_with_its_session(client: Client) -> None:
    label = client.new_label(conditions(fault=SiteFault(5, "queue", "stuck")))
    mark = f"LC_GRIDCAST_RUN={label}"
    witness = client.scratch("ncsa") / "job-has-started"

    def is_stuck() -> bool:
        return any(command_of(pid) == b"sleep\x002147483647\x00" for pid in pids_with_variable(mark))

    with left_by_test(client.argv("ncsa", f"exec batch-start touch {witness}", label=label)):
        assert eventually(is_stuck)
    assert eventually(lambda: pids_with_variable(mark) == set())
    assert not witness.exists()


def test_a_refusing_site_is_back_when_the_fault_is_over(client: Client) -> None:
    with client.now(conditions(fault=SiteFault(2, "login", "refused"))):
        assert eventually(lambda: "Connection refused" in client.run("ornl", "true").stderr)
        assert client.run("anl", "true").returncode == 0
    assert eventually(lambda: client.run("ornl", "true").returncode == 0)


def test_a_hanging_site_accepts_and_sends_nothing(client: Client) -> None:
    with client.now(conditions(fault=SiteFault(2, "login", "hang"))):
        done = client.run("ornl", "true", options=("-o", "ConnectTimeout=1"))
    assert "Connection timed out during banner exchange" in done.stderr


def test_a_denying_site_accepts_no_key(client: Client) -> None:
    with client.now(conditions(fault=SiteFault(2, "login", "denied"))):
        assert "Permission denied (publickey,password)" in client.run("ornl", "true").stderr


def test_a_fault_set_by_hand_affects_the_running_grid(client: Client) -> None:
    fault = client.grid.directory / "fault.json"
    fault.write_text('{"site": "iu", "mechanism": "disk", "kind": "full"}')
    try:
        done = client.run("iu", "dd if=/dev/zero of=part count=9")
    finally:
        fault.unlink()
    assert "No space left on device" in done.stderr
    assert client.run("iu", "dd if=/dev/zero of=part count=9 status=none").returncode == 0
