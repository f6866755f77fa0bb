"""The contract of transfers, run over every file in ``reporters/transfers/``."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.base import in_parallel
from probes.grid import CopyOptions, Transferred
from reporters import resolve, transfers
from reporters.base import CannotCopy, FileTransfer, TookTooLong
from reporters.registry import UnknownPlugin
from tests.reporters.places import Place, two_places
from tests.reporters.sabotage import BrokenProgram, Saboteur, broken_server

# The program that a kind copies with, if it has another name than the kind, so that a test can break it.
PROGRAMS = {
    "local": "cp",
    "ssh": "scp",
    "ssh-rsync": "rsync",
    "ssh-sftp": "sftp",
    "gridftp": "globus-url-copy",
    "xrootd": "xrdcp",
}
SERVERS = {"http"}  # kinds without a program: the server is broken
# Kinds that are met in more than one way.
MORE = ("ssh-rsync", "ssh-sftp")


class Ends:
    """Two places and the transfer between them, with fresh directories."""

    def __init__(self, source: Place, target: Place, saboteur: Saboteur) -> None:
        self.source, self.target, self.saboteur = source, target, saboteur
        number = len(list(source.scratch.iterdir()))
        self.here, self.there = (place.scratch / str(number) for place in (source, target))
        self.here.mkdir()
        self.there.mkdir()
        self.transfer: FileTransfer = resolve.transfer_between(source.end, target.end)

    def file(self, size: int, name: str = "input.dat") -> Path:
        path = self.here / name
        path.write_bytes(os.urandom(size))
        return path

    def copy(
        self, source: Path, target: Path, *, within_seconds: float = 60, streams: int = 1
    ) -> Transferred:
        paths = str(source), str(target)
        options = CopyOptions(streams=streams)
        return self.transfer.copy(*paths, options=options, timeout_seconds=within_seconds)

    def left_there(self) -> list[str]:
        return sorted(path.name for path in self.there.iterdir())


KINDS = [*transfers.names(), *MORE]


@pytest.fixture(scope="module", params=KINDS, ids=KINDS)
def places(request: pytest.FixtureRequest) -> Iterator[tuple[Place, Place, Saboteur]]:
    kind = request.param
    with two_places(kind) as (one, two), contextlib.ExitStack() as running:
        saboteur = (
            running.enter_context(broken_server())
            if kind in SERVERS
            else BrokenProgram(one, PROGRAMS.get(kind, kind))
        )
        yield one, two, saboteur


@pytest.fixture
def ends(places: tuple[Place, Place, Saboteur]) -> Iterator[Ends]:
    ends = Ends(*places)
    yield ends
    ends.saboteur.repair()


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(UnknownPlugin, match=r"there is no transfer 'pigeon'; known are .*local.*ssh"):
        transfers.load("pigeon")


def test_an_existing_file_is_replaced_and_a_copy_has_bytes_and_seconds(ends: Ends) -> None:
    (ends.there / "output.dat").write_text("old and longer")
    copy = ends.copy(ends.file(5), ends.there / "output.dat", streams=2)
    assert (ends.there / "output.dat").stat().st_size == 5
    streams = 2 if ends.transfer.capabilities.parallel_streams else 1
    assert (copy.bytes, copy.streams, copy.retries) == (5, streams, 0)


def test_files_of_any_size_and_name_arrive_completely_in_parallel(ends: Ends) -> None:
    sizes = {"-rf": 0, "it's a b": 1, "$HOME;`id`": 3_000_000, "ä:y": 7, "*?[a]#": 7, 'a\\"b': 7}
    sources = [ends.file(size, name) for name, size in sizes.items()]

    def copied(number: int) -> Transferred | CannotCopy:
        try:
            return ends.copy(sources[number], ends.there / f"{number}.dat", within_seconds=60)
        except CannotCopy as error:
            return error

    came = in_parallel(copied, range(len(sources)))
    for number, (copy, source) in enumerate(zip(came, sources, strict=True)):
        # XRootD takes what follows a question mark for something else.
        assert isinstance(copy, Transferred) or ("?" in source.name and copy.resource == "one"), copy
        if isinstance(copy, Transferred):
            assert copy.bytes == sizes[source.name]
            assert copy.seconds > 0
            assert digest(ends.there / f"{number}.dat") == digest(source)
    assert len(ends.left_there()) == sum(isinstance(copy, Transferred) for copy in came)


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


def test_a_tool_that_fails_during_a_copy_leaves_no_file_and_is_quoted(ends: Ends) -> None:
    source = ends.file(1000)
    ends.transfer = ends.saboteur.fail(ends.transfer)
    with pytest.raises(CannotCopy, match=r"tool: Broken pipe$") as raised:
        ends.copy(source, ends.there / "output.dat")
    assert raised.value.exit_status == ends.saboteur.exit_status
    assert raised.value.stderr_tail == ends.saboteur.stderr
    assert ends.left_there() == []


def test_missing_bytes_are_detected(ends: Ends) -> None:
    source = ends.file(1000)
    ends.transfer = ends.saboteur.cut(ends.transfer, source, ends.there)
    with pytest.raises(CannotCopy, match="400 of 1000 bytes arrived"):
        ends.copy(source, ends.there / "output.dat")
    assert ends.left_there() == []


def test_a_copy_that_stalls_is_stopped_at_its_limit(ends: Ends) -> None:
    source = ends.file(10)
    ends.transfer = ends.saboteur.hang(ends.transfer)
    with pytest.raises(TookTooLong):
        ends.copy(source, ends.there / "output.dat", within_seconds=0.3)
    assert ends.left_there() == []


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
