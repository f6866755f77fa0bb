"""Copies between sites: as slow as drawn for the link, broken by its fault. Upper bounds are nightly."""

from __future__ import annotations

import hashlib
import random
import subprocess
import time
from pathlib import Path

import pytest

from monitor.testbed.sites.run_clock import LONGEST_CREDIT_SECONDS, LONGEST_RESERVE_SECONDS
from monitor.testbed.weather.conditions import Conditions, SiteFault
from tests.monitor.testbed.sites.local_grid import REFERENCE_BYTES, Client, conditions, shortest_seconds

SLACK_SECONDS = 0.8
CONTENT = random.Random(1).randbytes(REFERENCE_BYTES)
EITHER_PROTOCOL = pytest.mark.parametrize("scp", ["scp", "scp -O"])


def copy(
    client: Client,
    weather: Conditions | None = None,
    *,
    scp: str = "scp",
    source: str = "anl",
    target: str = "ncsa",
    is_labelled: bool = True,
) -> tuple[subprocess.CompletedProcess[str], Path, float]:
    """Copy a file of the reference size from site to site; return scp's result, the copy, and the seconds."""
    label = client.new_label(weather)
    name = f"{label.partition('@')[0]}.dat"
    (client.scratch(source) / name).write_bytes(CONTENT)
    arrived = client.scratch(target) / name
    command = f"{scp} {client.scratch(source)}/{name} {target}:{arrived}"
    start = time.monotonic()
    done = client.run(source, command, label=label if is_labelled else None)
    return done, arrived, time.monotonic() - start


@EITHER_PROTOCOL
def test_sites_copy_to_each_other_with_their_own_keys(client: Client, scp: str) -> None:
    done, arrived, _ = copy(client, scp=scp)
    assert (done.returncode, done.stderr) == (0, "")
    assert arrived.read_bytes() == CONTENT


def test_a_site_reaches_every_other_site(client: Client) -> None:
    names = " ".join(client.grid.sites)
    done = client.run("sdsc", f"for site in {names}; do ssh $site 'echo \"$SITE_NAME\"'; done")
    assert done.stdout.split() == list(client.grid.sites)


@EITHER_PROTOCOL
def test_a_copy_takes_at_least_as_long_as_was_drawn_for_the_link(client: Client, scp: str) -> None:
    with client.now(conditions(seconds={"inbound": 1.0})):
        done, arrived, seconds = copy(client, scp=scp, is_labelled=False)
    assert done.returncode == 0
    assert arrived.read_bytes() == CONTENT
    assert seconds >= 1.0


@pytest.mark.nightly
@EITHER_PROTOCOL
def test_a_copy_takes_no_longer_than_was_drawn_for_the_link(client: Client, scp: str) -> None:
    with client.now(conditions(seconds={"inbound": 1.0})):
        seconds = shortest_seconds(lambda: copy(client, scp=scp, is_labelled=False)[2], 1.0 + SLACK_SECONDS)
    assert seconds < 1.0 + SLACK_SECONDS


def test_a_link_of_another_site_takes_at_least_its_fraction(client: Client) -> None:
    with client.now(conditions(seconds={"inbound": 1.5}, others=0.4)):
        assert copy(client, source="iu", is_labelled=False)[2] >= 0.6


@pytest.mark.nightly
def test_a_link_of_another_site_takes_no_more_than_its_fraction(client: Client) -> None:
    with client.now(conditions(seconds={"inbound": 1.5}, others=0.4)):
        seconds = shortest_seconds(
            lambda: copy(client, source="iu", is_labelled=False)[2], 0.6 + SLACK_SECONDS
        )
    assert 0.6 <= seconds < 0.6 + SLACK_SECONDS


def copy_result_seconds(client: Client, *, outbound: float, inbound: float) -> float:
    """Compute at one site and copy the result to another; return the seconds of the copy."""
    result = client.scratch("ncsa") / "result.dat"
    result.write_bytes(CONTENT)
    label = client.new_label(conditions(seconds={"outbound": outbound, "inbound": inbound}))
    assert client.run("ncsa", "batch-start true", label=label).returncode == 0
    start = time.monotonic()
    done = client.run("ncsa", f"scp -q {result} sdsc:{client.scratch('sdsc')}", label=label)
    assert done.returncode == 0
    return time.monotonic() - start


def test_a_result_travels_over_the_outbound_link_of_its_site(client: Client) -> None:
    earliest = 2.5 - LONGEST_CREDIT_SECONDS - LONGEST_RESERVE_SECONDS
    assert copy_result_seconds(client, outbound=2.5, inbound=0.0) >= earliest


@pytest.mark.nightly
def test_a_result_leaves_its_site_no_slower_than_drawn(client: Client) -> None:
    seconds = shortest_seconds(
        lambda: copy_result_seconds(client, outbound=2.0, inbound=20.0), 2.0 + SLACK_SECONDS
    )
    earliest = 2.0 - LONGEST_CREDIT_SECONDS - LONGEST_RESERVE_SECONDS
    assert earliest <= seconds < 2.0 + SLACK_SECONDS


@EITHER_PROTOCOL
def test_a_cut_link_breaks_the_copy_in_its_middle(client: Client, scp: str) -> None:
    done, arrived, _ = copy(client, conditions(fault=SiteFault(0, "inbound", "reset")), scp=scp)
    assert done.returncode != 0
    assert "onnection reset by" in done.stderr or "Broken pipe" in done.stderr
    assert arrived.stat().st_size < REFERENCE_BYTES


def test_a_stalled_link_delivers_no_more_and_answers_nothing(client: Client) -> None:
    scp = "scp -o ServerAliveInterval=1 -o ServerAliveCountMax=2"
    done, arrived, _ = copy(client, conditions(fault=SiteFault(0, "inbound", "stall")), scp=scp)
    assert done.returncode != 0
    assert "Timeout, server" in done.stderr
    assert arrived.stat().st_size < REFERENCE_BYTES


def test_a_corrupting_link_flips_one_bit(client: Client) -> None:
    done, arrived, _ = copy(client, conditions(fault=SiteFault(0, "inbound", "corrupt")))
    different = [sent ^ got for sent, got in zip(CONTENT, arrived.read_bytes(), strict=True) if sent != got]
    assert done.returncode == 0
    assert different == [1]
    assert hashlib.sha256(arrived.read_bytes()).digest() != hashlib.sha256(CONTENT).digest()


def test_a_full_disk_keeps_a_part_of_an_arriving_file(client: Client) -> None:
    done, arrived, _ = copy(client, conditions(fault=SiteFault(5, "disk", "full")))
    assert done.returncode != 0
    assert "Failure" in done.stderr  # SFTP has no status for a full disk
    assert arrived.read_bytes().startswith(CONTENT[:1000])
    assert arrived.read_bytes() != CONTENT


def test_an_unwritable_disk_stores_nothing(client: Client) -> None:
    done, arrived, _ = copy(client, conditions(fault=SiteFault(5, "disk", "unwritable")))
    assert done.returncode != 0
    assert "Permission denied" in done.stderr
    assert not arrived.exists()


def test_the_copy_after_a_broken_one_is_clean(client: Client) -> None:
    copy(client, conditions(fault=SiteFault(0, "inbound", "reset")))
    done, arrived, _ = copy(client, conditions())
    assert done.returncode == 0
    assert arrived.read_bytes() == CONTENT
