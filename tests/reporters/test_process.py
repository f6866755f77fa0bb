"""Programs run to their end or are stopped with everything that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reporters import process
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]

# Forks twice, leaves its session, ignores SIGTERM and forgets its environment; says its process id in FILE.
ESCAPER = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open(%r, 'w').write(str(__import__('os').getpid())); time.sleep(600)"
        os.execve(sys.executable, [sys.executable, "-S", "-c", script % sys.argv[1]], {})
    os._exit(0)
os.wait()
"""  # noqa: E501


def gone(pid: int) -> bool:
    """Whether a process is no more, or only a zombie that its parent has not noticed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def pid_in(file: Path) -> int:
    assert eventually(lambda: file.exists() and file.read_text() != "")
    return int(file.read_text())


def test_exit_status_and_both_outputs_come_back() -> None:
    done = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_seconds=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert done.seconds > 0


def test_a_signal_that_ended_the_program_comes_back() -> None:
    assert process.run(["sh", "-c", "kill -9 $$"], timeout_seconds=60).returncode == -9


@pytest.mark.parametrize("argv", [["no-such-program"], ["/etc/hostname"], ["/"], ["echo", "a\0b"]])
def test_a_program_that_cannot_run_is_named(argv: list[str]) -> None:
    with pytest.raises(process.ProgramMissing, match=f"cannot run {argv[0]}: "):
        process.run(argv, timeout_seconds=60)


def test_a_directory_that_is_missing_is_no_timeout() -> None:
    with pytest.raises(process.ProgramMissing, match="No such file or directory"):
        process.run(["true"], timeout_seconds=60, cwd="/no/such/directory")


def test_directory_and_environment_are_the_programs() -> None:
    done = process.run(
        ["sh", "-c", "pwd; echo $WHO"], timeout_seconds=60, cwd="/usr", env={**os.environ, "WHO": "me"}
    )  # fmt: skip
    assert done.stdout == "/usr\nme\n"


def test_a_program_ignores_no_signal() -> None:
    before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        done = process.run(["grep", "SigIgn", "/proc/self/status"], timeout_seconds=60)
    finally:
        signal.signal(signal.SIGUSR2, before)
    ignored = int(done.stdout.split()[1], 16)
    assert [number for number in signal.valid_signals() if ignored >> (number - 1) & 1] == []


def test_input_and_output_of_any_size_flow_at_the_same_time() -> None:
    done = process.run(["cat"], timeout_seconds=60, input="ä" * 400_000)
    assert done.stdout == "ä" * 400_000


def test_a_program_need_not_read_its_input() -> None:
    assert process.run(["true"], timeout_seconds=60, input="x" * 1_000_000).returncode == 0


def test_without_input_stdin_is_empty() -> None:
    assert process.run(["cat"], timeout_seconds=60).stdout == ""


def test_endless_output_is_cut_in_the_middle_and_says_so() -> None:
    done = process.run(["sh", "-c", "echo first; head -c 5000000 /dev/zero; echo last"], timeout_seconds=60)
    assert done.stdout.startswith("first\n")
    assert done.stdout.endswith("last\n")
    assert f"[... {5_000_011 - process.CAPTURE_BYTES} bytes cut ...]" in done.stdout
    assert len(done.stdout) < process.CAPTURE_BYTES + 100


def test_output_before_the_marker_is_discarded() -> None:
    noise = "head -c 3000000 /dev/zero; echo; echo noise >&2"
    begins = "printf beg; sleep 0.02; echo ins; echo begins >&2"
    script = f"{noise}; {begins}; read -r _; echo out; echo err >&2; exit 3"
    with process.start(["sh", "-c", script], marker="begins") as running:
        assert running.wait_for_output(lambda text: text != "", 0.1) is False
        running.close_input()
        done = running.wait(60)
        assert (done.returncode, done.stdout, done.stderr, running.output) == (3, "out\n", "err\n", "out\n")


def test_output_without_the_marker_is_kept() -> None:
    script = "echo closed for maintenance; echo 'no account' >&2; exit 1"
    with process.start(["sh", "-c", script], marker="begins") as running:
        done = running.wait(60)
        assert (done.stdout, done.stderr, running.output) == ("closed for maintenance\n", "no account\n", "")


def test_output_before_the_limit_is_kept() -> None:
    with pytest.raises(process.TimedOut, match=r"sh ran longer than 0.5 s") as raised:
        process.run(["sh", "-c", "echo begun; echo why >&2; sleep 600"], timeout_seconds=0.5)
    assert raised.value.partial.stdout == "begun\n"
    assert raised.value.partial.stderr == "why\n"


def test_nothing_of_the_tree_survives_the_limit(tmp_path: Path) -> None:
    script = f'"$0" -c "$1" "$2"; trap "" TERM; sleep 600 & echo $! > {tmp_path}/child; sleep 600'
    argv = ["sh", "-c", script, sys.executable, ESCAPER, str(tmp_path / "escaped")]
    with process.start(argv) as running:
        pids = [pid_in(tmp_path / "escaped"), pid_in(tmp_path / "child")]
        assert not any(gone(pid) for pid in pids)
        with pytest.raises(process.TimedOut):
            running.wait(0.1)
    assert all(gone(pid) for pid in pids)


def test_background_processes_end_with_their_program_and_do_not_delay_it(tmp_path: Path) -> None:
    script = f'"$0" -c "$1" "$2"; sleep 600 & until [ -s {tmp_path}/escaped ]; do sleep 0.01; done; echo done'
    argv = ["sh", "-c", script, sys.executable, ESCAPER, str(tmp_path / "escaped")]
    done = process.run(argv, timeout_seconds=60)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert gone(pid_in(tmp_path / "escaped"))


def test_a_program_gets_sigterm_at_the_limit() -> None:
    with pytest.raises(process.TimedOut) as raised:
        process.run(
            ["sh", "-c", "trap 'echo bye; exit' TERM; while :; do sleep 0.02; done"], timeout_seconds=0.5
        )
    assert raised.value.partial.stdout == "bye\n"


def test_nothing_survives_a_reporter_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from reporters import process;"
        "process.run([sys.executable, '-c', *sys.argv[1:], 'x'], timeout_seconds=600)"
    )
    waiting = f"{ESCAPER}\ntime.sleep(600)"
    reporter = subprocess.Popen([sys.executable, "-c", script, waiting, str(tmp_path / "escaped")], cwd=ROOT)
    try:
        escaped = pid_in(tmp_path / "escaped")
    finally:
        reporter.kill()
        reporter.wait()
    assert eventually(lambda: gone(escaped))


def test_a_killed_guardian_ends_the_program_and_is_reported(tmp_path: Path) -> None:
    with process.start(["sh", "-c", f"echo $$ $PPID > {tmp_path}/pids; exec sleep 600"]) as running:
        assert eventually(lambda: (tmp_path / "pids").exists() and " " in (tmp_path / "pids").read_text())
        program, guardian = (int(word) for word in (tmp_path / "pids").read_text().split())
        os.kill(guardian, signal.SIGKILL)
        with pytest.raises(process.GuardianLost, match="the guardian of sh is gone"):
            running.wait(60)
    assert eventually(lambda: gone(program))


def test_a_killed_forker_ends_the_programs_and_is_replaced(tmp_path: Path) -> None:
    with process.start(["sh", "-c", f"echo $$ $PPID > {tmp_path}/pids; exec sleep 600"]) as running:
        assert eventually(lambda: (tmp_path / "pids").exists() and " " in (tmp_path / "pids").read_text())
        program, guardian = (int(word) for word in (tmp_path / "pids").read_text().split())
        os.kill(parent_of(guardian), signal.SIGKILL)
        with pytest.raises(process.GuardianLost, match="the guardian of sh is gone: the process that forked"):
            running.wait(60)
    assert eventually(lambda: gone(program))
    assert process.run(["echo", "again"], timeout_seconds=60).stdout == "again\n"


def test_a_forked_reporter_has_guardians_of_its_own() -> None:
    script = (
        "import os; from reporters import process;"
        "run = lambda: process.run(['sh', '-c', 'cut -d \" \" -f 4 /proc/$PPID/stat'], timeout_seconds=60);"
        "print(run().stdout, end='', flush=True);"
        "child = os.fork(); print(run().stdout, end='', flush=True);"
        "child or os._exit(0); os.waitpid(child, 0)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert (len(done.stdout.split()), len(set(done.stdout.split())), done.stderr) == (3, 2, "")


def test_a_program_outlives_the_thread_that_started_it() -> None:
    started: list[process.Running] = []
    starter = threading.Thread(target=lambda: started.append(process.start(["cat"])))
    starter.start()
    starter.join()
    with started[0] as running:
        assert not running.wait_for_output(lambda _: False, 0.3)
        assert running.poll() is None
        running.close_input()
        assert running.wait(60).returncode == 0


def test_output_can_be_waited_for() -> None:
    with process.start(["sh", "-c", "echo one; read -r _; echo two"]) as running:
        assert running.wait_for_output(lambda text: "one" in text, 60)
        assert running.poll() is None
        running.close_input()
        assert running.wait_for_output(lambda text: "two" in text, 60)


def test_waiting_for_output_ends_with_the_program() -> None:
    with process.start(["true"]) as running:
        assert not running.wait_for_output(lambda text: "never" in text, 60)


def test_input_can_be_closed_at_once() -> None:
    for _ in range(50):  # the thread that follows the program may not have begun
        with process.start(["cat"]) as running:
            running.close_input()
            assert running.wait(60).returncode == 0


def test_a_second_stop_does_nothing() -> None:
    running = process.start(["sleep", "600"])
    running.stop()
    running.stop()
    assert running.wait(60).returncode == -signal.SIGTERM


def test_many_programs_at_once_leave_no_descriptor_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda i: process.run(["echo", str(i)], timeout_seconds=60).stdout, range(24)))
    assert texts == [f"{i}\n" for i in range(24)]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before  # others' may be closed meanwhile


def test_programs_run_from_inside_a_zip_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "reporter.pyz", "w") as archive:
        for package in ("probes", "reporters"):
            for file in (ROOT / package).rglob("*.py"):
                archive.write(file, file.relative_to(ROOT))
        archive.writestr(
            "__main__.py",
            "from reporters import process\nprint(process.run(['echo', 'hi'], timeout_seconds=60).stdout)",
        )
    done = subprocess.run(
        [sys.executable, tmp_path / "reporter.pyz"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "hi\n\n"
