"""Tokens with real processes: a server, and programs with the preloaded library."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reporters.preloaded import unreachable
from reporters.remote.main import main
from reporters.tokens.library import library
from reporters.tokens.server import TokensUnavailable, status
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (Debian: gcc, libc6-dev)")

ROOT = Path(__file__).parents[3]
# Reads its file once, says so, and reads it again after each line of its input.
READS = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
while True:
    os.pread(file, 4096, 0)
    print("read", flush=True)
    if not sys.stdin.readline():
        break
"""

ENDED = "gridcast tokens: the server has ended: programs go on without limits\n"


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("library"))


def tokens_run(socket: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reporters", "tokens", "run", "--socket", str(socket), "--", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


class Tokens:
    """A server of the tokens of an area, and programs that are limited by them."""

    def __init__(self, directory: Path, preloaded: Path, *options: str) -> None:
        self.area = directory / "area"
        self.area.mkdir()
        self.socket = directory / "socket"
        self._preloaded = preloaded
        self._started: list[subprocess.Popen[str]] = []
        self.server = self._start(
            [sys.executable, "-m", "reporters", "tokens", "serve", str(self.area), *options],
            {"XDG_RUNTIME_DIR": str(directory)},
            "--socket",
            str(self.socket),
        )
        assert self.server.stdout
        self.first_line = self.server.stdout.readline()

    def _start(self, command: list[str], environment: dict[str, str], *more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*command, *more],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def environment(self, quantum_bytes: int = 1, linger_seconds: float = 0.001) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self._preloaded),
            "GRIDCAST_TOKENS_SOCKET": str(self.socket),
            "GRIDCAST_TOKENS_AREA": str(self.area),
            "GRIDCAST_TOKENS_QUANTUM": str(quantum_bytes),
            "GRIDCAST_TOKENS_LINGER": str(linger_seconds),
        }

    def limited(self, *command: str, **times: Any) -> subprocess.Popen[str]:
        return self._start(list(command), self.environment(**times))

    def reader(self, **times: Any) -> subprocess.Popen[str]:
        file = self.area / "file"
        file.touch()
        return self.limited(sys.executable, "-c", READS, str(file), **times)

    def run(self, *command: str) -> subprocess.Popen[str]:
        """Start *command* below ``tokens run``."""
        tokens = [sys.executable, "-m", "reporters", "tokens", "run", "--socket", str(self.socket)]
        return self._start([*tokens, "--", *command], {})

    def figures(self, direction: str) -> dict[str, Any]:
        figures: dict[str, Any] = status(self.socket)["tokens"][direction]
        return figures

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


Start = Callable[..., Tokens]


@pytest.fixture
def start(tmp_path: Path, preloaded: Path) -> Iterator[Start]:
    started: list[Tokens] = []

    def starting(*options: str) -> Tokens:
        started.append(Tokens(tmp_path, preloaded, *options))
        return started[-1]

    yield starting
    for tokens in started:
        tokens.end()


def has_read(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    assert process.stdout.readline() == "read\n"


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def test_an_idle_holder_gives_its_token_to_the_next(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    first = tokens.reader()
    has_read(first)
    second = tokens.reader()
    has_read(second)  # though the first one has its file open, and waits: no deadlock at a barrier
    go_on(first)
    has_read(first)
    assert tokens.figures("read")["granted"] == 3


def test_a_token_that_no_other_process_wants_is_kept(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    only = tokens.reader()
    for _ in range(5):
        has_read(only)
        go_on(only)
    assert tokens.figures("read")["granted"] == 1


def test_a_killed_holder_loses_its_token(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    holder = tokens.reader(linger_seconds=1000.0, quantum_bytes=1 << 40)
    has_read(holder)
    waiting = tokens.reader()
    assert eventually(lambda: tokens.figures("read")["waiting"] == 1)
    holder.kill()
    has_read(waiting)


def test_a_holder_that_lingers_is_waited_for(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    holder = tokens.reader(linger_seconds=1000.0, quantum_bytes=1 << 40)
    has_read(holder)
    waiting = tokens.reader()
    assert eventually(lambda: tokens.figures("read")["waiting"] == 1)
    go_on(holder)
    has_read(holder)  # it may go on, as it has the token
    assert tokens.figures("read")["waiting"] == 1
    waiting.kill()


def test_programs_go_on_without_limits_when_the_server_is_killed(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    holder = tokens.reader(linger_seconds=1000.0, quantum_bytes=1 << 40)
    has_read(holder)
    waiting = tokens.reader()
    assert eventually(lambda: tokens.figures("read")["waiting"] == 1)
    tokens.server.send_signal(signal.SIGKILL)
    tokens.server.wait()  # only then are all its connections closed
    has_read(waiting)
    go_on(waiting)
    has_read(waiting)
    go_on(holder)
    has_read(holder)
    for process in (holder, waiting):
        _, warnings = process.communicate()
        assert warnings == ENDED


def test_one_process_of_a_run_warns_that_the_server_was_killed(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    file = tokens.area / "file"
    file.write_text("text\n", encoding="ascii")
    closes = f"import subprocess; subprocess.run(['cat', '{file}'])"  # descriptors, as Python does
    run = tokens.run(
        "sh", "-c", f'cat {file}; read line; cat {file}; cat {file} | cat; {sys.executable} -c "{closes}"'
    )
    assert run.stdout
    assert run.stdout.readline() == "text\n"
    tokens.server.kill()
    tokens.server.wait()
    output, warnings = run.communicate("\n")
    assert output == "text\n" * 3
    assert warnings.splitlines() in (
        [ENDED.strip()],
        [ENDED.strip().replace("has ended", "cannot be reached")],
    )


def test_a_program_ends_with_its_run_and_gives_back_its_token(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    (tokens.area / "file").touch()
    run = tokens.run(sys.executable, "-c", READS, str(tokens.area / "file"))
    has_read(run)
    run.kill()
    assert run.stdout
    assert run.stdout.read() == ""  # no process has it open
    assert eventually(lambda: tokens.figures("read")["held_seconds"] == [])


def test_a_signal_is_passed_on_to_the_program(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    (tokens.area / "file").touch()
    run = tokens.run(sys.executable, "-c", READS, str(tokens.area / "file"))
    has_read(run)
    run.terminate()
    assert run.wait() == 128 + signal.SIGTERM


def test_the_parts_of_a_pipeline_and_forked_children_ask_for_themselves(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    (tokens.area / "file").write_bytes(b"data" * 1000)
    copied = tokens.limited(
        "sh", "-c", f"cd {tokens.area}; for n in 1 2 3; do (cat file | tee copy$n | wc -c) & done; wait"
    )
    output, errors = copied.communicate()
    assert (output.split(), errors) == (["4000"] * 3, "")
    assert {(tokens.area / f"copy{number}").stat().st_size for number in (1, 2, 3)} == {4000}
    assert tokens.figures("read")["granted"] >= 3
    assert tokens.figures("write")["granted"] >= 3


# Each rank reads its part of the file by MPI-IO, and meets the others at a barrier after each block.
MPI_PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    enum { BLOCKS = 8, BYTES = 4096 };
    static unsigned char block[BYTES];
    int rank;
    unsigned sum = 0, total = 0;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    for (int number = 0; number < BLOCKS; number++) {
        MPI_File_read_at(file, (rank * BLOCKS + number) * BYTES, block, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        for (int place = 0; place < BYTES; place++)
            sum += block[place];
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&file);
    MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%u\\n", total);
    MPI_Finalize();
    return 0;
}
"""
MPI_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.mark.skipif(
    shutil.which("mpicc") is None or shutil.which("mpiexec") is None, reason="no MPI (Debian: mpich)"
)
def test_the_ranks_of_an_mpi_program_take_turns_and_meet_at_their_barriers(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, program, ranks = tmp_path / "program.c", tmp_path / "program", 3
    source.write_text(MPI_PROGRAM, encoding="ascii")
    subprocess.run(["mpicc", "-o", program, source], check=True)
    tokens = start("--readers", "1", "--writers", "1")
    (tokens.area / "file").write_bytes(b"\1" * (ranks * 8 * 4096))
    for name, value in MPI_ROOT.items():
        monkeypatch.setenv(name, value)
    run = tokens_run(tokens.socket, "mpiexec", "-n", str(ranks), str(program), str(tokens.area / "file"))
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{ranks * 8 * 4096}\n", "")
    assert tokens.figures("read")["granted"] >= ranks  # each rank asked for itself
    assert eventually(lambda: tokens.figures("read")["held_seconds"] == [])


def test_files_outside_of_the_area_are_not_limited(start: Start, tmp_path: Path) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    (tmp_path / "outside").write_text("text", encoding="ascii")
    assert tokens.limited("cat", str(tmp_path / "outside")).communicate()[0] == "text"
    assert tokens.figures("read")["granted"] == 0


def test_a_program_is_run_with_its_arguments_and_status(start: Start) -> None:
    tokens = start("--readers", "2", "--writers", "1")
    run = tokens_run(
        tokens.socket, "sh", "-c", f"echo text > {tokens.area}/file; cat {tokens.area}/file; exit 7"
    )
    assert (run.returncode, run.stdout, run.stderr) == (7, "text\n", "")
    assert tokens.figures("read")["granted"] == 1


def test_where_a_limit_does_not_help_programs_run_without_and_the_reason_is_said(
    start: Start, tmp_path: Path
) -> None:
    gain = '{"streams": {"readers": 1, "writers": 1}, "saved": 0.0, "low": -0.01, "high": 0.01}'
    (tmp_path / "verdict.json").write_text(
        f'{{"verdict": "does not help", "gain": {gain}}}', encoding="ascii"
    )
    tokens = start("--from-sweep", str(tmp_path / "verdict.json"))
    assert "no limit: the sweep's verdict is that a limit does not help" in tokens.first_line
    run = tokens_run(tokens.socket, "env")
    assert "LD_PRELOAD" not in run.stdout
    assert "env runs without limits: the sweep's verdict is" in run.stderr
    assert "no limit: the sweep's verdict is" in shown_status(tokens.socket).stdout


def test_the_status_is_a_line_for_each_direction_and_an_error_without_a_server(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "2")
    holder = tokens.reader(linger_seconds=1000.0, quantum_bytes=1 << 40)
    has_read(holder)
    waiting = tokens.reader()
    assert eventually(lambda: tokens.figures("read")["waiting"] == 1)
    area, reads, writes = shown_status(tokens.socket).stdout.splitlines()
    assert area == str(tokens.area)
    assert re.fullmatch(
        r"read   1 of 1 held, the longest for \d+\.\d{3} s; 1 wait; 1 granted, 0 of them after a wait", reads
    )
    assert writes == "write  0 of 2 held; 0 wait; 0 granted, 0 of them after a wait"
    waiting.kill()
    tokens.server.kill()
    tokens.server.wait()
    refused = shown_status(tokens.socket)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert f"no server of tokens answers at {tokens.socket}" in refused.stderr


def shown_status(socket: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reporters", "tokens", "status", "--socket", str(socket)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_second_server_is_refused_and_the_socket_of_a_killed_one_is_replaced(start: Start) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    second = [sys.executable, "-m", "reporters", "tokens", "serve", str(tokens.area)]
    second += ["--socket", str(tokens.socket), "--readers", "1", "--writers", "1"]
    refused = subprocess.run(second, cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "a server is running there" in refused.stderr
    tokens.server.kill()
    tokens.server.wait()
    assert tokens.socket.exists()
    with subprocess.Popen(second, cwd=ROOT, stdout=subprocess.PIPE, text=True) as replacing:
        assert replacing.stdout
        assert "readers 1, writers 1" in replacing.stdout.readline()
        replacing.terminate()
        assert replacing.wait() == 0
    assert not tokens.socket.exists()


@pytest.mark.parametrize("seconds", ["nan", "-1", "inf", "3601", "soon"])
def test_a_linger_that_is_no_time_is_refused(
    seconds: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(
            [
                "tokens",
                "serve",
                str(tmp_path),
                "--readers",
                "1",
                "--writers",
                "1",
                f"--linger-seconds={seconds}",
            ]
        )
    assert f"expected seconds from 0 to 3600, got '{seconds}'" in capsys.readouterr().err


def test_without_a_server_the_program_runs_and_a_line_says_so(tmp_path: Path) -> None:
    run = tokens_run(tmp_path / "none", "echo", "text")
    assert (run.returncode, run.stdout) == (0, "text\n")
    assert "no server of tokens answers" in run.stderr
    assert "echo runs without limits" in run.stderr


def test_without_a_compiler_the_program_runs_and_a_line_says_so(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "echo").symlink_to(shutil.which("echo") or "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = tokens_run(tokens.socket, "echo", "text")
    assert (run.returncode, run.stdout) == (0, "text\n")
    assert run.stderr == (
        "gridcast tokens: cannot compile iotokens.so: there is no C compiler, cc (Debian: gcc, libc6-dev); "
        "echo runs without limits\n"
    )


def test_without_a_place_for_the_library_the_program_runs_and_a_line_says_so(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    (tmp_path / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = tokens_run(tokens.socket, "echo", "text")
    assert (run.returncode, run.stdout) == (0, "text\n")
    assert run.stderr == (
        f"gridcast tokens: cannot keep the library in {tmp_path}/cache/gridcast: Not a directory; "
        "echo runs without limits\n"
    )


def test_without_room_for_a_temporary_file_the_program_runs_and_a_line_says_so(
    start: Start, tmp_path: Path
) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    program = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'none')!r}; " + (
        f"from reporters.remote.main import main; main(['tokens', 'run', '--socket', {str(tokens.socket)!r}, "
        "'--', 'echo', 'text'])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout == "text\n"
    assert run.stderr == (
        "gridcast tokens: cannot write a temporary file: No such file or directory; "
        "echo runs without limits\n"
    )


@pytest.fixture
def static_program(tmp_path: Path) -> Path:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("int main(void) { return 7; }\n", encoding="ascii")
    built = subprocess.run(["cc", "-static", "-o", program, source], capture_output=True, check=False)
    if built.returncode:
        pytest.skip("no static libraries here")
    return program


def test_a_static_program_cannot_be_limited(static_program: Path) -> None:
    assert unreachable(str(static_program)) == "it is a static program"
    assert unreachable("sh") == ""


def test_a_run_of_which_no_process_asks_for_a_token_says_why_that_may_be(
    start: Start, static_program: Path
) -> None:
    tokens = start("--readers", "1", "--writers", "1")
    run = tokens_run(tokens.socket, "sh", "-c", str(static_program))
    assert run.returncode == 7
    assert run.stderr == (
        f"gridcast tokens: no process of sh asked for a token: none read or wrote a file below {tokens.area}"
        ", or those that did are static, change their user, or use io_uring or memory-mapped files\n"
    )


def test_no_server_is_an_error_that_names_the_socket(tmp_path: Path) -> None:
    with pytest.raises(TokensUnavailable, match=r"no server of tokens answers at .*none: No such file"):
        status(tmp_path / "none")
