"""The crontab service with a real crontab and a real cron."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reporters.remote import agent_process
from reporters.remote.installation import SiteInstallation
from reporters.remote.service import Launch, ServiceFault
from reporters.remote.services.crontab import SiteService
from tests.reporters.remote.services.site_programs import install_cron_programs
from tests.reporters.remote.stand_in_agent import stand_in_agent
from tests.waiting import eventually

OTHERS = b"# a comment \xe9\t\nMAILTO=\"\"\n\n 5 4 * * sun echo 'a%b' # gridcast-reporter\n@reboot true \n"
AGENT = stand_in_agent("one")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = install_cron_programs(tmp_path, "crontab")
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    return directory


def table() -> bytes | None:
    done = subprocess.run(["crontab", "-l"], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def write(content: bytes) -> None:
    subprocess.run(["crontab", "-"], input=content, check=True)


def install(state: Path, content: bytes = AGENT) -> SiteService:
    service, _ = SiteInstallation(state).install("crontab", [], content, os.environ)
    assert isinstance(service, SiteService)
    return service


def started(state: Path) -> list[str]:
    file = state / "starts"
    return file.read_text().splitlines() if file.exists() else []


def test_the_lines_of_others_stay_byte_for_byte(path: Path, state: Path) -> None:
    write(OTHERS)
    service = install(state)
    assert table() == OTHERS + service.text().encode()
    assert SiteInstallation(state).remove() == "crontab"
    assert table() == OTHERS


def test_the_agent_runs_until_the_service_is_removed_and_nothing_is_left(path: Path, state: Path) -> None:
    service = install(state)
    assert eventually(lambda: started(state)) == ["one"]
    assert service.status() == (
        f"2 lines in the crontab, the agent is process {agent_process.pids(state)[0]}"
    )
    SiteInstallation(state).remove()
    assert agent_process.pids(state) == []
    assert table() is None
    assert [file.name for file in state.iterdir()] == ["starts"]


def test_a_second_installation_changes_nothing(path: Path, state: Path) -> None:
    first = install(state)
    assert eventually(lambda: started(state))
    (pid,) = agent_process.pids(state)
    lines = table()
    install(state)
    assert table() == lines == first.text().encode()
    assert agent_process.pids(state) == [pid]


def test_another_version_replaces_the_running_one_and_can_be_replaced_by_it(path: Path, state: Path) -> None:
    expected = []
    for version in ("one", "two", "one"):
        install(state, stand_in_agent(version))
        expected.append(version)
        assert eventually(lambda: started(state) == expected)
    assert len(agent_process.pids(state)) == 1
    assert len(list((state / "versions").iterdir())) == 2


def test_an_agent_is_restarted_on_request(path: Path, state: Path) -> None:
    install(state)
    assert eventually(lambda: started(state) == ["one"])
    SiteInstallation(state).install("crontab", [], AGENT, os.environ, restarts=True)
    assert eventually(lambda: started(state) == ["one", "one"])
    assert len(agent_process.pids(state)) == 1


def test_two_reporters_of_one_account_keep_their_own_lines(path: Path, state: Path, tmp_path: Path) -> None:
    other = tmp_path / "other state"
    other.mkdir()
    mine, others = install(state), install(other)
    SiteInstallation(state).remove()
    assert table() == others.text().encode()
    assert mine.text() != others.text()
    SiteInstallation(other).remove()
    assert table() is None


def test_lines_with_a_changed_schedule_are_removed_too(path: Path, state: Path) -> None:
    service = install(state)
    write(OTHERS + service.text().replace("*/5", "17").encode())
    SiteInstallation(state).remove()
    assert table() == OTHERS


def test_a_crontab_that_cannot_be_read_is_not_replaced(path: Path, state: Path) -> None:
    write(OTHERS)
    (path / "real").write_bytes((path / "crontab").read_bytes())
    (path / "crontab").write_text(
        "#!/bin/sh\necho 'You (ada) are not allowed to use this program' >&2\nexit 1\n"
    )
    assert "not allowed" in SiteService(Launch(state)).unavailable()
    with pytest.raises(ServiceFault, match="not allowed"):
        install(state)
    (path / "crontab").write_bytes((path / "real").read_bytes())
    assert table() == OTHERS


def test_an_installation_that_is_killed_in_the_middle_leaves_a_whole_crontab(path: Path, state: Path) -> None:
    """crontab kills its caller before it reads the new table."""
    write(OTHERS)
    real = path / "real"
    (path / "crontab").rename(real)
    (path / "crontab").write_text(f'#!/bin/sh\n[ "$1" = -l ] || kill -KILL $PPID\nexec {real} "$@"\n')
    (path / "crontab").chmod(0o755)
    code = (
        "import os, pathlib; from reporters.remote.installation import SiteInstallation; "
        f"SiteInstallation(pathlib.Path({str(state)!r})).install('crontab', [], b'', os.environ)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    (path / "crontab").write_bytes(real.read_bytes())  # ``real`` may not have started yet
    expected = OTHERS + SiteService(Launch(state)).text().encode()
    assert eventually(lambda: table() == expected), table()
    SiteInstallation(state).remove()
    assert table() == OTHERS


def test_a_state_directory_that_cron_cannot_name_is_refused(path: Path) -> None:
    assert "%" in SiteService(Launch(Path("/tmp/50%"))).unavailable()


def test_cron_starts_the_agent_at_boot(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = install_cron_programs(tmp_path, "crontab", "cron")
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    install(state)
    assert eventually(lambda: started(state))
    agent_process.stop(state)  # as a reboot does
    with subprocess.Popen([directory / "cron", "-f"]) as cron:
        try:
            assert eventually(lambda: started(state) == ["one", "one"])
        finally:
            cron.kill()
    SiteInstallation(state).remove()
    assert agent_process.pids(state) == []
