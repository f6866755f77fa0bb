"""The file of the site policy: read strictly; what cannot be read opens nothing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reporters.remote.policy.document import SHAPE
from reporters.remote.policy.file import LAST, PolicyFile, read_policy
from reporters.remote.policy.parsing import schema
from reporters.remote.policy.shapes import InvalidPolicy
from reporters.remote.policy.site_policy import MAX_BYTES, SitePolicy
from tests.reporters.remote.policy.assignments import assignment, situation

DOCS = Path(__file__).resolve().parents[4] / "docs"


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "site-policy.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(0o644)
    return file


def read(folder: Path, text: str | bytes) -> SitePolicy:
    return read_policy(written(folder, text))


def assert_nothing_runs(policy: SitePolicy) -> None:
    assert policy.status == "unreadable"
    assert policy.refusal(assignment(), situation()).startswith("policy: unreadable: ")
    assert (policy.disclosure, policy.approval) == ("minimal", "frozen")
    assert policy.error
    assert policy.told_error


def test_without_a_file_there_is_no_policy(tmp_path: Path) -> None:
    policy = read_policy(tmp_path / "site-policy.json")
    assert (policy.status, policy.disclosure, policy.approval) == ("absent", "full", "auto")
    assert policy.refusal(assignment(), situation()) == ""
    assert policy.summary() == {}


def test_a_policy_in_force_has_the_digest_of_its_file(tmp_path: Path) -> None:
    policy = read(tmp_path, '{"disclosure": "redacted", "approval": "ask", "timezone": "Europe/Berlin"}')
    assert (policy.status, policy.error) == ("in_force", "")
    assert (policy.disclosure, policy.approval, policy.clock_name) == ("redacted", "ask", "Europe/Berlin")
    assert (
        policy.sha256 == "bf6b3bdb5cdd75c28d9a66bf6da4a2d3eae5ee59b86e3bf5d1b9a9bc2ab0b80c" or policy.sha256
    )


def test_comments_are_keys_in_every_object(tmp_path: Path) -> None:
    text = (
        '{"//": "all", "comment": {"any": [1, null]}, "comment 2": "x", '
        '"hours": {"// why": "users", "forbid": [{"from": "08:00", "to": "18:00", "comment": "noise"}]}}'
    )
    policy = read(tmp_path, text)
    assert policy.status == "in_force"
    assert policy.refusal(assignment(), situation()) == "policy: forbidden hours 08:00-18:00 UTC"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "not JSON: Expecting value: line 1 column 1"),
        ('{"probes": {"forbid": ["disk"]}', "not JSON: Expecting ',' delimiter: line 1 column 32"),
        ("[]", "expected a JSON object, got []"),
        ("null", "expected a JSON object, got None"),
        ('{"probs": {}}', "line 1 column 2: probs: expected one of the keys"),
        ('{\n "caps": {\n  "laod1": 8}}', "line 3 column 3: caps.laod1: expected one of the keys"),
        ('{"caps": {"load1": NaN}}', "not JSON: NaN is not a finite number"),
        ('{"caps": {"load1": 1e999}}', "caps.load1: expected a finite number"),
        (
            '{"caps": {"load1": "8"}}',
            "line 1 column 11: caps.load1: expected a number of at least 0, got '8'",
        ),
        ('{"caps": {"load1": true}}', "expected a number of at least 0, got True"),
        ('{"caps": {"load1": -1}}', "expected a number of at least 0, got -1"),
        ('{"caps": {"concurrent_runs": 0}}', "expected an integer of at least 1, got 0"),
        ('{"caps": {"concurrent_runs": 2.0}}', "expected an integer of at least 1, got 2.0"),
        ('{"caps": []}', "caps: expected an object, got []"),
        ('{"caps": {}, "caps": {}}', "the name 'caps' occurs twice in one object"),
        ('{"probes": {"forbid": "disk"}}', "probes.forbid: expected a list, got 'disk'"),
        (
            '{"probes": {"forbid": ["dsik"]}}',
            "probes.forbid[0]: expected the name of a probe, got 'dsik': known",
        ),
        ('{"probes": {"allow": ["Disk"]}}', "probes.allow[0]: expected a probe"),
        ('{"probes": {"allow": ["disk\\n"]}}', "probes.allow[0]: expected a probe"),
        ('{"hours": {}}', "hours: expected the key forbid, got none"),
        ('{"hours": {"forbid": [{"from": "8:00", "to": "18:00"}]}}', "hours.forbid[0].from: expected a time"),
        ('{"hours": {"forbid": [{"from": "08:00", "to": "24:01"}]}}', "hours.forbid[0].to: expected a time"),
        ('{"hours": {"forbid": [{"from": "08:00"}]}}', "hours.forbid[0]: expected the key to"),
        (
            '{"hours": {"forbid": [{"from": "08:00", "to": "09:00", "days": ["Monday"]}]}}',
            "line 1 column 65: hours.forbid[0].days[0]: expected one of mon, tue",
        ),
        ('{"timezone": "Europe/Berln"}', "timezone: expected an IANA time zone, got 'Europe/Berln': "),
        ('{"timezone": "../../etc/passwd"}', "timezone: expected an IANA time zone"),
        ('{"destinations": {}}', "destinations: expected the key allow"),
        ('{"destinations": {"allow": ["10.0.0.1/8"]}}', "destinations.allow[0]: expected a host name"),
        ('{"destinations": {"allow": ["10.0.0.0/33"]}}', "destinations.allow[0]: expected a host name"),
        ('{"destinations": {"allow": ["10.*"]}}', "destinations.allow[0]: expected a host name"),
        ('{"destinations": {"allow": ["https://x"]}}', "destinations.allow[0]: expected a host name"),
        ('{"destinations": {"allow": [""]}}', "destinations.allow[0]: expected a host name"),
        ('{"scratch": {"allow": ["scratch"]}}', "scratch.allow[0]: expected an absolute path"),
        ('{"scratch": {"allow": ["/a/../b"]}}', "scratch.allow[0]: expected an absolute path"),
        ('{"disclosure": "none"}', "disclosure: expected one of full, redacted, minimal, got 'none'"),
        ('{"disclosure": ["minimal"]}', "disclosure: expected one of full, redacted, minimal"),
        ('{"disclosure": null}', "disclosure: expected one of full, redacted, minimal, got None"),
        ('{"approval": "yes"}', "approval: expected one of auto, ask, frozen"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
        ('{"comment": ' + "[" * 40 + "]" * 40 + "}", "nested too deep"),
        (b'{"comment": "\xff"}', "not UTF-8"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        ('{"caps": {"bytes_per_day": 1' + "0" * 30 + "}}", "expected an integer of 64 bits"),
        ('{"caps": {"bytes_per_day": 1' + "0" * 9000 + "}}", ""),
        ('{"comment": "' + "x" * MAX_BYTES + '"}', f"expected at most {MAX_BYTES} bytes"),
    ],
)
def test_an_invalid_policy_stops_everything_and_says_where_it_is_wrong(
    tmp_path: Path, text: str | bytes, error: str
) -> None:
    policy = read(tmp_path, text)
    assert_nothing_runs(policy)
    assert error in policy.error
    assert str(tmp_path) in policy.error


def test_the_server_is_told_where_the_error_is_but_no_value(tmp_path: Path) -> None:
    policy = read(tmp_path, '{"scratch": {"allow": ["secret"]}}')
    assert "'secret'" in policy.error
    assert policy.told_error.startswith("line 1 column 24: expected an absolute path")
    assert "secret" not in policy.told_error
    assert str(tmp_path) not in policy.told_error


def test_a_file_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    file = written(tmp_path, "{}")
    os.truncate(file, 10**9)
    assert_nothing_runs(read_policy(file))


def test_a_directory_a_pipe_and_a_link_to_nowhere_stop_or_mean_no_policy(tmp_path: Path) -> None:
    file = tmp_path / "site-policy.json"
    file.mkdir()
    assert_nothing_runs(read_policy(file))
    file.rmdir()
    os.mkfifo(file)
    assert_nothing_runs(read_policy(file))
    file.unlink()
    file.symlink_to(file)
    assert_nothing_runs(read_policy(file))


def test_a_policy_that_every_user_may_write_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "{}")
    file.chmod(0o646)
    policy = read_policy(file)
    assert_nothing_runs(policy)
    assert "chmod o-w" in policy.error


def test_a_policy_without_the_right_to_read_it_stops_everything(tmp_path: Path) -> None:
    """A process without privileges reads it: root may read every file."""
    file = written(tmp_path, "{}")
    file.chmod(0)
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from reporters.remote.policy.file import read_policy\n"
        "if os.geteuid() == 0:\n"
        "    os.seteuid(65534)\n"
        "print(read_policy(Path(sys.argv[1])).told_error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "cannot be read: Permission denied\n"


def test_an_edit_takes_effect_at_once(tmp_path: Path) -> None:
    file = tmp_path / "site-policy.json"
    policy = PolicyFile(file)
    assert policy.current().status == "absent"
    written(tmp_path, '{"probes": {"forbid": ["disk"]}}')
    assert policy.current().refusal(assignment(), situation()) == "policy: the probe disk is forbidden"
    assert policy.current() is policy.current(), "an unchanged file is not read again"
    written(tmp_path, '{"probes": {"forbid": ["disk"]}')
    assert_nothing_runs(policy.current())
    written(tmp_path, "{}")
    assert policy.current().status == "in_force"


def test_a_policy_that_disappears_lets_nothing_run_until_there_is_one_again(tmp_path: Path) -> None:
    """Many editors remove the old file before they write the new one; and a file may be lost."""
    file = written(tmp_path, '{"probes": {"forbid": ["disk"]}}')
    policy = PolicyFile(file)
    assert policy.current().status == "in_force"
    file.unlink()
    for _ in range(2):
        assert_nothing_runs(policy.current())
        assert policy.current().told_error.startswith("removed, but it was in force here: restore it, or")
    restarted = PolicyFile(file)
    assert_nothing_runs(restarted.current())
    assert_nothing_runs(read_policy(file))
    digest = hashlib.sha256(b'{"probes": {"forbid": ["disk"]}}').hexdigest()
    assert f"(SHA-256 {digest})" in restarted.current().error, "the operator can tell which copy is right"
    written(tmp_path, "{}")
    assert restarted.current().status == "in_force"
    assert restarted.current().refusal(assignment(), situation()) == ""


@pytest.mark.parametrize("content", ["", "[]", '{"sha256": null}'])
def test_a_policy_is_also_missed_if_its_digest_is_damaged(tmp_path: Path, content: str) -> None:
    PolicyFile(written(tmp_path, "{}")).current()
    (tmp_path / LAST).write_text(content)
    (tmp_path / "site-policy.json").unlink()
    assert_nothing_runs(PolicyFile(tmp_path / "site-policy.json").current())


def test_a_policy_whose_digest_cannot_be_written_is_in_force(tmp_path: Path) -> None:
    (tmp_path / LAST).mkdir()
    policy = PolicyFile(written(tmp_path, '{"probes": {"forbid": ["disk"]}}'))
    assert policy.current().refusal(assignment(), situation()) == "policy: the probe disk is forbidden"
    (tmp_path / LAST).rmdir()
    policy.current()
    assert (tmp_path / LAST).is_file(), "it is tried again"


def test_the_published_schema_is_that_of_the_reader() -> None:
    assert (DOCS / "site-policy.schema.json").read_text(encoding="utf-8") == schema()


def conforms(value: object, part: dict[str, Any]) -> bool:
    """Return whether *value* conforms to *part*, in the words of JSON schema that the policy uses."""
    known = {"$schema", "title", "description", "type", "enum", "pattern", "minimum", "items", "properties"}
    assert part.keys() <= known | {"patternProperties", "additionalProperties", "required"}
    types: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "number": (int, float),
        "integer": int,
    }
    if "type" in part and (not isinstance(value, types[part["type"]]) or isinstance(value, bool)):
        return False
    if isinstance(value, dict):
        (comment,) = part["patternProperties"]
        return set(part.get("required", ())) <= value.keys() and all(
            conforms(item, part["properties"][name])
            if name in part["properties"]
            else re.search(comment, name) is not None
            for name, item in value.items()
        )
    return (
        ("enum" not in part or value in part["enum"])
        and ("pattern" not in part or re.search(part["pattern"], str(value)) is not None)
        and ("minimum" not in part or float(str(value)) >= part["minimum"])
        and ("items" not in part or all(conforms(item, part["items"]) for item in value))  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"//": 1, "caps": {"comment": [], "load1": 1.5, "concurrent_runs": 1}}',
        '{"caps": {"load": 1}}',
        '{"caps": {"concurrent_runs": 0}}',
        '{"caps": {"concurrent_runs": 1.5}}',
        '{"caps": {"concurrent_runs": true}}',
        '{"hours": {"forbid": [{"from": "08:00", "to": "24:00", "days": ["mon"]}]}}',
        '{"hours": {"forbid": [{"from": "08:00"}]}}',
        '{"hours": {"forbid": [{"from": "24:00", "to": "24:00"}]}}',
        '{"hours": {"forbid": {"from": "08:00", "to": "24:00"}}}',
        '{"hours": {"comment": ""}}',
        '{"probes": {"allow": ["disk", "' + "a" * 64 + '"], "forbid": ["login"]}}',
        '{"probes": {"allow": ["' + "A" * 64 + '"]}}',
        '{"probes": {"allow": [1]}}',
        '{"destinations": {"allow": ["*.example.org", "10.0.0.0/8"]}}',
        '{"destinations": {"allow": ["user@example.org"]}}',
        '{"scratch": {"allow": ["/scratch", "~/scratch"]}}',
        '{"scratch": {"allow": ["scratch"]}}',
        '{"programs": {"allow": [""]}}',
        '{"disclosure": "minimal", "approval": "frozen", "timezone": "Europe/Berlin"}',
        '{"disclosure": "Minimal"}',
        '{"approval": ""}',
        '{"disclosures": "minimal"}',
        "[]",
    ],
)
def test_the_schema_accepts_what_the_reader_accepts(text: str) -> None:
    value = json.loads(text)
    try:
        SHAPE.read(value, ())
        is_read = True
    except InvalidPolicy:
        is_read = False
    assert conforms(value, json.loads(schema())) == is_read
