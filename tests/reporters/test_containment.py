"""Nothing of a run survives at the reporter's host, whichever processes are killed."""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reporters import cgroup, process
from reporters.containment import Containment, ProcessLimits
from tests.reporters.ssh_sites import processes_naming
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
# NUMBER FILE ENVIRONMENT WORD [stay]: leaves NUMBER processes outside its session that ignore SIGTERM, writes
# its parent (the guardian) into FILE, and ends or stays.
ESCAPE = """
import os, signal, sys, time
number, file, environment, word, *stay = sys.argv[1:]
for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(name, signal.SIG_IGN)
guardian = os.getppid()
sleep = "import time; time.sleep(600)"
for _ in range(int(number)):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if environment == "forget":
                os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", sleep, word], {})
            time.sleep(600)
        os._exit(0)
    os.wait()
with open(file + ".part", "w") as ready:
    ready.write(str(guardian))
os.rename(file + ".part", file)
if stay:
    time.sleep(600)
"""
# FILE WORD: writes its parent into FILE; leaves a process that forks and exits, and so on, again and again.
CHAIN = """
import os, signal, sys, time
file, word, *stay = sys.argv[1:]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
guardian = os.getppid()
if os.fork() == 0:
    os.setsid()
    while True:
        if os.fork():
            os._exit(0)
with open(file + ".part", "w") as ready:
    ready.write(str(guardian))
os.rename(file + ".part", file)
time.sleep(600 if stay else 0.1)
"""
REPORTER = """
import sys
from reporters import cgroup, process
from reporters.containment import Containment
group = cgroup.own_group() if sys.argv[1] == "scope" else None
process.run(sys.argv[2:], timeout_seconds=600, containment=Containment(group=group))
"""
SWEEP = "from reporters.containment import end_earlier_lives; end_earlier_lives()"
NUMBERS = [100, pytest.param(1000, marks=pytest.mark.nightly)]


@dataclass
class Escape:
    """A program that leaves *number* processes behind; all of them have *word* as an argument."""

    number: int
    file: Path
    environment: str
    word: str

    def argv(self, *stay: str) -> list[str]:
        arguments = (str(self.number), str(self.file), self.environment, self.word, *stay)
        return [sys.executable, "-I", "-S", "-c", ESCAPE, *arguments]

    def guardian(self) -> int:
        """Wait until the processes are there; return the process id of the guardian."""
        assert eventually(self.file.exists)
        assert len(self.processes()) > self.number
        return int(self.file.read_text())

    def processes(self) -> list[int]:
        return processes_naming(self.word)

    def are_gone(self) -> bool:
        return eventually(lambda: not self.processes())


@pytest.fixture
def escape(tmp_path: Path) -> Iterator[Escape]:
    made = Escape(100, tmp_path / "ready", "keep", f"escape-{secrets.token_hex(8)}")
    yield made
    for pid in made.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=["tags", "scope"])
def group(request: pytest.FixtureRequest) -> Path | None:
    return delegated_group() if request.param == "scope" else None


def delegated_group() -> Path:
    own = cgroup.own_group()
    scope = cgroup.open_scope(f"test-{secrets.token_hex(8)}", own)
    if own is None or scope is None:
        pytest.skip("no control group (version 2) is delegated to this user")
    scope.remove()
    return own


@pytest.mark.parametrize("number", NUMBERS)
def test_processes_that_outlive_their_program_are_killed_and_counted(
    escape: Escape, group: Path | None, number: int
) -> None:
    escape.number = number
    containment = Containment(group=group)
    assert process.run(escape.argv(), timeout_seconds=600, containment=containment).returncode == 0
    assert escape.are_gone()
    assert containment.end()[0] == number


@pytest.mark.parametrize("number", NUMBERS)
def test_nothing_survives_a_killed_guardian(escape: Escape, group: Path | None, number: int) -> None:
    escape.number = number
    containment = Containment(group=group)
    with process.start(escape.argv("stay"), containment=containment) as running:
        os.kill(escape.guardian(), signal.SIGKILL)
        with pytest.raises(process.GuardianLost):
            running.wait(600)
    survivors, _ = containment.end()
    assert escape.are_gone()
    assert survivors >= number


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("is_guardian_killed", [False, True], ids=["reporter", "reporter-and-guardian"])
def test_nothing_survives_a_killed_reporter(
    escape: Escape, group: Path | None, number: int, is_guardian_killed: bool
) -> None:
    escape.number = number
    kind = "scope" if group else "tags"
    argv = [sys.executable, "-c", REPORTER, kind, *escape.argv("stay")]
    reporter = subprocess.Popen(argv, cwd=ROOT)
    try:
        guardian = escape.guardian()
    finally:
        reporter.kill()
        if is_guardian_killed:
            os.kill(guardian, signal.SIGKILL)
        reporter.wait()
    if not is_guardian_killed:
        assert escape.are_gone()
    subprocess.run([sys.executable, "-c", SWEEP], cwd=ROOT, check=True)
    assert escape.are_gone()
    assert group is None or not list(group.glob(f"gridcast-*-{reporter.pid}-*"))


@pytest.mark.parametrize(
    "is_guardian_killed",
    [pytest.param(False, marks=pytest.mark.nightly, id="alive"), pytest.param(True, id="guardian-killed")],
)
def test_processes_that_fork_and_exit_again_and_again_are_caught(
    escape: Escape, group: Path | None, is_guardian_killed: bool
) -> None:
    escape.number = 0
    stay = ["stay"] if is_guardian_killed else []
    argv = [sys.executable, "-I", "-S", "-c", CHAIN, str(escape.file), escape.word, *stay]
    containment = Containment(group=group)
    with process.start(argv, containment=containment) as running:
        if is_guardian_killed:
            os.kill(escape.guardian(), signal.SIGKILL)
            with pytest.raises(process.GuardianLost):
                running.wait(60)
        else:
            assert running.wait(60).returncode == 0
    assert containment.end()[0] > 0
    assert not any(escape.processes() for _ in range(30))  # a look may miss such a process


def test_a_scope_holds_a_process_that_forgot_its_environment(escape: Escape) -> None:
    escape.number, escape.environment = 3, "forget"
    containment = Containment(group=delegated_group())
    with process.start(escape.argv("stay"), containment=containment) as running:
        os.kill(escape.guardian(), signal.SIGKILL)
        with pytest.raises(process.GuardianLost):
            running.wait(60)
    survivors, cpu_seconds = containment.end()
    assert escape.are_gone()
    assert survivors >= 3
    assert cpu_seconds is not None
    assert cpu_seconds > 0


def test_a_scope_is_removed_at_the_end_even_with_groups_below_it() -> None:
    own = delegated_group()
    scope = cgroup.open_scope(f"test-{secrets.token_hex(8)}", own)
    assert scope is not None
    (directory,) = own.glob("gridcast-test-*")
    (directory / "inner").mkdir()
    sleeper = subprocess.Popen(["sleep", "600"])
    (directory / "inner" / "cgroup.procs").write_text(str(sleeper.pid))
    assert scope.kill() == {sleeper.pid}
    assert sleeper.wait() == -signal.SIGKILL
    scope.remove()
    assert not directory.exists()


def test_the_processes_of_a_living_reporter_are_left_alone(escape: Escape, group: Path | None) -> None:
    with process.start(escape.argv("stay"), containment=Containment(group=group)) as running:
        escape.guardian()
        before = escape.processes()
        subprocess.run([sys.executable, "-c", SWEEP], cwd=ROOT, check=True)
        assert escape.processes() == before
        assert running.poll() is None


def test_the_processes_of_another_program_of_the_run_are_left_alone(escape: Escape) -> None:
    containment = Containment()
    with process.start(["cat"], containment=containment) as other:
        with process.start(escape.argv("stay"), containment=containment) as running:
            os.kill(escape.guardian(), signal.SIGKILL)
            with pytest.raises(process.GuardianLost):
                running.wait(60)
        other.close_input()
        assert other.wait(60).returncode == 0


def test_a_program_that_ends_in_order_leaves_no_survivor(group: Path | None) -> None:
    containment = Containment(group=group)
    assert process.run(["true"], timeout_seconds=60, containment=containment).returncode == 0
    with pytest.raises(process.ProgramMissing):
        process.run(["no-such-program"], timeout_seconds=60, containment=containment)
    with pytest.raises(process.TimedOut):
        process.run(["sleep", "600"], timeout_seconds=0.1, containment=containment)
    assert containment.end()[0] == 0


def test_a_tag_is_in_the_environment_of_the_program_and_not_in_that_of_its_guardian(escape: Escape) -> None:
    with process.start(escape.argv("stay"), containment=Containment()):
        guardian = escape.guardian()
        assert b"GRIDCAST_RUN=" not in Path(f"/proc/{guardian}/environ").read_bytes()
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in escape.processes()]
        assert len(environments) == escape.number + 1
        assert all(environment.count(b"GRIDCAST_RUN=") == 1 for environment in environments)


def test_limits_hold_for_limited_programs_and_their_children(tmp_path: Path) -> None:
    containment = Containment(ProcessLimits(cpu_seconds=1234, file_bytes=512 * 100))
    script = 'sh -c "ulimit -c; ulimit -t; ulimit -f"; ulimit -Ht'
    done = process.run(["sh", "-c", script], timeout_seconds=60, containment=containment, limited=True)
    assert done.stdout == "0\n1234\n100\n1234\n"
    write = ["dd", "if=/dev/zero", f"of={tmp_path / 'large'}", "bs=512", "count=200"]
    done = process.run(write, timeout_seconds=60, containment=containment, limited=True)
    assert done.returncode == -signal.SIGXFSZ
    assert (tmp_path / "large").stat().st_size == 512 * 100


def test_programs_that_are_not_limited_keep_the_limits_of_the_reporter() -> None:
    containment = Containment(ProcessLimits(cpu_seconds=1234))
    done = process.run(["sh", "-c", "ulimit -t"], timeout_seconds=60, containment=containment)
    own = resource.getrlimit(resource.RLIMIT_CPU)[0]
    assert done.stdout.strip() == ("unlimited" if own == resource.RLIM_INFINITY else str(own))


def test_a_limit_is_never_raised() -> None:
    script = "ulimit -t 77; echo ready; read -r _; ulimit -t; ulimit -Ht"
    with process.start(["sh", "-c", script]) as running:
        assert running.wait_for_output(lambda text: "ready" in text, 60)
        (pid,) = (int(pid) for pid in processes_naming(script) if is_shell(pid))
        ProcessLimits(cpu_seconds=100).apply(pid)
        running.close_input()
        assert running.wait(60).stdout == "ready\n77\n77\n"


def is_shell(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sh\0")
