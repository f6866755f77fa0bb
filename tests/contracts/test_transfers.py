"""What every transfer promises, run over every file in ``reporters/transfers/``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.grid import CopyOptions
from reporters import reach, transfers
from reporters.base import CannotCopy, FileTransfer, TookTooLong
from reporters.registry import UnknownKind
from tests.reporters.places import Place, two_places

# The program that a kind copies with, so that a test can break it.
PROGRAMS = {
    "local": "cp",
    "ssh": "scp",
    "ssh-rsync": "rsync",
    "ssh-sftp": "sftp",
    "gridftp": "globus-url-copy",
}
# Kinds that are met in more than one way.
MORE = ("ssh-rsync", "ssh-sftp")


class Ends:
    """Two places and the transfer between them, with fresh directories."""

    def __init__(self, source: Place, target: Place, kind: str) -> None:
        self.source, self.target, self.program = source, target, PROGRAMS[kind]
        number = len(list(source.scratch.iterdir()))
        self.here, self.there = (place.scratch / str(number) for place in (source, target))
        self.here.mkdir()
        self.there.mkdir()
        self.transfer: FileTransfer = reach.transfer_between(source.end, target.end)

    def file(self, size: int, name: str = "input.dat") -> Path:
        path = self.here / name
        path.write_bytes(os.urandom(size))
        return path

    def copy(self, source: Path, target: Path, *, within_seconds: float = 20) -> tuple[int, float]:
        paths = str(source), str(target)
        done = self.transfer.copy(*paths, options=CopyOptions(), timeout_seconds=within_seconds)
        return done.bytes, done.seconds

    def left_there(self) -> list[str]:
        return sorted(path.name for path in self.there.iterdir())


@pytest.fixture(scope="module", params=[*transfers.names(), *MORE])
def places(request: pytest.FixtureRequest) -> Iterator[tuple[Place, Place, str]]:
    with two_places(request.param) as (one, two):
        yield one, two, request.param


@pytest.fixture
def ends(places: tuple[Place, Place, str]) -> Iterator[Ends]:
    made = Ends(*places)
    real = made.source.programs / made.program
    script = real.read_bytes() if real.exists() else None
    yield made
    if script is None:
        real.unlink(missing_ok=True)
    else:
        real.write_bytes(script)


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(UnknownKind, match=r"there is no transfer 'pigeon'; known are .*local.*ssh"):
        transfers.load("pigeon")


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_a_file_arrives_whole(ends: Ends, size: int) -> None:
    source = ends.file(size)
    copied_bytes, seconds = ends.copy(source, ends.there / "output.dat")
    arrived = (ends.there / "output.dat").read_bytes()
    assert copied_bytes == size
    assert 0 < seconds < 20
    assert hashlib.sha256(arrived).digest() == hashlib.sha256(source.read_bytes()).digest()
    assert ends.left_there() == ["output.dat"]


def test_a_file_that_is_there_is_replaced(ends: Ends) -> None:
    (ends.there / "output.dat").write_text("old and longer")
    ends.copy(ends.file(5), ends.there / "output.dat")
    assert (ends.there / "output.dat").stat().st_size == 5


@pytest.mark.parametrize("name", ["-rf", "it's a b", "$HOME;`id`", "ä:y", "*?[a]#", 'a\\"b'])
def test_any_name_may_be_copied_from(ends: Ends, name: str) -> None:
    ends.copy(ends.file(7, name), ends.there / "output.dat")
    assert (ends.there / "output.dat").stat().st_size == 7


def test_a_missing_file_is_the_sources_failure(ends: Ends) -> None:
    missing, target = ends.here / "missing.dat", ends.there / "output.dat"
    with pytest.raises(CannotCopy) as raised:
        ends.copy(missing, target)
    assert raised.value.message.startswith(f"cannot copy one:{missing} to two:{target}: ")
    assert "missing.dat" in raised.value.stderr_tail
    assert raised.value.resource == "one"
    assert ends.left_there() == []


def test_a_missing_directory_is_the_targets_failure(ends: Ends) -> None:
    with pytest.raises(CannotCopy, match=r"cannot copy one:.* to two:.*No such file or directory") as raised:
        ends.copy(ends.file(5), ends.there / "missing" / "output.dat")
    assert raised.value.resource == "two"
    assert raised.value.exit_status not in (0, None)


def test_a_tool_that_fails_half_way_leaves_nothing_and_is_quoted(ends: Ends) -> None:
    source = ends.file(1000)
    ends.source.install(ends.program, "echo 'Warning: slow' >&2; echo 'tool: Broken pipe' >&2; exit 6")
    with pytest.raises(CannotCopy, match=r"tool: Broken pipe$") as raised:
        ends.copy(source, ends.there / "output.dat")
    assert raised.value.exit_status == 6
    assert raised.value.stderr_tail == "Warning: slow\ntool: Broken pipe\n"
    assert ends.left_there() == []


def test_bytes_that_are_missing_are_noticed(ends: Ends) -> None:
    source = ends.file(1000)
    ends.source.install(
        ends.program,
        "for last; do :; done; case $0 in *sftp) read -r _ _ last ;; esac; "
        f'head -c 400 "{source}" > "{ends.there}/$(basename "${{last#*:}}")"',
    )
    with pytest.raises(CannotCopy, match="400 of 1000 bytes arrived"):
        ends.copy(source, ends.there / "output.dat")
    assert ends.left_there() == []


def test_a_copy_that_stalls_is_stopped_at_its_limit(ends: Ends) -> None:
    source = ends.file(10)
    ends.source.install(ends.program, "exec sleep 600")
    with pytest.raises(TookTooLong):
        ends.copy(source, ends.there / "output.dat", within_seconds=0.3)
    assert ends.left_there() == []
