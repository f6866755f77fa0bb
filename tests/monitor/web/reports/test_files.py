"""A report replaces its files at the end, all or none; whether it can is checked at the beginning."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitor.web.reports.files import NotWritten, check_writable, write_all

KILLED = """
import sys
from pathlib import Path
from monitor.web.reports.files import write_all

class Slow(dict):
    def items(self):
        yield Path(sys.argv[1]), b"new"
        print("drafted", flush=True)
        sys.stdin.read()

write_all(Slow())
"""


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Have writes beyond *size* bytes fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "study.html"
    file.write_text("old")
    file.chmod(0o640)
    check_writable(file)
    assert file.read_text() == "old"
    write_all({file: b"new"})
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o640)
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_keeps_pointing_to_the_file_that_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("target")
    write_all({link: b"new"})
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is not a regular file"),
        ("missing/study.html", "No such file or directory"),
        ("file/study.html", "Not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_with_the_reason(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWritten, match=f"cannot write {tmp_path / name}: {reason}"):
        check_writable(tmp_path / name)


def test_a_device_is_no_file_for_a_report() -> None:
    with pytest.raises(NotWritten, match="cannot write /dev/full: it is not a regular file"):
        check_writable(Path("/dev/full"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to a read-only file")
def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "study.html"
    file.touch(0o400)
    with pytest.raises(NotWritten, match="it is read-only"):
        check_writable(file)


def test_if_the_disk_is_full_no_file_changes(tmp_path: Path) -> None:
    html, pdf = tmp_path / "study.html", tmp_path / "study.pdf"
    html.write_text("old")
    with largest_file(1000), pytest.raises(NotWritten, match=f"cannot write {pdf}: File too large"):
        write_all({html: b"new", pdf: bytes(2000)})
    assert html.read_text() == "old"
    assert list(tmp_path.iterdir()) == [html]


def test_a_command_that_is_killed_leaves_the_old_file(tmp_path: Path) -> None:
    html = tmp_path / "study.html"
    html.write_text("old")
    argv = [sys.executable, "-c", KILLED, str(html)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == b"drafted\n"
        writer.kill()
        assert writer.wait() == -signal.SIGKILL
    assert html.read_text() == "old"
