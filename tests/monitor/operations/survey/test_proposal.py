from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.operations.gridfile import exporting, loading
from monitor.operations.survey.facts import HostFacts
from monitor.operations.survey.proposal import SurveyedHost, grid, resource
from monitor.operations.survey.ssh_hosts import SshHost
from reporters import site_tools

FACTS = HostFacts(
    system="Linux",
    cores=4,
    python="3.11.2",
    scratch="/scratch",
    free_bytes=10**12,
    tools=frozenset({*site_tools.NEEDED, "cc", "scp"}),
    batch_kind="fork",
    partitions=(),
)


def surveyed(name: str, facts: HostFacts = FACTS) -> SurveyedHost:
    return SurveyedHost(SshHost(name, f"{name.rpartition('@')[2]}.example.org", 22, "me"), facts)


def proposed(
    *hosts: SurveyedHost, failed: list[tuple[str, str]] | None = None
) -> dict[str, dict[str, list[str]]]:
    """Return the bindings of the proposed series by name; the file that they make is valid."""
    resources = {host.name: resource(host, "", by_name=False) for host in hosts}
    proposal = grid(hosts, resources, failed or [])
    loading.parse(exporting.to_yaml(proposal).encode(), "grid.yaml", loading.DepotNames())
    return {
        name: {role: list(names) for role, names in series.bindings.items()}
        for name, series in proposal.series.items()
    }


def test_one_host_gets_login_and_disk() -> None:
    assert sorted(proposed(surveyed("anl"))) == ["disk-anl", "login-anl"]


def test_hosts_that_copy_to_each_other_get_circle_and_gather() -> None:
    series = proposed(surveyed("anl"), surveyed("iu"), surveyed("ornl"))
    assert series["circle-anl"] == {"ring": ["anl", "iu", "ornl"]}
    assert series["gather-anl"] == {"sources": ["iu", "ornl"], "compute": ["anl"], "destination": ["ornl"]}


def test_a_host_that_cannot_copy_stays_outside_the_ring() -> None:
    series = proposed(
        surveyed("anl"), surveyed("iu"), surveyed("ornl"), failed=[("anl", "iu"), ("iu", "ornl")]
    )
    assert series["circle-anl"] == {"ring": ["anl", "ornl"]}
    assert "login-iu" in series


def test_without_any_copy_there_is_neither_circle_nor_gather() -> None:
    assert set(proposed(surveyed("a"), surveyed("b"), failed=[("a", "b")])) == {
        *("login-a", "login-b", "disk-a", "disk-b")
    }


def test_a_bastion_that_copies_to_none_does_not_keep_the_others_from_a_ring() -> None:
    hosts = [surveyed(name) for name in ("bastion", "a", "b", "c")]
    series = proposed(*hosts, failed=[("bastion", other) for other in "abc"])
    assert series["circle-a"] == {"ring": ["a", "b", "c"]}


def test_gather_computes_where_there_is_a_compiler() -> None:
    bare = replace(FACTS, tools=FACTS.tools - {"cc"})
    series = proposed(surveyed("anl", bare), surveyed("iu"))
    assert series["gather-iu"]["compute"] == ["iu"]
    without = proposed(surveyed("anl", bare), surveyed("iu", bare))
    assert not any(name.startswith("gather") for name in without)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Login.NCSA.edu", "login-ncsa-edu"), ("me@host:22", "me-host-22"), ("192.0.2.7", "192-0-2-7")],
)
def test_names_of_hosts_become_names_of_a_grid_file(name: str, expected: str) -> None:
    assert SurveyedHost(SshHost(name, "a", 22, "me"), FACTS).name == expected


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (replace(FACTS, tools=frozenset(set(site_tools.NEEDED) - {"mkfifo"})), "without mkfifo"),
        (replace(FACTS, scratch=""), "no safe, writable directory for scratch (docs/sites.md)"),
        (replace(FACTS, free_bytes=10**8), "less than 1 GB free in /scratch"),
    ],
)
def test_a_host_where_no_probe_can_run_says_why(facts: HostFacts, problem: str) -> None:
    assert surveyed("anl", facts).problems == [problem]


@pytest.mark.parametrize("name", ["login.ncsa.edu", "192.0.2.7", "me@host", 80 * "x", "on", "null", "1"])
def test_any_name_of_a_host_makes_a_valid_file(name: str) -> None:
    assert len(proposed(surveyed(name), surveyed("other"))) == 6


def test_a_name_without_a_letter_or_a_digit_is_a_problem() -> None:
    assert surveyed("日本").problems == ["its name has no letter and no digit: define an alias"]


def test_other_sites_use_the_address_since_they_do_not_know_the_alias() -> None:
    host = SurveyedHost(SshHost("anl", "login.anl.example.org", 2222, "me"), FACTS)
    by_address = resource(host, "/cfg", by_name=False)
    assert by_address.shell == {"kind": "ssh", "host": "anl", "config_file": "/cfg"}
    assert by_address.transfer == {
        "kind": "ssh",
        "host": "login.anl.example.org",
        "port": 2222,
        "user": "me",
    }
    assert resource(host, "", by_name=True).transfer == {"kind": "ssh"}
