"""A spool loses nothing, and nothing in it loops for ever."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from reporters.report import MAX_BYTES
from reporters.spool import FileSpool, FileSpoolError, SpooledReport

ROOT = Path(__file__).parents[2]
ONE, TWO, THREE = (uuid.UUID(int=n) for n in (1, 2, 3))


@pytest.fixture
def spool(tmp_path: Path) -> FileSpool:
    return FileSpool(tmp_path / "spool")


def bad(tmp_path: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tmp_path / "spool" / "bad").iterdir()}


def test_reports_wait_oldest_first(spool: FileSpool) -> None:
    for run in (TWO, ONE, THREE):
        spool.put(run, run.bytes)
    assert list(spool.pending()) == [SpooledReport(run, run.bytes) for run in (TWO, ONE, THREE)]


def test_reports_outlive_the_process(spool: FileSpool, tmp_path: Path) -> None:
    spool.put(ONE, b"report")
    assert list(FileSpool(tmp_path / "spool").pending()) == [SpooledReport(ONE, b"report")]


def test_a_report_with_a_receipt_is_removed(spool: FileSpool) -> None:
    spool.put(ONE, b"1")
    spool.put(TWO, b"2")
    spool.remove(ONE)
    spool.remove(ONE)
    assert [entry.run for entry in spool.pending()] == [TWO]


def test_a_later_report_of_a_run_replaces_the_earlier(spool: FileSpool) -> None:
    spool.put(ONE, b"old")
    spool.put(ONE, b"new")
    assert list(spool.pending()) == [SpooledReport(ONE, b"new")]


def test_sync_flushes_waiting_reports_to_disk(spool: FileSpool, tmp_path: Path) -> None:
    spool.put(ONE, b"1")
    spool.sync()
    assert list(spool.pending()) == [SpooledReport(ONE, b"1")]
    (tmp_path / "spool" / "bad").rmdir()
    spool.remove(ONE)
    (tmp_path / "spool").rmdir()
    with pytest.raises(FileSpoolError, match="cannot read the spool"):
        spool.sync()


def test_only_files_are_listed(spool: FileSpool, tmp_path: Path) -> None:
    (tmp_path / "spool" / f"{ONE}.json").symlink_to("nowhere")
    (tmp_path / "spool" / f"{TWO}.json").mkdir()
    assert not spool.any()
    assert list(spool.pending()) == []


def test_a_limited_listing_begins_with_the_oldest(spool: FileSpool) -> None:
    for run in (THREE, ONE, TWO):
        spool.put(run, b"x")
    assert [entry.run for entry in spool.pending(2)] == [THREE, ONE]


def test_a_spool_contains_its_waiting_reports(spool: FileSpool) -> None:
    assert not spool.any()
    spool.put(ONE, b"1")
    assert spool.any()
    assert (ONE in spool, TWO in spool) == (True, False)


def test_the_lock_is_exclusive_and_ends_with_its_process(spool: FileSpool, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from reporters.spool import FileSpool\n"
        "with FileSpool(Path(sys.argv[1])).exclusive() as held: print(held, flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "spool")]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        with spool.exclusive() as is_locked:
            assert not is_locked
        other.kill()
    with spool.exclusive() as is_locked:
        assert is_locked


def test_a_report_delivered_by_another_process_is_skipped(spool: FileSpool) -> None:
    for run in (ONE, TWO, THREE):
        spool.put(run, b"x")
    seen = []
    for entry in spool.pending():
        seen.append(entry.run)
        spool.remove(TWO)
    assert seen == [ONE, THREE]


def test_a_refused_report_is_set_aside_with_the_reason(spool: FileSpool, tmp_path: Path) -> None:
    spool.put(ONE, b"odd")
    spool.set_aside(ONE, "there is no series 'x'")
    assert list(spool.pending()) == []
    assert sorted(bad(tmp_path).values()) == [b"odd", b"there is no series 'x'\n"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (f"{ONE}.json", b"", b"expected a report of 1 to"),
        (f"{ONE}.json", b"x" * (MAX_BYTES + 1), b"expected a report of 1 to"),
        ("notes.json", b"x", b"its name is not that of a run"),
        (f"{ONE.hex}.json", b"x", b"its name is not that of a run"),  # another spelling
    ],
)
def test_a_file_that_is_no_report_is_set_aside(
    spool: FileSpool, tmp_path: Path, name: str, content: bytes, reason: bytes
) -> None:
    (tmp_path / "spool" / name).write_bytes(content)
    spool.put(TWO, b"good")
    assert [entry.run for entry in spool.pending()] == [TWO]
    assert bad(tmp_path)[name] == content
    assert bad(tmp_path)[f"{name}.reason"].startswith(reason)


def test_a_partial_file_is_not_delivered_and_removed_later(spool: FileSpool, tmp_path: Path) -> None:
    old, young = (tmp_path / "spool" / f".{age}.json.1-0.part" for age in ("old", "young"))
    old.write_bytes(b"ha")
    young.write_bytes(b"ha")
    os.utime(old, (1, 1))
    assert list(FileSpool(tmp_path / "spool").pending()) == []
    assert not old.exists()
    assert young.exists()


def test_a_report_that_cannot_be_stored_raises_the_reason_and_leaves_no_file(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: the write fails half way in the same manner."""
    script = (
        "import resource, sys, uuid; from pathlib import Path; from reporters.spool import *;"
        "spool = FileSpool(Path(sys.argv[1]));"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));\n"
        "try: spool.put(uuid.UUID(int=1), b'x' * 5000)\n"
        "except FileSpoolError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "spool"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"cannot spool the report of {ONE} in {tmp_path}/spool: File too large")
    assert [path.name for path in (tmp_path / "spool").iterdir()] == ["bad"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_a_directory_that_cannot_be_created_raises_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileSpoolError, match=r"cannot make the spool .*/file/spool: Not a directory"):
        FileSpool(tmp_path / "file" / "spool")


def test_only_its_owner_reads_a_spool(spool: FileSpool, tmp_path: Path) -> None:
    assert (tmp_path / "spool").stat().st_mode & 0o077 == 0
