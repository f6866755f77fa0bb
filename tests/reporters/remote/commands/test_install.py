"""``install`` and ``uninstall`` as an operator calls them: the archive, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reporters.remote import agent_process, archive
from reporters.spool.owner import Process
from reporters.spool.spool import Spool
from tests.reporters.remote.services.site_programs import install_cron_programs
from tests.reporters.spool.delivery import REPORTER, Depot, report


class Operator:
    """Calls the reporter with only the programs in *path* and sh at hand; the home directory is *home*."""

    def __init__(self, pyz: Path, path: Path, home: Path) -> None:
        self._pyz = pyz
        self._environment = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(home)}
        self.state = home / ".local" / "state" / "gridcast-reporter"

    def call(self, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", str(self._pyz), *arguments],
            env=self._environment,
            input=input,
            capture_output=True,
            text=True,
            check=False,
        )

    def crontab(self) -> str:
        return subprocess.run(
            ["crontab", "-l"], env=self._environment, capture_output=True, text=True, check=False
        ).stdout


@pytest.fixture
def operator(pyz: Path, tmp_path: Path) -> Operator:
    home = tmp_path / "home"
    home.mkdir()
    operator = Operator(pyz, install_cron_programs(tmp_path, "crontab"), home)
    operator.state.mkdir(parents=True, mode=0o700)
    (operator.state / "identity.json").write_text("{}")
    return operator


def tree(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def test_print_shows_the_lines_and_changes_nothing(operator: Operator, pyz: Path) -> None:
    before = tree(operator.state)
    done = operator.call("install", "--kind=crontab", "--print")
    command = f"{sys.executable} -I {pyz} run --state {operator.state} --quiet --if-not-running"
    assert done.stdout == f"@reboot {command}\n*/5 * * * * {command}\n"
    assert done.stderr == "Add these lines with: crontab -e\n"
    assert tree(operator.state) == before
    assert operator.crontab() == ""


def test_install_copies_the_archive_by_its_digest_and_uninstall_removes_it(
    operator: Operator, pyz: Path
) -> None:
    before = tree(operator.state)
    done = operator.call("install", "--kind=crontab")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("installed: crontab; 2 lines in the crontab")
    has_cron = agent_process.may_run({"cron", "crond"})
    assert ("warning: no cron daemon" in done.stderr) is not has_cron
    content = pyz.read_bytes()
    copy = operator.state / "versions" / f"{archive.digest(content)}.pyz"
    assert copy.read_bytes() == content
    assert str(copy) in (operator.state / "start").read_text()
    assert len(operator.crontab().splitlines()) == 2
    assert operator.call("install").stdout.startswith("unchanged: crontab; ")
    (operator.state / "code" / "0123456789abcdef").mkdir(parents=True, exist_ok=True)  # of the agent
    done = operator.call("uninstall")
    assert done.stdout == "removed: crontab\n"
    assert operator.crontab() == ""
    by_agent = {"code", "owner"}  # the agent may have made these before it was stopped
    assert {name for name in tree(operator.state) if name.split("/")[0] not in by_agent} == before
    assert operator.call("uninstall").stdout == "no service was installed\n"


def test_purge_removes_the_state_directory_once_confirmed(operator: Operator) -> None:
    assert operator.call("install", "--kind=crontab").returncode == 0
    refused = operator.call("uninstall", "--purge", input="y\n")
    assert refused.returncode == 2
    assert "confirm with --yes" in refused.stderr
    assert len(operator.crontab().splitlines()) == 2
    assert operator.call("uninstall", "--purge", "--yes").returncode == 0
    assert not operator.state.exists()
    assert operator.crontab() == ""
    assert operator.call("uninstall", "--purge", "--yes").stdout == (
        f"nothing to remove: there is no {operator.state}\n"
    )


def test_purge_keeps_results_that_are_not_delivered(operator: Operator) -> None:
    spool = Spool(operator.state / "spool", REPORTER)
    spool.append(report(1))
    spool.close()
    refused = operator.call("uninstall", "--purge", "--yes")
    assert refused.returncode == 2
    assert "has 2 records that are not delivered" in refused.stderr  # the start of the chain, and the report
    Depot().deliver(spool)
    assert operator.call("uninstall", "--purge", "--yes").returncode == 0
    assert not operator.state.exists()


def test_purge_drops_results_on_demand(operator: Operator) -> None:
    Spool(operator.state / "spool", REPORTER).append(report(1))
    assert operator.call("uninstall", "--purge", "--yes", "--drop-records").returncode == 0
    assert not operator.state.exists()


def test_the_state_of_an_agent_on_another_host_stays(operator: Operator) -> None:
    assert operator.call("install", "--kind=crontab").returncode == 0
    owner = operator.state / "owner" / "owner"
    owner.parent.mkdir(exist_ok=True)
    owner.write_text(Process(7, "login9", "boot", "", "1").to_text())
    refused = operator.call("uninstall", "--purge", "--yes")
    assert refused.returncode == 2
    assert "an agent on login9, process 7, owns" in refused.stderr
    assert operator.crontab() == ""
    owner.unlink()
    assert operator.call("uninstall", "--purge", "--yes").returncode == 0
    assert not operator.state.exists()


def test_purge_removes_no_directory_of_something_else(operator: Operator, tmp_path: Path) -> None:
    for directory in (operator.state.parents[2], operator.state.parent):
        refused = operator.call("uninstall", "--purge", "--yes", f"--state={directory}")
        assert refused.returncode == 2
        assert "is not the state directory of a reporter" in refused.stderr
    assert operator.state.exists()


def test_a_site_without_any_way_gets_the_reasons(operator: Operator, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    operator._environment["PATH"] = str(tmp_path / "none")
    done = operator.call("install")
    assert done.returncode == 2
    for kind in ("systemd_user: no systemctl", "crontab: no crontab", "slurm: no sbatch", "at: no at"):
        assert f"{kind}" in done.stderr
    assert f"run --state {operator.state}" in done.stderr


def test_a_kind_that_the_site_lacks_is_refused(operator: Operator, tmp_path: Path) -> None:
    operator._environment["PATH"] = str(tmp_path)
    done = operator.call("install", "--kind=at")
    assert done.returncode == 2
    assert (
        "cannot install a job of at that resubmits itself here: no at, atq, atrm on the PATH" in done.stderr
    )


def test_install_needs_an_enrolled_reporter(operator: Operator, tmp_path: Path) -> None:
    done = operator.call("install", "--kind=crontab", f"--state={tmp_path / 'other'}")
    assert done.returncode == 2
    assert "run `enrol` first" in done.stderr
    assert operator.crontab() == ""


def test_a_damaged_record_of_the_service_is_named(operator: Operator) -> None:
    (operator.state / "service.json").write_text("{")
    done = operator.call("uninstall")
    assert done.returncode == 2
    assert f"cannot read {operator.state / 'service.json'}" in done.stderr


def test_the_environment_that_the_agent_needs_is_kept(operator: Operator) -> None:
    operator._environment["HTTPS_PROXY"] = "http://proxy.example.org:3128/?a='b'"
    assert operator.call("install", "--kind=crontab").returncode == 0
    start = operator.state / "start"
    assert start.stat().st_mode & 0o077 == 0
    before_the_agent = start.read_text().rpartition("exec ")[0]
    shown = subprocess.run(
        ["sh", "-c", f'{before_the_agent} printf %s "$HTTPS_PROXY"'],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == operator._environment["HTTPS_PROXY"]
    kept = start.read_text()
    operator._environment["HTTPS_PROXY"] = "http://other.example.org:3128/"
    assert operator.call("install", "--keep-environment").returncode == 0
    assert start.read_text() == kept
    assert operator.call("install").returncode == 0
    assert "other.example.org" in start.read_text()
    operator.call("uninstall")
