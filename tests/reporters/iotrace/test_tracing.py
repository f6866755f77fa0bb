"""The tracer with real processes: each call is counted, and nothing of the program changes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import probes
from reporters.iotrace.calls import BadTrace, IoCall
from reporters.iotrace.records import MAX_BYTES, TraceFile
from reporters.preloaded import preloaded
from reporters.shells.local import Shell

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (Debian: gcc, libc6-dev)")

ROOT = Path(__file__).parents[3]
# Calls of each kind, from threads and a forked child; stdio with calls smaller than its buffer.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4096];
static int file;

static void *in_a_thread(void *argument) {
    for (int call = 0; call < 100; call++)
        if (pread(file, buffer, 100, 100 * call) != 100)
            abort();
    return argument;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    struct stat status;
    file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int call = 0; call < 50; call++)
        if (write(file, buffer, 1000) != 1000)
            abort();
    fsync(file), fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    lseek(file, 2000, SEEK_SET);
    if (read(file, buffer, 500) != 500)
        abort();
    for (int thread = 0; thread < 2; thread++)
        pthread_create(&threads[thread], NULL, in_a_thread, NULL);
    for (int thread = 0; thread < 2; thread++)
        pthread_join(threads[thread], NULL);
    if (fork() == 0) {
        if (read(file, buffer, 300) != 300)
            abort();
        _exit(0);
    }
    wait(NULL);
    if (read(file, buffer, 200) != 200) /* after the child's read: they share the position */
        abort();
    FILE *stream = fdopen(file, "r+");
    fseek(stream, 0, SEEK_SET);
    for (int call = 0; call < 9000; call++)
        fgetc(stream);
    fseek(stream, 0, SEEK_END);
    for (int call = 0; call < 10; call++)
        fprintf(stream, "%04d\n", call);
    fflush(stream);
    stat(argv[1], &status);
    fclose(stream);
    unlink(argv[1]);
    printf("%ld bytes\n", (long)status.st_size);
    return argc == 2 ? 0 : 1;
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    (directory / "program.c").write_text(PROGRAM, encoding="ascii")
    subprocess.run(["cc", "-o", directory / "program", directory / "program.c", "-lpthread"], check=True)
    return directory / "program"


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of compiled libraries, which all workers share; the library is there."""
    cache = tmp_path_factory.getbasetemp().parent / "compiled"
    preloaded(cache / "gridcast", "iotrace")
    return cache


Traced = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def traced(tmp_path: Path, cache: Path) -> Traced:
    def run(
        *command: str, options: tuple[str, ...] = (), cache: Path = cache
    ) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "reporters", "iotrace", "run", "-o", str(tmp_path / "trace")]
        return subprocess.run(
            [*argv, *options, "--", *command],
            cwd=ROOT,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def trace_of(directory: Path) -> TraceFile:
    return TraceFile(directory / "trace")


def calls_of(directory: Path) -> list[IoCall]:
    return [call for stream in trace_of(directory).trace().streams for call in stream.calls]


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
    with pytest.raises(BadTrace, match=r"calls 1,978 are only counted"):
        trace_of(tmp_path).trace()


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


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace (Debian: strace)")
def test_a_static_program_is_traced_by_strace(traced: Traced, program: Path, tmp_path: Path) -> None:
    static = tmp_path / "static"
    built = subprocess.run(
        ["cc", "-static", "-o", static, program.with_suffix(".c"), "-lpthread"],
        capture_output=True,
        check=False,
    )
    if built.returncode:
        pytest.skip("no static libraries here")
    run = traced(str(static), str(tmp_path / "data"), options=("--area", str(tmp_path)))
    if "ptrace" in run.stderr:
        pytest.skip("strace is not permitted here")
    assert "is traced by strace, as it is a static program: each call takes about 70 us longer" in run.stderr
    assert run.stdout == "50050 bytes\n"
    calls = calls_of(tmp_path)
    assert [call.offset for call in calls if call.operation == "write"][:50] == [1000 * n for n in range(50)]
    assert sum(call.operation == "read" and call.size == 100 for call in calls) == 200
    assert trace_of(tmp_path).trace().source == "strace"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: b"", "it is empty"),
        (lambda data: b"\x7fELF" + data, "it is no trace of iotrace"),
        (
            lambda data: data.replace(b'"version":1', b'"version":2', 1),
            "it has version 2, this gridcast reads 1: update it$",
        ),
        (lambda data: data.replace(b'"version":1,', b"", 1), "it has version None"),
        (lambda data: data.replace(b'"source":"trace"', b'"source":"gossip"', 1), "it is damaged: its"),
        (lambda data: data.replace(b'"memory_bytes"', b'"memory_words"', 1), "it is damaged: it"),
        (lambda data: data[:-4096], "it is damaged"),
        (
            lambda data: data.replace(b"GRIDIOT", b"GRIDXXX"),
            "it is damaged: the header of a process is damaged",
        ),
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_name(
    traced: Traced, tmp_path: Path, spoil: Callable[[bytes], bytes], message: str
) -> None:
    (tmp_path / "a").write_text("text", encoding="ascii")
    traced("cat", str(tmp_path / "a"), options=("--area", str(tmp_path)))
    (tmp_path / "trace").write_bytes(spoil((tmp_path / "trace").read_bytes()))
    with pytest.raises(BadTrace, match=f"trace: {message}"):
        trace_of(tmp_path)


def test_a_trace_of_a_gigabyte_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "trace").open("wb") as file:
        file.write(
            json.dumps({"format": "gridcast-io-trace", "version": 1, "processes": []}).encode() + b"\n"
        )
        file.truncate(1 << 30)  # sparse
    with pytest.raises(
        BadTrace, match=f"1,073,741,824 bytes, the limit is {MAX_BYTES:,}: trace a shorter run"
    ):
        trace_of(tmp_path)


def test_a_record_with_an_unknown_operation_is_refused(traced: Traced, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text", encoding="ascii")
    traced("cat", str(tmp_path / "a"), options=("--area", str(tmp_path)))
    data = bytearray((tmp_path / "trace").read_bytes())
    first_record = data.index(b"\n") + 1 + 4096 + 64
    data[first_record + 60 : first_record + 64] = struct.pack("<I", 99)
    (tmp_path / "trace").write_bytes(data)
    command = [sys.executable, "-m", "reporters", "iotrace", "signature", str(tmp_path / "trace")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f"{tmp_path}/trace: it is damaged: it has the operation 99\n")
    assert done.stderr.count("\n") == 1


def test_a_damaged_chunk_is_refused(traced: Traced, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text", encoding="ascii")
    traced("cat", str(tmp_path / "a"), options=("--area", str(tmp_path)))
    data = bytearray((tmp_path / "trace").read_bytes())
    chunk = data.index(b"\n") + 1 + 4096
    data[chunk : chunk + 8] = struct.pack("<Q", 1 << 40)
    (tmp_path / "trace").write_bytes(data)
    with pytest.raises(BadTrace, match="damaged at byte"):
        calls_of(tmp_path)
