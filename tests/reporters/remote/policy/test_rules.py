"""The rules of a site policy: a table of what each refuses, and with which words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from reporters import batch, shells, transfers
from reporters.config import Assignment
from reporters.remote.policy import rules
from reporters.remote.policy.options import MEANINGS
from reporters.remote.policy.parsing import parse_policy
from reporters.remote.policy.site_policy import SitePolicy
from reporters.remote.policy.usage import DayUsage
from reporters.resolve import option_types
from tests.reporters.remote.policy.assignments import assignment, resource, situation, ssh

DIGEST, OTHER = "a" * 64, "b" * 64


def policy(**keys: Any) -> SitePolicy:
    return parse_policy(json.dumps(keys).encode())


def refusal(keys: dict[str, Any], run: Assignment | None = None, **state: Any) -> str:
    return policy(**keys).refusal(run or assignment(), situation(**state))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"allow": ["local", "ssh"]}, ""),
        ({"allow": ["local"]}, "policy: the shell 'ssh' of login is not allowed"),
        ({"allow": []}, "policy: the shell 'ssh' of login is not allowed"),
        ({"transfers": ["ssh"]}, "policy: the transfer 'local' of login is not allowed"),
        ({"batch": ["slurm"]}, "policy: the batch 'fork' of login is not allowed"),
        ({"allow": ["ssh"], "transfers": ["local"], "batch": ["fork"]}, ""),
    ],
)
def test_shells_transfers_and_batch_systems_are_allowed_by_kind(rule: dict[str, Any], expected: str) -> None:
    login = ssh(host="login.example.org")
    assert refusal({"shells": rule}, assignment(login)) == expected


@pytest.mark.parametrize(
    ("started", "expected"),
    [(None, ""), (5, ""), (6, "policy: at most 6 requested runs an hour, 6 have started")],
)
def test_requested_runs_are_limited(started: int | None, expected: str) -> None:
    assert refusal({"requests": {"per_hour": 6}}, requested_runs=started) == expected


def test_an_empty_policy_refuses_nothing() -> None:
    assert refusal({}) == ""


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"allow": ["disk"]}, ""),
        ({"allow": [DIGEST]}, ""),
        ({"allow": [f"disk@{DIGEST}"]}, ""),
        ({"allow": ["login", f"disk@{OTHER}", DIGEST]}, ""),
        ({"forbid": ["login"]}, ""),
        ({"forbid": ["disk"]}, "policy: the probe disk is forbidden"),
        ({"allow": ["disk"], "forbid": ["disk"]}, "policy: the probe disk is forbidden"),
        ({"allow": [DIGEST], "forbid": ["disk"]}, "policy: the probe disk is forbidden"),
        ({"allow": []}, "policy: the probe disk is not allowed"),
        ({"allow": ["login"]}, "policy: the probe disk is not allowed"),
        ({"allow": [OTHER]}, "policy: the probe disk is not allowed"),
        ({"allow": [f"login@{DIGEST}"]}, "policy: the probe disk is not allowed"),
        (
            {"allow": [f"disk@{OTHER}"]},
            f"policy: the probe disk with the SHA-256 {DIGEST} is not allowed",
        ),
    ],
)
def test_probes_are_allowed_by_name_or_by_digest(rule: dict[str, Any], expected: str) -> None:
    assert refusal({"probes": rule}, probe_sha256=DIGEST) == expected


def test_a_probe_without_a_known_digest_is_allowed_by_name_only() -> None:
    assert refusal({"probes": {"allow": ["disk"]}}) == ""
    assert refusal({"probes": {"allow": [f"disk@{DIGEST}"]}}).endswith("SHA-256 unknown is not allowed")


MONDAY_TO_FRIDAY = ["mon", "tue", "wed", "thu", "fri"]
NIGHT = {"from": "22:00", "to": "06:00", "days": ["fri"]}


@pytest.mark.parametrize(
    ("zone", "hours", "now", "expected"),
    [
        ("UTC", {"from": "08:00", "to": "18:00"}, "2026-11-23T08:00", "08:00-18:00 UTC"),
        ("UTC", {"from": "08:00", "to": "18:00"}, "2026-11-23T17:59", "08:00-18:00 UTC"),
        ("UTC", {"from": "08:00", "to": "18:00"}, "2026-11-23T18:00", ""),
        ("UTC", {"from": "08:00", "to": "18:00"}, "2026-11-23T07:59", ""),
        ("UTC", {"from": "18:00", "to": "24:00"}, "2026-11-23T23:59", "18:00-24:00 UTC"),
        ("UTC", {"from": "18:00", "to": "24:00"}, "2026-11-24T00:00", ""),
        ("UTC", {"from": "00:00", "to": "00:00"}, "2026-11-24T00:00", "00:00-00:00 UTC"),
        ("Europe/Berlin", {"from": "08:00", "to": "18:00"}, "2026-11-23T07:00", "08:00-18:00 Europe/Berlin"),
        ("Europe/Berlin", {"from": "08:00", "to": "18:00"}, "2026-11-23T17:00", ""),
        ("Europe/Berlin", {"from": "08:00", "to": "18:00"}, "2026-07-23T06:00", "08:00-18:00 Europe/Berlin"),
        # 2026-11-27 is a Friday: its night ends on Saturday at six, and no other night is forbidden.
        ("UTC", NIGHT, "2026-11-27T22:00", "22:00-06:00 fri UTC"),
        ("UTC", NIGHT, "2026-11-28T05:59", "22:00-06:00 fri UTC"),
        ("UTC", NIGHT, "2026-11-28T06:00", ""),
        ("UTC", NIGHT, "2026-11-27T05:00", ""),
        ("UTC", NIGHT, "2026-11-28T22:00", ""),
        ("UTC", {**NIGHT, "days": ["sun"]}, "2026-11-30T01:00", "22:00-06:00 sun UTC"),
        (
            "UTC",
            {"from": "08:00", "to": "18:00", "days": MONDAY_TO_FRIDAY},
            "2026-11-27T12:00",
            "08:00-18:00 mon,tue,wed,thu,fri UTC",
        ),
        ("UTC", {"from": "08:00", "to": "18:00", "days": MONDAY_TO_FRIDAY}, "2026-11-28T12:00", ""),
        # The clock shows 02:30 twice on the day on which summer time ends.
        ("Europe/Berlin", {"from": "02:15", "to": "02:45"}, "2026-10-25T00:30", "02:15-02:45 Europe/Berlin"),
        ("Europe/Berlin", {"from": "02:15", "to": "02:45"}, "2026-10-25T01:30", "02:15-02:45 Europe/Berlin"),
    ],
)
def test_hours_are_those_of_the_sites_clock(
    zone: str, hours: dict[str, Any], now: str, expected: str
) -> None:
    reason = refusal(
        {"timezone": zone, "hours": {"forbid": [hours]}}, now=datetime.fromisoformat(now).replace(tzinfo=UTC)
    )
    assert reason == (expected and f"policy: forbidden hours {expected}")


@pytest.mark.parametrize(
    ("caps", "state", "expected"),
    [
        ({"concurrent_runs": 2}, {"running_runs": 1}, ""),
        ({"concurrent_runs": 2}, {"running_runs": 2}, "at most 2 concurrent runs, 2 are running"),
        ({"cpu_hours_per_day": 1}, {"used": DayUsage(3599.0)}, ""),
        (
            {"cpu_hours_per_day": 1.5},
            {"used": DayUsage(7200.0)},
            "at most 1.5 CPU hours a day, 2.00 are used",
        ),
        ({"cpu_hours_per_day": 0}, {}, "at most 0 CPU hours a day, 0.00 are used"),
        ({"bytes_per_day": 10**9}, {"used": DayUsage(0.0, 10**9 - 1)}, ""),
        (
            {"bytes_per_day": 10**9},
            {"used": DayUsage(0.0, 2 * 10**9)},
            "at most 1.0 GB a day, 2.0 GB are copied",
        ),
        ({"bytes_per_day": 10**9}, {"used": None}, "what the runs of this day used is unknown"),
        ({"load1": 8}, {"used": None}, ""),
        ({"scratch_bytes": 10**9}, {"scratch_used_bytes": 0}, ""),
        (
            {"scratch_bytes": 10**9},
            {"scratch_used_bytes": 10**9},
            "at most 1.0 GB of scratch, 1.0 GB are used",
        ),
        ({"load1": 8}, {"load1": 8.0}, ""),
        ({"load1": 8}, {"load1": None}, ""),
        ({"load1": 8}, {"load1": 9.25}, "load 9.25 at the reporter, at most 8 allowed"),
    ],
)
def test_a_cap_refuses_the_run_after_the_one_that_reached_it(
    caps: dict[str, Any], state: dict[str, Any], expected: str
) -> None:
    assert refusal({"caps": caps}, **state) == (expected and f"policy: {expected}")


ALLOWED = ["*.example.org", "node*.cluster", "192.0.2.0/24", "2001:db8::/32", "::ffff:0:0/96"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"host": "LOGIN.Example.ORG."},
        {"host": "a.b.example.org"},
        {"host": "node17.cluster"},
        {"host": "192.0.2.7"},
        {"host": "::ffff:192.0.2.7"},
        {"host": "2001:db8::1"},
        {"jump": "me@gate.example.org:2222,192.0.2.1,[2001:db8::1]:22"},
        {"jump": None},
        {"user": "evil.net", "port": 22, "forward_agent": True},
    ],
)
def test_a_resource_with_allowed_destinations_runs(options: dict[str, Any]) -> None:
    assert refusal({"destinations": {"allow": ALLOWED}}, assignment(ssh(**options))) == ""


@pytest.mark.parametrize(
    "options",
    [
        {"host": "example.org"},
        {"host": "example.org.evil.net"},
        {"host": "evilexample.org"},
        {"host": "node.1.cluster"},
        {"host": "192.0.3.7"},
        {"host": "192.0.2.7.evil.net"},
        {"host": "::ffff:192.0.3.7"},
        {"host": "2001:db9::1"},
        {"host": "2001:db8::1%eth0"},
        {"host": "2001:db8::1%;rm"},
        {"host": "::ffff:192.0.2.07"},
        {"host": "::ffff:0300.0.2.7"},
        {"host": "3221225991"},  # 192.0.2.7 to a resolver, but so is every other number
        {"host": "0300.0.2.7"},
        {"host": "192.0.2"},
        {"host": "0xc0000207"},
        {"host": "ssh://login.example.org"},
        {"host": "evil@login.example.org"},
        {"host": "login.example.org evil.net"},
        {"host": "login.example.org\nevil.net"},
        {"host": "-oProxyCommand=x.example.org"},
        {"host": "lögin.example.org"},
        {"host": ["login.example.org"]},
        {"host": 7},
        {"host": "x" * 300 + ".example.org"},
        {"jump": "gate.example.org,evil.net"},
        {"jump": "gate.example.org,ssh://gate.example.org"},
        {"jump": "evil.net@x,gate.example.org"},
        {"jump": ["gate.example.org"]},
        {"jump": "gate.example.org,"},
        {"new_option": "gate.example.org"},
    ],
)
def test_any_other_destination_is_refused(options: dict[str, Any]) -> None:
    reason = refusal({"destinations": {"allow": ALLOWED}}, assignment(ssh(**options)))
    assert reason.startswith("policy: the ")
    assert reason.endswith(("is not allowed", "is not recognised as a host", "is not recognised"))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (resource(address="evil.net"), "the destination evil.net (address of login) is not allowed"),
        (
            resource(transfer={"kind": "http", "host": "evil.net"}),
            "the destination evil.net (transfer host of login) is not allowed",
        ),
        (
            resource(shell={"kind": "gram", "contact": "evil.net:2119/jobmanager-fork:/O=ce.example.org"}),
            "the destination evil.net (shell contact of login) is not allowed",
        ),
        (
            resource(shell={"kind": "gram", "contact": "ce.example.org", "callback_host": "evil.net"}),
            "the destination evil.net (shell callback_host of login) is not allowed",
        ),
        (resource(shell={"kind": "telnet"}), "the shell 'telnet' of login is not recognised"),
        (resource(shell={}), "the shell None of login is not recognised"),
        (resource(transfer={"kind": ["http"]}), "the transfer ['http'] of login is not recognised"),
    ],
)
def test_every_address_of_a_resource_is_checked(run: Any, expected: str) -> None:
    assert refusal({"destinations": {"allow": ALLOWED}}, assignment(run)) == f"policy: {expected}"


def test_every_bound_resource_is_checked_and_no_other() -> None:
    good, evil = ssh(), resource("evil", shell={"kind": "ssh", "host": "evil.net"})
    keys = {"destinations": {"allow": ALLOWED}}
    assert "evil.net" in refusal(keys, assignment(good, evil))
    assert refusal(keys, assignment(good, evil, bindings={"target": ["login"]})) == ""


def test_the_pattern_star_allows_every_host_but_no_text_that_is_none() -> None:
    keys = {"destinations": {"allow": ["*"]}}
    assert refusal(keys, assignment(ssh(host="192.0.2.1"))) == ""
    assert refusal(keys, assignment(ssh(host="x y"))) != ""


@pytest.mark.parametrize("scratch", ["/scratch/grid", "/scratch/grid/", "/scratch/grid/a/b"])
def test_a_scratch_directory_in_an_allowed_one_is_allowed(scratch: str) -> None:
    assert refusal({"scratch": {"allow": ["/scratch/grid"]}}, assignment(resource(scratch=scratch))) == ""


@pytest.mark.parametrize(
    "scratch",
    [
        "/",
        "/scratch",
        "/scratch/grid2",
        "/scratch/grid/../../etc",
        "/scratch/grid/..",
        "/scratch/./grid",
        "//scratch/grid",
        "/scratch//grid",
        "/scratch/grid/a\nb",
        "/scratch/grid/\x1b[2J",
        "scratch/grid",
        "",
        "~/grid",
        None,
        7,
    ],
)
def test_any_other_scratch_directory_is_refused(scratch: Any) -> None:
    reason = refusal({"scratch": {"allow": ["/scratch/grid"]}}, assignment(resource(scratch=scratch)))
    assert reason == f"policy: the scratch directory {scratch!r} of login is not allowed"


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"identity_file": "/etc/grid/key"}, ""),
        ({"config_file": "~/.ssh/config"}, ""),
        ({"config_file": "/etc/passwd"}, "the file '/etc/passwd' (shell config_file of login)"),
        ({"identity_file": "/etc/grid/../shadow"}, "the file '/etc/grid/../shadow' (shell identity_file"),
        ({"identity_file": "id_rsa"}, "the file 'id_rsa' (shell identity_file of login)"),
        ({"config_file": "~root/.ssh/config"}, "the file '~root/.ssh/config' (shell config_file of login)"),
        ({"secrets": "/etc/grid/key"}, "the shell option 'secrets' of login is not recognised"),
    ],
)
def test_options_name_only_allowed_files(options: dict[str, Any], refused: str) -> None:
    reason = refusal({"files": {"allow": ["/etc/grid", "~/.ssh"]}}, assignment(ssh(**options)))
    assert bool(reason) == bool(refused)
    assert refused in reason


def test_every_directory_of_a_search_path_is_checked() -> None:
    keys = {"files": {"allow": ["/usr/bin", "/bin"]}}
    good = resource(shell={"kind": "local", "path": "/usr/bin:/bin"})
    evil = resource(shell={"kind": "local", "path": "/usr/bin:/tmp/evil"})
    empty = resource(shell={"kind": "local", "path": "/usr/bin:"})  # the current directory
    assert refusal(keys, assignment(good)) == ""
    assert "'/tmp/evil'" in refusal(keys, assignment(evil))
    assert "the file ''" in refusal(keys, assignment(empty))


PLUGINS = "/usr/lib/nagios/plugins"


@pytest.mark.parametrize(
    ("command", "is_allowed"),
    [
        (f"{PLUGINS}/check_disk -w 20%", True),
        (f"{PLUGINS}/check_disk  '-w'   20%", True),  # the same words
        (f"{PLUGINS}/check_load", True),
        (f"{PLUGINS}/check_load -x", False),
        ("sh -c 'rm -rf ~'", False),
        (f"{PLUGINS}/../../bin/sh", False),
        ("", False),
        (f"{PLUGINS}/check_disk 'x", False),
    ],
)
def test_external_probes_run_only_allowed_commands(command: str, is_allowed: bool) -> None:
    keys = {"programs": {"allow": [f"{PLUGINS}/check_disk -w *", f"{PLUGINS}/check_load"]}}
    reason = refusal(keys, assignment(probe="nagios", parameters={"command": command}))
    assert (reason == "") == is_allowed


def test_the_commands_of_privileged_factors_run_only_if_allowed() -> None:
    scheduler = {"levels": ["none", "bfq"], "set": "sudo -n set-scheduler {level}", "read": "get-scheduler"}
    sweep = assignment(probe="storage_sweep", parameters={"settings": json.dumps({"scheduler": scheduler})})
    allowed = ["get-scheduler", "sudo -n set-scheduler none", "sudo -n set-scheduler bfq"]
    assert refusal({"programs": {"allow": allowed}}, sweep) == ""
    for missing in allowed:
        others = [command for command in allowed if command != missing]
        reason = refusal({"programs": {"allow": others}}, sweep)
        assert f"the command {missing!r} (parameter of storage_sweep) is not allowed" in reason


def test_launchers_and_arguments_of_batch_systems_are_commands() -> None:
    keys = {"programs": {"allow": ["mpirun -np ?", "--constraint=*"]}}
    assert refusal(keys) == ""
    fork = resource(batch={"kind": "fork", "launcher": ["mpirun", "-np", "2"]})
    slurm = resource(batch={"kind": "slurm", "extra": ["--constraint=fast nodes"]})
    evil = resource(batch={"kind": "slurm", "extra": ["--prolog=/tmp/evil"]})
    assert refusal(keys, assignment(fork)) == ""
    assert "'--constraint=fast nodes'" in refusal(keys, assignment(slurm))  # quoted: one word
    assert "--prolog=/tmp/evil" in refusal(keys, assignment(evil))


def test_the_meaning_of_every_option_of_every_plugin_is_known() -> None:
    options = {
        name
        for method, registry in (("shell", shells), ("transfer", transfers), ("batch", batch))
        for kind in registry.names()
        for name in option_types(method, kind)
    }
    assert options == set(MEANINGS), "list the option in reporters/remote/policy/options.py"


def test_lasting_reasons_come_first() -> None:
    keys = {"caps": {"cpu_hours_per_day": 0}, "probes": {"forbid": ["disk"]}}
    assert refusal(keys) == "policy: the probe disk is forbidden"


def test_the_cap_on_the_load_is_that_of_the_run_unless_the_run_has_a_lower_one() -> None:
    capped = policy(caps={"load1": 8})
    assert capped.constrained(assignment()).max_load1 == 8
    assert capped.constrained(assignment(max_load1=12.0)).max_load1 == 8
    assert capped.constrained(assignment(max_load1=2.0)).max_load1 == 2
    assert policy().constrained(assignment(max_load1=12.0)).max_load1 == 12


def test_a_file_of_a_run_is_at_most_as_large_as_all_scratch() -> None:
    assert policy(caps={"scratch_bytes": 1000}).constrained(assignment()).max_file_bytes == 1000
    assert (
        policy(caps={"scratch_bytes": 1000}).constrained(assignment(max_file_bytes=10)).max_file_bytes == 10
    )
    assert policy().constrained(assignment()) == assignment()


def test_the_capacity_is_the_lower_one() -> None:
    assert policy(caps={"concurrent_runs": 2}).concurrent_runs(4) == 2
    assert policy(caps={"concurrent_runs": 9}).concurrent_runs(4) == 4
    assert policy().concurrent_runs(4) == 4


def test_a_day_is_that_of_the_sites_clock() -> None:
    late = datetime(2026, 11, 23, 23, 30, tzinfo=UTC)
    assert policy().day(late) == "2026-11-23"
    assert policy(timezone="Europe/Berlin").day(late) == "2026-11-24"


def test_the_summary_tells_what_the_policy_discloses() -> None:
    keys = {
        "probes": {"forbid": ["disk"]},
        "destinations": {"allow": ["secret.example.org"]},
        "caps": {"load1": 7.5},
        "approval": "ask",
    }
    full = policy(**keys).summary()
    redacted = policy(**keys, disclosure="redacted").summary()
    minimal = policy(**keys, disclosure="minimal").summary()
    assert full["rules"]["destinations"] == {"allow": ["secret.example.org"]}
    assert redacted["rules"] == {
        "caps": {"load1": 7.5},
        "destinations": {"allow": 1},
        "probes": {"forbid": ["disk"]},
    }
    assert minimal == {
        "disclosure": "minimal",
        "approval": "ask",
        "rules": {"caps": {"load1": 1}, "destinations": {"allow": 1}, "probes": {"forbid": 1}},
    }


def test_every_rule_has_a_summary_of_its_values() -> None:
    assert set(rules.names()) == {
        "caps",
        "destinations",
        "files",
        "hours",
        "probes",
        "programs",
        "requests",
        "scratch",
        "shells",
    }
