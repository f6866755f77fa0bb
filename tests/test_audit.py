"""What a release is audited by: advisories, the bill of materials, and the tests of the threat model."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.core.env import ROOT

AUDIT = ROOT / ".ci" / "audit.py"
ADVISORY = """
id: PYSEC-0000-1
aliases: [CVE-0000-1]
details: Something can be injected.
affected:
- package: {ecosystem: PyPI, name: Django}
  ranges:
  - type: ECOSYSTEM
    events:
    - {introduced: "4.2"}
    - {fixed: 4.2.15}
    - {introduced: "5.0"}
    - {fixed: 5.0.8}
"""


def audit(*arguments: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(AUDIT), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def locked(directory: Path, version: str) -> Path:
    file = directory / "requirements.txt"
    file.write_text(
        f"amqp==5.3.1 \\\n    --hash=sha256:00\n    # via kombu\ndjango=={version} \\\n    --hash=sha256:11\n"
    )
    return file


@pytest.fixture
def advisories(tmp_path: Path) -> Path:
    directory = tmp_path / "vulns" / "django"
    directory.mkdir(parents=True)
    (directory / "PYSEC-0000-1.yaml").write_text(ADVISORY)
    return tmp_path / "vulns"


@pytest.mark.parametrize("version", ["4.2", "4.2.14", "5.0", "5.0.7", "5.0.8rc1"])
def test_a_locked_version_with_a_known_fault_is_found(tmp_path: Path, advisories: Path, version: str) -> None:
    done = audit(advisories, locked(tmp_path, version))
    assert done.returncode == 1, done.stderr
    assert f"django {version}: PYSEC-0000-1, CVE-0000-1: Something can be injected." in done.stdout


@pytest.mark.parametrize("version", ["4.1.9", "4.2.15", "4.2.16", "5.0.8", "5.2"])
def test_a_version_before_the_fault_or_with_its_mend_is_none(
    tmp_path: Path, advisories: Path, version: str
) -> None:
    done = audit(advisories, locked(tmp_path, version))
    assert (done.returncode, done.stdout) == (0, "2 packages, 1 advisories, 0 open\n")


def test_an_archive_of_json_is_read_and_withdrawn_advisories_are_not(tmp_path: Path) -> None:
    listed: dict[str, Any] = {"package": {"ecosystem": "PyPI", "name": "amqp"}, "versions": ["5.3.1"]}
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("a.json", json.dumps({"id": "A", "summary": "bad", "affected": [listed]}))
        written.writestr("b.json", json.dumps({"id": "B", "withdrawn": "2026-01-01", "affected": [listed]}))
        other = {**listed, "package": {"ecosystem": "npm", "name": "amqp"}}
        written.writestr("c.json", json.dumps({"id": "C", "affected": [other]}))
    done = audit(archive, locked(tmp_path, "5.2"))
    assert done.stdout.splitlines() == ["amqp 5.3.1: A: bad", "2 packages, 2 advisories, 1 open"]


@pytest.mark.parametrize(("days", "is_open"), [(1, False), (-1, True)])
def test_a_decision_on_an_advisory_is_valid_until_its_last_day(
    tmp_path: Path, advisories: Path, days: int, *, is_open: bool
) -> None:
    copy = tmp_path / "ci"
    copy.mkdir()
    (copy / "audit.py").write_text(AUDIT.read_text())
    until = datetime.now(UTC).date() + timedelta(days=days)
    (copy / "accepted-advisories.txt").write_text(f"# reasons\nCVE-0000-1 {until} not reachable here\n")
    argv = [sys.executable, str(copy / "audit.py"), str(advisories), str(locked(tmp_path, "5.0"))]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == int(is_open)


def test_a_directory_without_advisories_is_no_clean_audit(tmp_path: Path) -> None:
    done = audit(tmp_path, locked(tmp_path, "5.2"))
    assert done.returncode == 2
    assert "has no advisories in the OSV format" in done.stderr


@pytest.mark.nightly
def test_the_bill_of_materials_has_every_locked_dependency_with_its_hashes(tmp_path: Path) -> None:
    file = tmp_path / "gridcast.cdx.json"
    subprocess.run([ROOT / ".ci" / "sbom", sys.executable, file], check=True, capture_output=True)
    bom = json.loads(file.read_text())
    assert (bom["bomFormat"], bom["metadata"]["component"]["name"]) == ("CycloneDX", "gridcast")
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pinned = {line.split(" ")[0] for line in lines if "==" in line}
    assert {f"{each['name']}=={each['version']}" for each in bom["components"]} == pinned
    assert all(each["externalReferences"][0]["hashes"] for each in bom["components"])


def test_every_promise_of_the_threat_model_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[^`]*)`", text)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []
