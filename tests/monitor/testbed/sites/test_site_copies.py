from __future__ import annotations

import hashlib
import random
import subprocess
import time
from pathlib import Path

import pytest

from monitor.testbed.sites.run_clock import LONGEST_CREDIT_SECONDS, LONGEST_RESERVE_SECONDS
from monitor.testbed.weather.conditions import Conditions, SiteFault
from tests.monitor.testbed.sites.conftest import (
    REFERENCE_BYTES,
    Client,
    conditions,
    least_seconds,
)
from tests.waiting import eventually

SLACK_SECONDS = 0.8
CONTENT = random.Random(1).randbytes(REFERENCE_BYTES)


def copy(
    client: Client,
    weather: Conditions | None = None,
    *,
    scp: str = "scp",
    source: str = "anl",
    target: str = "ncsa",
    labelled: bool = True,
) -> tuple[subprocess.CompletedProcess[str], Path, float]:
    """Copy a file of the reference size from site to site: what scp said, the copy, the seconds it took."""
    label = client.new_label(weather)
    name = f"{label.partition('@')[0]}.dat"
    (client.scratch(source) / name).write_bytes(CONTENT)
    arrived = client.scratch(target) / name
    command = f"{scp} {client.scratch(source)}/{name} {target}:{arrived}"
    began = time.monotonic()
    done = client.run(source, command, label=label if labelled else None)
    return done, arrived, time.monotonic() - began


@pytest.mark.parametrize("scp", ["scp", "scp -O"])
def test_sites_copy_to_each_other_with_their_own_keys(client: Client, scp: str) -> None:
    done, arrived, _ = copy(client, scp=scp)
    assert (done.returncode, done.stderr) == (0, "")
    assert arrived.read_bytes() == CONTENT


def test_a_site_reaches_every_other_site(client: Client) -> None:
    names = " ".join(client.grid.sites)
    done = client.run("sdsc", f"for site in {names}; do ssh $site 'echo \"$SITE_NAME\"'; done")
    assert done.stdout.split() == list(client.grid.sites)


@pytest.mark.parametrize("scp", ["scp", "scp -O"])
def test_a_copy_takes_as_long_as_the_link_was_drawn(client: Client, scp: str) -> None:
    def once() -> float:
        done, arrived, seconds = copy(client, scp=scp, labelled=False)
        assert done.returncode == 0
        assert arrived.read_bytes() == CONTENT
        return seconds

    with client.now(conditions(seconds={"inbound": 1.0})):
        seconds = least_seconds(once, 1.0 + SLACK_SECONDS)
    assert 1.0 <= seconds < 1.0 + SLACK_SECONDS


def test_links_of_other_sites_take_their_fraction(client: Client) -> None:
    with client.now(conditions(seconds={"inbound": 1.5}, others=0.4)):
        seconds = least_seconds(lambda: copy(client, source="iu", labelled=False)[2], 0.6 + SLACK_SECONDS)
    assert 0.6 <= seconds < 0.6 + SLACK_SECONDS


def test_a_result_leaves_the_site_that_computed_as_fast_as_drawn(client: Client) -> None:
    result = client.scratch("ncsa") / "result.dat"
    result.write_bytes(CONTENT)
    scp = f"scp -q {result} sdsc:{client.scratch('sdsc')}"

    def once() -> float:
        label = client.new_label(conditions(seconds={"outbound": 2.0, "inbound": 20.0}))
        assert client.run("ncsa", "batch-start true", label=label).returncode == 0
        began = time.monotonic()
        assert client.run("ncsa", scp, label=label).returncode == 0
        return time.monotonic() - began

    earliest = 2.0 - LONGEST_CREDIT_SECONDS - LONGEST_RESERVE_SECONDS
    assert earliest <= least_seconds(once, 2.0 + SLACK_SECONDS) < 2.0 + SLACK_SECONDS


@pytest.mark.parametrize("scp", ["scp", "scp -O"])
def test_a_link_that_is_cut_breaks_the_copy_in_its_middle(client: Client, scp: str) -> None:
    done, arrived, _ = copy(client, conditions(fault=SiteFault(0, "inbound", "reset")), scp=scp)
    assert done.returncode != 0
    assert "onnection reset by" in done.stderr or "Broken pipe" in done.stderr
    assert arrived.stat().st_size < REFERENCE_BYTES


def test_a_link_that_stalls_delivers_no_more_and_answers_nothing(client: Client) -> None:
    scp = "timeout 20 scp -o ServerAliveInterval=1 -o ServerAliveCountMax=2"
    done, arrived, _ = copy(client, conditions(fault=SiteFault(0, "inbound", "stall")), scp=scp)
    assert done.returncode not in (0, 124)
    assert "Timeout, server" in done.stderr
    assert arrived.stat().st_size < REFERENCE_BYTES


def test_a_bad_link_flips_one_bit(client: Client) -> None:
    done, arrived, _ = copy(client, conditions(fault=SiteFault(0, "inbound", "corrupt")))
    different = [sent ^ got for sent, got in zip(CONTENT, arrived.read_bytes(), strict=True) if sent != got]
    assert done.returncode == 0
    assert different == [1]
    assert hashlib.sha256(arrived.read_bytes()).digest() != hashlib.sha256(CONTENT).digest()


def test_a_full_disk_keeps_a_part_of_what_arrives(client: Client) -> None:
    done, arrived, _ = copy(client, conditions(fault=SiteFault(5, "disk", "full")))
    assert done.returncode != 0
    assert "Failure" in done.stderr  # the protocol has no better word
    assert arrived.read_bytes().startswith(CONTENT[:1000])
    assert arrived.read_bytes() != CONTENT


def test_an_unwritable_disk_takes_nothing(client: Client) -> None:
    done, arrived, _ = copy(client, conditions(fault=SiteFault(5, "disk", "unwritable")))
    assert done.returncode != 0
    assert "Permission denied" in done.stderr
    assert not arrived.exists()


def test_the_next_copy_is_clean(client: Client) -> None:
    copy(client, conditions(fault=SiteFault(0, "inbound", "reset")))
    done, arrived, _ = copy(client, conditions())
    assert eventually(lambda: arrived.read_bytes() == CONTENT)
    assert done.returncode == 0
