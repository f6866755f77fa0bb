"""Replays: they make the calls of their signature, wait where it waits, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probes.base import ProbeFailed
from probes.common.signature import digest, parse
from probes.replay import Probe, parse_times
from reporters.iotrace.build import build
from reporters.iotrace.records import TraceFile
from reporters.iotrace.run import TraceOptions, run_traced
from reporters.report import Report
from tests.probes.kernels import build as build_kernel
from tests.probes.kernels import refusal, run
from tests.probes.runs import install, logged, metrics, run_locally
from tests.reporters.small_file_system import small_file_system
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (Debian: gcc, libc6-dev)")

ROOT = Path(__file__).parents[2]
TEXT = str(Probe.trial["signature"])


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_kernel(tmp_path_factory.mktemp("kernels"), "replay", ("-O2", "-lpthread"))


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Keep compiled libraries in a directory of the tests, which all workers share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp().parent / "compiled"))
        yield


def replayed(directory: Path, text: str, **parameters: Any) -> Report:
    return run_locally("replay", directory, {"signature": text, **parameters})


def signature_of(directory: Path, *program: str) -> str:
    """Trace *program*, which works in *directory*, and return its signature."""
    status = run_traced(program, directory.with_suffix(".trace"), TraceOptions([directory]))
    assert status == 0
    return build(TraceFile(directory.with_suffix(".trace")).trace(), None)


def played(directory: Path, kernel: Path, text: str, think: str = "none") -> str:
    """Play a signature in *directory*, and return the output of the kernel."""
    directory.mkdir(exist_ok=True)
    (directory.with_suffix(".plan")).write_text(parse(text).plan, encoding="ascii")
    return run(kernel, directory.with_suffix(".plan"), directory, think)


def traced_again(directory: Path, kernel: Path, text: str) -> dict[str, Any]:
    """Trace a replay, and return its signature."""
    directory.mkdir()
    directory.with_suffix(".plan").write_text(parse(text).plan, encoding="ascii")
    program = (str(kernel), str(directory.with_suffix(".plan")), str(directory), "none")
    document: dict[str, Any] = json.loads(signature_of(directory, *program))
    return document


SCRIPTS = {
    "cat and dd": "dd if=/dev/zero of=a bs=4096 count=50 status=none; cat a > b; "
    "dd if=b of=a bs=512 conv=notrunc status=none",
    "at once": "for n in 1 2 3; do dd if=/dev/zero of=f$n bs=8192 count=20 conv=fsync & done; wait",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_replay_moves_what_its_program_moved(tmp_path: Path, kernel: Path, script: str) -> None:
    (tmp_path / "work").mkdir()
    text = signature_of(tmp_path / "work", "sh", "-c", f"cd {tmp_path}/work; {SCRIPTS[script]}")
    first, again = json.loads(text), traced_again(tmp_path / "again", kernel, text)
    assert again["bytes"] == first["bytes"]
    assert {name: again["calls"][name] for name in ("read", "sync")} == {
        name: first["calls"][name] for name in ("read", "sync")
    }
    assert first["approximated"] == 0.0
    sizes = sorted(file.stat().st_size for file in (tmp_path / "work").iterdir())
    assert (
        sorted(file.stat().st_size for file in (tmp_path / "again").iterdir() if file.stat().st_size) == sizes
    )


def test_a_file_that_was_there_is_written_before_the_replay(tmp_path: Path, kernel: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "data").write_bytes(os.urandom(300_000))
    text = signature_of(work, "cat", str(work / "data"))
    family = json.loads(text)["files"][0]
    assert (family["initial_bytes"], family["direct"]) == (300_000, False)
    times, _ = parse_times(played(tmp_path / "again", kernel, text), 1, "here")
    assert times[0].bytes["read"] == 300_000
    assert (tmp_path / "again" / "f0.0").stat().st_size == 300_000


# Four processes that are alive at the same time write a file each.
FOUR = """
import os
ready, go = os.pipe(), os.pipe()
for number in range(4):
    if os.fork() == 0:
        os.write(ready[1], b"x")
        os.close(go[1])
        os.read(go[0], 1)
        file = os.open(f"f{number}", os.O_WRONLY | os.O_CREAT)
        for _ in range(100):
            os.write(file, bytes(4096))
        os._exit(0)
for _ in range(4):
    os.read(ready[0], 1)
os.close(go[1])
for _ in range(4):
    os.wait()
"""


def test_tasks_with_a_file_each_are_one_program(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    text = python_signature(tmp_path / "work", FOUR)
    document = json.loads(text)
    assert document["tasks"] == 4
    assert [(program["tasks"], len(program["body"])) for program in document["programs"]] == [([0, 4], 2)]
    assert [(family["count"], family["final_bytes"]) for family in document["files"]] == [(4, 409_600)]
    assert len(text) < 2000


def python_signature(directory: Path, script: str) -> str:
    python = shutil.which("python3") or "python3"
    return signature_of(directory, "sh", "-c", f'cd {directory}; exec {python} -c "$1"', "sh", script)


# As programs write checkpoints: to a draft, which replaces the last one.
CHECKPOINTS = """
import os
os.mkdir("run")
for number in range(6):
    with open("run/draft", "wb", buffering=0) as file:
        file.write(bytes(1000 * (number + 1)))
    os.rename("run/draft", "run/checkpoint")
os.mkdir("empty")
os.rmdir("empty")
try:
    os.rename("run/draft", "run/lost")
except FileNotFoundError:
    pass
"""


def test_renames_and_directories_are_played(tmp_path: Path, kernel: Path) -> None:
    (tmp_path / "work").mkdir()
    text = python_signature(tmp_path / "work", CHECKPOINTS)
    again = traced_again(tmp_path / "again", kernel, text)
    assert operations(again) == operations(json.loads(text))
    assert operations(again)["rename"] == 6
    assert (operations(again)["mkdir"], operations(again)["rmdir"]) == (2, 1)
    assert parse(text).needed_bytes == 6000
    left = {path.name: path for path in (tmp_path / "again").iterdir()}
    assert sorted(path.stat().st_size for path in left.values() if path.is_file()) == [6000]
    assert len([path for path in left.values() if path.is_dir()]) == 1


def operations(document: dict[str, Any]) -> Counter[str]:
    """Return how often each operation is made; a replay has barriers of its own."""

    def executed(body: list[dict[str, Any]], times: int) -> Iterator[tuple[str, int]]:
        for instruction in body:
            if "body" in instruction:
                yield from executed(instruction["body"], times * instruction["times"])
            elif instruction["op"] != "barrier":
                yield instruction["op"], times

    found: Counter[str] = Counter()
    for program in document["programs"]:
        for name, times in executed(program["body"], program["tasks"][1]):
            found[name] += times
    return found


def test_a_file_that_only_its_new_name_shows_is_there(tmp_path: Path, kernel: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "old").write_bytes(b"old")
    script = "import os; os.rename('old', 'new'); open('data', 'wb', buffering=0).write(bytes(10))"
    text = python_signature(work, script)
    played(tmp_path / "again", kernel, text)
    assert len([*(tmp_path / "again").iterdir()]) == 2


def test_a_rename_that_cannot_be_made_fails_the_replay_with_the_names(tmp_path: Path, kernel: Path) -> None:
    document = json.loads(TEXT)
    body = [{"op": "write", "file": 0, "size": 1}, {"op": "mkdir", "file": 1}]
    document["tasks"] = 1
    document["programs"] = [
        {"tasks": [0, 1], "files": [[0, 0, 2, 1]], "body": [*body, {"op": "rename", "file": 0, "to": 1}]}
    ]
    (tmp_path / "plan").write_text(parse(json.dumps(document)).plan, encoding="ascii")
    (tmp_path / "played").mkdir()
    message = "replay: cannot rename f0.0 to f0.1: Is a directory\n"
    assert refusal(kernel, tmp_path / "plan", tmp_path / "played", "none") == message


def test_random_reads_are_summed_up_and_labelled(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "data").write_bytes(bytes(1 << 20))
    script = (
        "import os, random; f = os.open('data', os.O_RDONLY); random.seed(1)\n"
        "for n in range(2500): os.pread(f, 512 + n % 7, 8 * random.randrange(1 << 16))"
    )
    document = json.loads(python_signature(work, script))
    assert document["calls"]["read"] == 2500
    assert document["approximated"] > 0.9
    assert document["bytes"]["read"] > 2500 * 512


def test_a_run_reports_seconds_by_class(tmp_path: Path) -> None:
    report = replayed(tmp_path, TEXT)
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    assert (values["io.read.bytes"], values["io.write.bytes"], values["io.calls"]) == (65536, 65536, 38)
    parts = [values[f"io.{name}.seconds"] for name in ("read", "write", "sync", "metadata")]
    assert values["io.seconds"] == pytest.approx(sum(parts), abs=1e-5)
    assert values["io.slowest.seconds"] >= values["io.seconds"]
    assert values["io.elapsed.seconds"] > 0
    assert logged(report, "warning") == []


def test_a_signature_with_another_digest_is_refused(tmp_path: Path) -> None:
    report = replayed(tmp_path, TEXT, signature_digest="0123456789abcdef")
    assert f"its digest is {digest(TEXT)}, expected 0123456789abcdef" in report.reason
    assert replayed(tmp_path, TEXT, signature_digest=digest(TEXT)).outcome == "passed"


def test_a_target_that_is_too_small_is_named(tmp_path: Path) -> None:
    document = json.loads(TEXT)
    document["files"][0]["final_bytes"] = 1 << 60
    report = replayed(tmp_path, json.dumps(document))
    assert report.outcome == "no_data"
    assert (
        "the signature's files have 2,305,843,009,213,693,952 bytes, the scratch directory at at-target has"
        in report.reason
    )


def test_a_disk_that_is_full_in_mid_replay_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    scratch = tmp_path / "at-target" / "scratch"
    scratch.mkdir(parents=True)
    # The compiler fills the disk, but for the plan and a part of the replay's 64 KiB.
    install(
        tmp_path,
        "cc",
        f'/usr/bin/cc "$@" || exit 1; case "$*" in *replay.c*) cat /dev/zero > {scratch}/theirs; '
        f"truncate -s -32768 {scratch}/theirs ;; esac; exit 0",
    )
    with small_file_system(scratch, 4, mode="1777"):
        report = replayed(tmp_path, TEXT)
        assert [file.name for file in scratch.rglob("*") if file.is_file()] == ["theirs"]
    assert report.outcome == "failed"
    assert re.fullmatch(
        r"compute at at-target failed: the job at at-target failed with exit status 1: "
        r"replay: cannot write f0\.[01]: No space left on device",
        report.reason,
    )


def test_a_replay_that_moves_other_bytes_says_so(tmp_path: Path) -> None:
    document = json.loads(TEXT)
    document["bytes"]["read"] = 1_000_000
    report = replayed(tmp_path, json.dumps(document))
    assert logged(report, "warning") == ["the replay's read bytes are 65,536, the application's 1,000,000"]


def test_thinking_takes_as_long_as_at_the_reference(tmp_path: Path, kernel: Path) -> None:
    document = json.loads(TEXT)
    document["programs"][0]["body"][4]["body"][0]["think"] = 0.01
    seconds = {}
    for think in ("spin", "sleep", "none"):
        times, _ = parse_times(played(tmp_path / think, kernel, json.dumps(document), think), 2, "here")
        seconds[think] = min(task.seconds["think"] for task in times)
    assert seconds["spin"] >= 0.08
    assert seconds["sleep"] >= 0.08
    assert seconds["none"] < min(seconds["spin"], seconds["sleep"])


def test_a_killed_replay_leaves_no_task(tmp_path: Path, kernel: Path) -> None:
    document = json.loads(TEXT)
    document["programs"][0]["body"][0]["think"] = 1000.0
    (tmp_path / "plan").write_text(parse(json.dumps(document)).plan, encoding="ascii")
    (tmp_path / "played").mkdir()
    with subprocess.Popen([kernel, tmp_path / "plan", tmp_path / "played", "sleep"]) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert eventually(lambda: len(children.read_text().split()) == 2)
        tasks = [int(number) for number in children.read_text().split()]
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert eventually(lambda: not any(is_running(task) for task in tasks))


@pytest.mark.nightly  # each run takes about a second
def test_after_many_kills_the_next_run_leaves_no_file_and_no_process(tmp_path: Path) -> None:
    kills, chance = int(os.environ.get("GRIDCAST_REPLAY_KILLS", "60")), random.Random(21)
    command = [sys.executable, "-m", "reporters", "once", "replay", "--trial", "--scratch", str(tmp_path)]
    for _ in range(kills):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as reporter:
            with contextlib.suppress(subprocess.TimeoutExpired):
                reporter.wait(chance.uniform(0.05, 1.5))
            reporter.kill()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
    assert eventually(
        lambda: not [link for link in Path("/proc").glob("[0-9]*/cwd") if is_below(link, tmp_path)]
    )


def is_below(link: Path, directory: Path) -> bool:
    with contextlib.suppress(OSError):
        return link.readlink().is_relative_to(directory)
    return False


def is_running(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("", "the plan is damaged"),
        ("plan 2 1 1 1 1\n", "the plan has version 2"),
        ("plan 1 1 0 1 1\n", "damaged"),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path: Path, kernel: Path, plan: str, message: str) -> None:
    (tmp_path / "plan").write_text(plan, encoding="ascii")
    assert message in refusal(kernel, tmp_path / "plan", tmp_path, "none")


def test_a_full_disk_fails_the_replay_with_the_file(tmp_path: Path, kernel: Path) -> None:
    (tmp_path / "plan").write_text(parse(TEXT).plan, encoding="ascii")
    (tmp_path / "played").mkdir()
    command = f"ulimit -f 8; trap '' XFSZ; exec {kernel} {tmp_path}/plan {tmp_path}/played none"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "replay: cannot write f0." in done.stderr


@pytest.mark.parametrize("text", ["", "task 0\nelapsed 1.0", "elapsed 1.000000\n"])
def test_output_without_all_tasks_is_unreadable(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of replay at here"):
        parse_times(text, 1, "here")
