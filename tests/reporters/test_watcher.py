"""Watched programs behave like guarded ones, except for the processes they leave behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reporters import process
from reporters.watcher import can_watch
from tests.reporters.ssh_sites import processes_naming
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(
    not can_watch(), reason="only Linux can wait for a process and a pipe at once"
)


def test_input_and_both_outputs_are_transferred() -> None:
    script = "cat; echo err >&2; exit 3"
    done = process.run(["sh", "-c", script], timeout_seconds=60, input="x" * 400_000, guarded=False)
    assert (done.returncode, len(done.stdout), done.stderr) == (3, 400_000, "err\n")
    assert done.seconds > 0


def test_a_signal_that_ended_the_program_comes_back() -> None:
    assert process.run(["sh", "-c", "kill -9 $$"], timeout_seconds=60, guarded=False).returncode == -9


@pytest.mark.parametrize("argv", [["no-such-program"], ["/etc/hostname"], ["echo", "a\0b"]])
def test_a_program_that_cannot_run_is_named(argv: list[str]) -> None:
    with pytest.raises(process.ProgramMissing, match=f"cannot run {argv[0]}: "):
        process.run(argv, timeout_seconds=60, guarded=False)


def test_a_watched_program_ignores_only_the_signals_a_shell_ignores() -> None:
    ignored = ["grep", "SigIgn", "/proc/self/status"]
    bare = subprocess.run(ignored, capture_output=True, text=True, check=True, restore_signals=True)
    assert process.run(ignored, timeout_seconds=60, guarded=False).stdout == bare.stdout


def test_a_watched_program_gets_sigterm_at_the_limit() -> None:
    script = "trap 'echo bye; exit' TERM; echo begun; while :; do sleep 0.02; done"
    with process.start(["sh", "-c", script], guarded=False) as running:
        assert running.wait_for_output(lambda text: text == "begun\n", 60)
        with pytest.raises(process.TimedOut) as raised:
            running.wait(0.05)
    assert raised.value.partial.stdout == "begun\nbye\n"


def test_a_program_that_ignores_sigterm_is_killed_with_its_group() -> None:
    script = "trap '' TERM; sh -c 'echo $$; while :; do sleep 0.02; done'"
    with process.start(["sh", "-c", script], guarded=False) as running:
        assert running.wait_for_output(lambda text: text.endswith("\n"), 60)
        child = int(running.output)
        running.stop()
        assert running.wait(60).returncode == -signal.SIGKILL
    assert eventually(lambda: child not in processes_naming("sleep 0.02"))


def test_a_watched_program_outlives_the_thread_that_started_it() -> None:
    started: list[process.Running] = []
    starter = threading.Thread(target=lambda: started.append(process.start(["cat"], guarded=False)))
    starter.start()
    starter.join()
    with started[0] as running:
        assert not running.wait_for_output(lambda _: False, 0.1)
        assert running.poll() is None
        running.close_input()
        assert running.wait(60).returncode == 0


def test_watching_without_a_free_descriptor_raises() -> None:
    script = """
import os, resource, subprocess, sys
from reporters.watcher import watch
with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
    told, status = os.pipe()
    resource.setrlimit(resource.RLIMIT_NOFILE, (status + 1, status + 1))
    try:
        watch(program, told, status, 1.0)
    except OSError as error:
        print(error.strerror)
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout == "Too many open files\n"


def test_many_watched_programs_leave_no_descriptor_and_no_thread() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    def echo(number: int) -> str:
        return process.run(["echo", str(number)], timeout_seconds=60, guarded=False).stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(echo, range(24))) == [f"{number}\n" for number in range(24)]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before  # others' may be closed meanwhile
    assert eventually(
        lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("watch ")]
    )
