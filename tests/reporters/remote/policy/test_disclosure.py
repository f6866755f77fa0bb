"""What a site discloses: the property that no withheld text remains, and that a report stays a report."""

from __future__ import annotations

import getpass
import json
import platform
import string
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import probes
from probes import CATEGORIES
from reporters.remote.policy.disclosure import WITHHELD, Disclosure, disclose, known_words
from reporters.remote.policy.document import DISCLOSURES
from reporters.remote.policy.pseudonyms import Pseudonyms, secret_of
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.report import (
    LEVELS,
    OUTCOMES,
    Clock,
    Environment,
    Failure,
    LogLine,
    MetricValue,
    ProbeIdentity,
    Report,
    StageTiming,
    from_json,
    run_id,
    to_json,
)
from reporters.usage import ResourceUsage
from tests.reporters.remote.policy.assignments import resource, ssh

SLOT = datetime(2026, 3, 1, 12, 7, tzinfo=UTC)
SECRET = b"s" * 32
WORDS = {"login1.example.org": "host", "login1": "host", "jdoe": "user"}


def report(**changes: Any) -> Report:
    full = Report(
        run=run_id("gather-main", SLOT),
        series="gather-main",
        slot=SLOT,
        reporter="ncsa",
        probe=ProbeIdentity("gather", "1", "a" * 64),
        parameters={"file_bytes": 100, "command": "/opt/check -H login1", "fast": True},
        started_at=SLOT,
        seconds=12.5,
        outcome="failed",
        reason="compute at ncsa failed: jdoe@login1.example.org: /home/jdoe/.ssh/id: Permission denied",
        stages=(StageTiming("init", "setup", 1.5, 0.0),),
        metrics=(MetricValue("transfer.bytes_per_second", 1e8, "bytes_per_second"),),
        failure=Failure("compute", "ncsa", "cannot reach 192.0.2.7 or 2001:db8::1", 4, "line 1\nline 2"),
        log=(LogLine("info", 0.0, "begin"), LogLine("error", 12.4, "end")),
        environment=Environment("login1.example.org", "Linux 6.1.0", "3.11.7", {"ssh": "OpenSSH_9.2p1"}),
        clock=Clock(SLOT, synchronised=True),
        bindings={"sources": ("anl", "iu"), "compute": ("ncsa",)},
        usage={"ncsa": ResourceUsage(10, 20, 1.5), "elsewhere": ResourceUsage(1, 2, 0.0)},
        extra={"new": "secret"},
    )
    return replace(full, **changes)


def disclosed(original: Report, level: str) -> Report:
    return from_json(disclose(original, level, secret=SECRET, words=WORDS))


def test_full_is_the_report_unchanged() -> None:
    assert disclose(report(), "full", secret=SECRET, words=WORDS) == to_json(report())


def test_redacted_replaces_hosts_users_paths_and_addresses() -> None:
    text = disclose(report(), "redacted", secret=SECRET, words=WORDS).decode()
    for withheld in (
        "login1",
        "example.org",
        "jdoe",
        "/home",
        "192.0.2",
        "2001:db8",
        "line 1",
        "begin",
        "secret",
    ):
        assert withheld not in text
    found = from_json(text)
    assert found.reason.startswith("compute at ncsa failed: user-")
    assert found.reason.endswith(": Permission denied")
    assert found.failure is not None
    assert (found.failure.stage, found.failure.resource, found.failure.exit_status) == ("compute", "ncsa", 4)
    assert found.failure.message.startswith("cannot reach address-")
    assert found.failure.stderr_tail == WITHHELD
    assert [(line.level, line.seconds, line.text) for line in found.log] == [
        ("info", 0.0, WITHHELD),
        ("error", 12.4, WITHHELD),
    ]
    assert found.environment.kernel == "Linux 6.1.0"
    assert found.environment.tools == {"ssh": "OpenSSH_9.2p1"}
    assert (found.metrics, found.stages, found.usage) == (report().metrics, report().stages, report().usage)


def test_minimal_has_ids_times_numbers_and_the_outcome() -> None:
    found = disclosed(report(), "minimal")
    original = report()
    for name in (
        "run",
        "series",
        "slot",
        "reporter",
        "probe",
        "started_at",
        "seconds",
        "outcome",
        "bindings",
    ):
        assert getattr(found, name) == getattr(original, name)
    assert (found.stages, found.metrics, found.clock) == (original.stages, original.metrics, original.clock)
    assert found.failure == Failure("compute", "ncsa", WITHHELD, 4, "")
    assert (found.reason, found.log, found.extra) == ("", (), {})
    assert found.environment == Environment("", "", "")
    assert found.usage == {"ncsa": ResourceUsage(10, 20, 1.5)}
    assert found.parameters["file_bytes"] == 100
    assert found.parameters["fast"] is True
    assert found.parameters["command"].startswith("text-")


def test_the_rule_of_a_policy_is_told_except_by_minimal() -> None:
    skipped = report(
        outcome="skipped", reason="policy: forbidden hours 08:00-18:00 Europe/Berlin", failure=None
    )
    assert disclosed(skipped, "redacted").reason == skipped.reason
    assert disclosed(skipped, "minimal").reason == "policy: not disclosed"
    path = replace(skipped, reason="policy: the file '/etc/secret key' (x) is not allowed")
    assert "secret" not in disclosed(path, "redacted").reason


def test_the_metrics_of_external_programs_are_named_by_pseudonyms() -> None:
    metrics = (MetricValue("perfdata.home_jdoe", 1.0, "seconds"), MetricValue("perfdata.x", 2.0, "jdoes"))
    found = disclosed(report(probe=ProbeIdentity("nagios", "1", ""), metrics=metrics), "minimal").metrics
    assert [metric.value for metric in found] == [1.0, 2.0]
    assert all(metric.name.startswith("metric-") for metric in found)
    assert found[0].unit == "seconds"
    assert found[1].unit.startswith("unit-")


def test_names_that_become_equal_stay_distinct() -> None:
    metrics = (MetricValue("load.LOGIN1", 1.0, "count"), MetricValue("load.login1", 2.0, "count"))
    found = disclosed(report(metrics=metrics), "redacted").metrics
    assert len({metric.name for metric in found}) == 2


def test_a_pseudonym_is_stable_at_a_site_and_different_at_another() -> None:
    here, there = Pseudonyms(SECRET, {}), Pseudonyms(b"t" * 32, {})
    assert here.of("host", "Login1.example.org") == here.of("host", "login1.example.org")
    assert here.of("host", "login1") != there.of("host", "login1")
    assert here.in_text("to login1.example.org.") == f"to {here.of('host', 'login1.example.org')}."


@pytest.mark.parametrize(
    ("text", "withheld"),
    [
        ("ssh://me@gate:22/x refused", ["me", "gate"]),
        ("cannot write '/home/j doe/a b/c': full", ["doe", "home", "a b"]),
        ('cannot write "~/j doe/c": full', ["doe"]),
        ("mail to j.doe+x@example.org bounced", ["doe", "example"]),
        ("scp ~jdoe/file relative/path ./a/b ../c", ["jdoe", "file", "relative", "a/b"]),
        ("from [2001:db8::7]:22 and fe80::1%eth0", ["2001", "db8", "fe80", "eth0"]),
        ("host=a.b.example.org,port=1", ["example", "a.b"]),
        ("gsiftp://a.b:2811/d/e", ["a.b", "2811"]),
        ("Login1 and LOGIN1: x", ["ogin1", "OGIN1"]),
        ("xlogin1_y login1-z", []),
        ("jdoe: not in the sudoers file", ["jdoe"]),
    ],
)
def test_redaction_finds_names_in_texts(text: str, withheld: list[str]) -> None:
    redacted = Pseudonyms(SECRET, WORDS).in_text(text)
    for part in withheld:
        assert part not in redacted


@pytest.mark.parametrize(
    "text",
    [
        "12.5 MB in 3.25 s (3.85 MB/s)".replace("MB/s", "MBps"),
        "exit status 255; Python 3.9.18; OpenSSH_9.2p1",
        "compute at ncsa failed: Permission denied.",
        "at most 4 CPU hours a day, 4.20 are used",
        "",
    ],
)
def test_redaction_leaves_other_texts(text: str) -> None:
    assert Pseudonyms(SECRET, WORDS).in_text(text) == text


def test_hosts_and_users_of_resources_are_known_words() -> None:
    words = known_words(
        [
            ssh(user="grid7", jump="me@gate9.example.org:22,192.0.2.1"),
            resource(address="ce3.example.org", transfer={"kind": "http", "host": "se4.example.org"}),
        ]
    )
    assert words["gate9.example.org"] == words["gate9"] == words["se4"] == words["ce3"] == "host"
    assert words["192.0.2.1"] == words[platform.node()] == "host"
    assert words["grid7"] == words[getpass.getuser()] == "user"
    assert "192" not in words
    assert "login" not in words, "login is a probe"


def test_the_secret_is_made_once_and_private(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    secret = secret_of(state)
    assert secret == secret_of(state)
    assert len(secret) == 32
    assert (tmp_path / "pseudonyms.key").stat().st_mode & 0o077 == 0
    (tmp_path / "pseudonyms.key").write_bytes(b"")
    with pytest.raises(StateError, match="expected 32 bytes, got 0"):
        secret_of(state)


def exchange() -> dict[str, Any]:
    return {
        "hostname": "login1.example.org",
        "python": "3.9.18",
        "assignment": {"version": 7, "error": "cannot write /home/jdoe/x"},
        "policy": {"status": "in_force", "sha256": "", "error": "", "summary": {}},
        "messages": [{"at": "2026-11-23T06:00:00Z", "level": "warning", "text": "login1 is slow"}],
    }


def test_the_status_of_an_exchange_is_disclosed_like_a_report() -> None:
    assert Disclosure("full", SECRET, WORDS).status(exchange()) == exchange()
    redacted = Disclosure("redacted", SECRET, WORDS).status(exchange())
    minimal = Disclosure("minimal", SECRET, WORDS).status(exchange())
    assert redacted["messages"][0]["text"].endswith(" is slow")
    assert minimal["messages"] == [{**exchange()["messages"][0], "text": WITHHELD}]
    assert minimal["assignment"] == {"version": 7, "error": WITHHELD}
    for status in (redacted, minimal):
        assert "login1" not in json.dumps(status)
        assert "jdoe" not in json.dumps(status)
        assert status["hostname"].startswith("host-")


# Free texts are made of letters that occur nowhere else, so that each piece of four would be found.
free = st.text("QXJ", min_size=4, max_size=30)
names = st.text(string.ascii_lowercase, min_size=1, max_size=10)
seconds = st.floats(0, 1e6)
values = st.integers(-(2**63), 2**63 - 1) | st.booleans() | free | st.lists(free, max_size=2)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Draw a report in which every text that a program or a site wrote consists of Q, X and J."""
    series, role = draw(names), draw(names)
    bound = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    failures = st.builds(
        Failure,
        names | free,
        st.none() | st.sampled_from(bound) | free,
        free,
        st.none() | st.integers(0, 255),
        free,
    )
    metrics = st.builds(MetricValue, free, st.floats(allow_nan=False, allow_infinity=False), free)
    stages = st.builds(StageTiming, names, st.sampled_from(CATEGORIES), seconds, seconds)
    return Report(
        run=run_id(series, SLOT),
        series=series,
        slot=SLOT,
        reporter=draw(names),
        probe=ProbeIdentity(draw(st.sampled_from(["nagios", "inca", "gone"])), "1", "0" * 64),
        parameters=draw(st.dictionaries(names, values, max_size=4)),
        started_at=SLOT,
        seconds=draw(seconds),
        outcome=draw(st.sampled_from(OUTCOMES)),
        reason=draw(free | free.map(lambda text: f"policy: {text}")),
        stages=tuple(draw(st.lists(stages, max_size=3, unique_by=lambda stage: stage.name))),
        metrics=tuple(draw(st.lists(metrics, max_size=5, unique_by=lambda metric: metric.name))),
        failure=draw(st.none() | failures.filter(lambda failure: failure.stage.islower())),
        log=tuple(draw(st.lists(st.builds(LogLine, st.sampled_from(LEVELS), seconds, free), max_size=4))),
        environment=Environment(
            draw(free), draw(free), draw(free), draw(st.dictionaries(free, free, max_size=2))
        ),
        clock=Clock(SLOT, draw(st.booleans())),
        bindings={role: tuple(bound)},
        usage=draw(
            st.dictionaries(st.sampled_from(bound) | free, st.just(ResourceUsage(1, 2, 3.0)), max_size=3)
        ),
        extra=draw(st.dictionaries(free, values, max_size=2)),
    )


@given(reports())
def test_no_free_text_remains_in_a_minimal_report(original: Report) -> None:
    data = disclose(original, "minimal", secret=SECRET, words={}).decode()
    assert not set("QXJ") & set(data)
    found = from_json(data)
    assert [metric.value for metric in found.metrics] == [metric.value for metric in original.metrics]
    assert (found.run, found.outcome, found.seconds) == (original.run, original.outcome, original.seconds)


anything = st.text(max_size=40)


@given(reports(), anything, anything, st.dictionaries(names, anything), st.sampled_from(list(DISCLOSURES)))
def test_a_disclosed_report_is_a_report_whatever_its_texts(
    original: Report, text: str, other: str, parameters: dict[str, str], level: str
) -> None:
    changed = replace(
        original,
        reason=text,
        parameters=parameters,
        log=(LogLine("info", 0.0, other),),
        failure=Failure("s", text, other, None, text),
        environment=Environment(text, other, text, {other: text}),
    )
    found = disclosed(changed, level)
    assert (found.run, found.outcome) == (original.run, original.outcome)


@pytest.mark.parametrize("name", probes.names())
def test_a_stage_of_a_real_probe_keeps_its_name(name: str) -> None:
    stages = tuple(StageTiming(stage.name, stage.category, 1.0, 0.0) for stage in probes.load(name).stages)
    found = disclosed(report(probe=ProbeIdentity(name, "1", ""), stages=stages), "minimal")
    assert found.stages == stages
