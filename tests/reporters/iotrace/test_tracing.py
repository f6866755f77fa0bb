"""The tracer with real processes: each call is counted, and nothing of the program changes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

import probes
from reporters.iotrace import strace
from reporters.iotrace.calls import BadTrace
from reporters.iotrace.records import MAX_BYTES
from reporters.shells.local import Shell
from tests.reporters.iotrace.conftest import ROOT, Traced, calls_of, needs_compiler, trace_of

pytestmark = needs_compiler

# The records of two of its three processes fit in a trace.
CALLS_OF_MANY = 1_400_000
MANY_CALLS = f"""
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {{
    char byte;
    for (int process = 0; process < 3; process++)
        if (fork() == 0) {{
            int file = open(argv[1], O_RDWR | O_CREAT, 0600);
            for (int call = 1; call < {CALLS_OF_MANY}; call++)
                pread(file, &byte, 1, 0);
            _exit(0);
        }}
    while (wait(NULL) > 0)
        ;
    return 6 + argc / 2;
}}
"""


def test_each_call_of_a_program_its_threads_and_children_is_recorded(
    traced: Traced, program: Path, tmp_path: Path
) -> None:
    run = traced(str(program), str(tmp_path / "data"), options=("--area", str(tmp_path)))
    assert (run.returncode, run.stdout) == (0, "50050 bytes\n")
    calls = calls_of(tmp_path)
    number: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for call in calls:
        number[call.operation] += call.more if call.operation in ("fread", "fwrite") else 1
        moved[call.operation] += call.result if call.operation in ("read", "write", "fread", "fwrite") else 0
    assert number == {
        "open": 1, "write": 50, "fsync": 1, "fdatasync": 1, "advise": 1, "read": 203, "fread": 9000,
        "fwrite": 10, "flush": 1, "stat": 1, "close": 1, "unlink": 1,
    }  # fmt: skip
    assert +moved == {"write": 50_000, "read": 21_000, "fread": 9000, "fwrite": 50}
    counted: Counter[str] = Counter()
    for part in trace_of(tmp_path).parts:
        counted.update({name: calls for name, (calls, _, _) in part.counters.operations.items() if calls})
    assert counted == number
    assert len(trace_of(tmp_path).parts) == 2
    assert len({call.file for call in calls}) == 1


def test_offsets_follow_the_position_also_if_a_child_moves_it(
    traced: Traced, program: Path, tmp_path: Path
) -> None:
    traced(str(program), str(tmp_path / "data"), options=("--area", str(tmp_path)))
    calls = calls_of(tmp_path)
    assert [call.offset for call in calls if call.operation == "write"] == [1000 * n for n in range(50)]
    reads = {call.size: call.offset for call in calls if call.operation == "read" and call.size != 100}
    assert reads == {500: 2000, 300: 2500, 200: 2800}
    assert [call.offset for call in calls if call.operation == "fwrite"] == [50_000]


def test_names_and_contents_are_not_in_the_trace(traced: Traced, tmp_path: Path) -> None:
    (tmp_path / "patient-file").write_text("secret contents", encoding="ascii")
    run = traced("cat", str(tmp_path / "patient-file"), options=("--area", str(tmp_path)))
    assert run.stdout == "secret contents"
    data = (tmp_path / "trace").read_bytes()
    assert b"patient" not in data
    assert b"secret" not in data
    first, second = calls_of(tmp_path)[0].file, 0
    traced("cat", str(tmp_path / "patient-file"), options=("--area", str(tmp_path)))
    second = calls_of(tmp_path)[0].file
    assert first != second  # salted: traces cannot be compared with lists of names


def test_the_trace_of_a_killed_program_is_complete_and_its_status_is_returned(
    traced: Traced, tmp_path: Path
) -> None:
    script = (
        "import os; f = os.open('data', os.O_WRONLY | os.O_CREAT); [os.write(f, b'x') for _ in range(1000)]"
    )
    kill = f"{script}; os.kill(os.getpid(), {int(signal.SIGKILL)})"
    run = traced("sh", "-c", f'cd {tmp_path}; exec "$@"', "sh", sys.executable, "-c", kill,
                 options=("--area", str(tmp_path)))  # fmt: skip
    assert run.returncode == 128 + signal.SIGKILL
    assert sum(call.operation == "write" for call in calls_of(tmp_path)) == 1000
    assert not list(tmp_path.glob(".iotrace-*"))


def test_calls_beyond_the_limit_are_counted_and_no_signature_is_made(traced: Traced, tmp_path: Path) -> None:
    script = (
        "import os; f = os.open('data', os.O_WRONLY | os.O_CREAT); [os.write(f, b'x') for _ in range(3000)]"
    )
    run = traced("sh", "-c", f'cd {tmp_path}; exec "$@"', "sh", sys.executable, "-c", script,
                 options=("--area", str(tmp_path), "--limit-bytes", "100000"))  # fmt: skip
    assert "only counted: raise --limit-bytes" in run.stderr
    assert sum(part.counters.operations["write"][0] for part in trace_of(tmp_path).parts) == 3000
    with pytest.raises(BadTrace, match=r"1,978 of them only counted: raise --limit-bytes"):
        trace_of(tmp_path).trace()


def test_processes_that_do_not_fit_in_a_trace_are_counted_and_the_program_keeps_its_status(
    traced: Traced, tmp_path: Path
) -> None:
    (tmp_path / "many.c").write_text(MANY_CALLS, encoding="ascii")
    subprocess.run(["cc", "-O2", "-o", tmp_path / "many", tmp_path / "many.c"], check=True)
    run = traced(
        str(tmp_path / "many"),
        str(tmp_path / "data"),
        options=("--area", str(tmp_path), "--limit-bytes", str(MAX_BYTES)),
    )
    assert run.returncode == 7
    assert f"4,200,000 calls of 3 processes, {CALLS_OF_MANY:,} of them only counted: record" in run.stderr
    assert (tmp_path / "trace").stat().st_size < MAX_BYTES
    trace = trace_of(tmp_path)
    for part in trace.parts:
        assert part.counters.all_calls == CALLS_OF_MANY
    with pytest.raises(
        BadTrace, match=r"only counted: record fewer by --area or --only, or trace a shorter run"
    ):
        trace.trace()


def test_chunks_have_no_room_left_in_a_trace(traced: Traced, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text", encoding="ascii")
    traced(
        "sh", "-c", f"for n in 1 2 3 4 5 6 7 8; do cat {tmp_path}/a; done", options=("--area", str(tmp_path))
    )
    assert len(trace_of(tmp_path).parts) == 8
    assert (tmp_path / "trace").stat().st_size < 8 * 4096


def test_only_named_programs_are_recorded(traced: Traced, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text", encoding="ascii")
    command = f"cat {tmp_path}/a > {tmp_path}/b; head -c 2 {tmp_path}/a"
    assert traced("sh", "-c", command, options=("--area", str(tmp_path), "--only", "head")).stdout == "te"
    assert {call.operation for call in calls_of(tmp_path)} == {"open", "read", "close"}
    assert len(trace_of(tmp_path).parts) == 1


def test_a_signature_names_the_application_with_all_its_parameters(traced: Traced, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text", encoding="ascii")
    traced("cat", str(tmp_path / "a"), options=("--area", str(tmp_path)))
    command = [sys.executable, "-m", "reporters", "iotrace", "signature", str(tmp_path / "trace")]
    command += ["--application", "madbench", "--set", "tasks=3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    application = json.loads(done.stdout)["application"]
    assert application["probe"] == "madbench"
    assert application["parameters"].keys() == probes.load("madbench").parameters.keys() - {
        "trace",
        "wall_seconds",
    }
    assert (application["parameters"]["tasks"], application["parameters"]["no_bin"]) == (3, 8)


def test_programs_of_a_reporter_that_is_traced_are_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_IOTRACE_SALT", "7")
    monkeypatch.setenv("GRIDCAST_SECRET_KEY", "secret")
    output = Shell("here", "label").run(["env"], timeout_seconds=60.0).stdout
    assert "GRIDCAST_IOTRACE_SALT=7" in output
    assert "secret" not in output


def test_a_program_that_is_missing_is_an_error(traced: Traced, tmp_path: Path) -> None:
    run = traced("no-such-program")
    assert run.returncode == 2
    assert "cannot run no-such-program: No such file or directory" in run.stderr
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_there_is_no_trace_and_a_line_says_so(
    traced: Traced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    run = traced("/bin/true", cache=tmp_path / "nothing compiled yet")
    assert run.returncode == 2
    assert run.stderr == (
        "gridcast-reporter iotrace: cannot compile iotrace.so: "
        "there is no C compiler, cc (Debian: gcc, libc6-dev)\n"
    )


@pytest.fixture
def static(program: Path) -> Path:
    static = program.with_name("static")
    command = ["cc", "-static", "-o", str(static), str(program.with_suffix(".c")), "-lpthread"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no static libraries here")
    return static


@pytest.mark.skipif(bool(strace.refusal("true")), reason=strace.refusal("true"))
def test_a_static_program_is_traced_by_strace(traced: Traced, static: Path, tmp_path: Path) -> None:
    run = traced(str(static), str(tmp_path / "data"), options=("--area", str(tmp_path)))
    assert "is traced by strace, as it is a static program: each call takes about 70 us longer" in run.stderr
    assert run.stdout == "50050 bytes\n"
    calls = calls_of(tmp_path)
    assert [call.offset for call in calls if call.operation == "write"][:50] == [1000 * n for n in range(50)]
    assert sum(call.operation == "read" and call.size == 100 for call in calls) == 200
    assert trace_of(tmp_path).trace().source == "strace"


REFUSING = """#!/bin/sh
echo 'strace: test_ptrace_get_syscall_info: PTRACE_TRACEME: Operation not permitted' >&2
exit 1
"""


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            REFUSING,
            "strace is refused: test_ptrace_get_syscall_info: PTRACE_TRACEME: Operation not permitted",
        ),
        (None, "strace cannot be run: No such file or directory"),
    ],
)
def test_a_static_program_runs_untraced_without_strace(
    traced: Traced,
    static: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str | None,
    why: str,
) -> None:
    (tmp_path / "bin").mkdir()
    if script:
        (tmp_path / "bin" / "strace").write_text(script, encoding="ascii")
        (tmp_path / "bin" / "strace").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    run = traced(str(static), str(tmp_path / "data"), "fail")
    assert (run.returncode, run.stdout) == (1, "50050 bytes\n")
    assert run.stderr.splitlines() == [
        f"gridcast iotrace: {static} runs untraced: it is a static program, and {why}",
        f"gridcast iotrace: {tmp_path}/trace: 0 calls of 0 processes",
    ]


def test_a_static_program_below_another_is_named(traced: Traced, static: Path, tmp_path: Path) -> None:
    run = traced("env", str(static), str(tmp_path / "data"), options=("--area", str(tmp_path)))
    assert (run.returncode, run.stdout) == (0, "50050 bytes\n")
    unseen = f"; {static} is not seen: it is a static program\n"
    assert run.stderr.endswith(f"trace: 0 calls of 0 processes{unseen}")
    script = f'cat {static} > {tmp_path}/copy; "$@"'
    run = traced(
        "sh", "-c", script, "sh", str(static), str(tmp_path / "data"), options=("--area", str(tmp_path))
    )
    assert run.stderr.endswith(f" calls of 2 processes{unseen}")


def test_programs_that_may_not_have_been_seen_are_described(traced: Traced, tmp_path: Path) -> None:
    run = traced("true", options=("--area", str(tmp_path)))
    assert run.stderr.endswith("that change their user, and those with another loader are not seen\n")
    assert run.stderr.count("\n") == 1


def test_strace_is_not_used_where_it_prevents_a_change_of_the_user() -> None:
    script = (
        "import os, sys; from reporters.iotrace.strace import refusal\n"
        "os.geteuid() or os.seteuid(65534); sys.stdout.write(refusal(sys.argv[1]))"
    )
    with tempfile.TemporaryDirectory() as directory:  # that of pytest is closed to other users
        Path(directory).chmod(0o755)
        program = Path(directory, "program")
        program.touch()
        program.chmod(0o4755)
        command = [sys.executable, "-c", script, str(program)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "strace would prevent the change"
