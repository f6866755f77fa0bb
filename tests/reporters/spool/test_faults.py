"""Whatever is killed, cut or damaged: a confirmed record is delivered unchanged, or reported as dropped."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import subprocess
import sys
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reporters.spool.receipts import Receipt
from reporters.spool.records import Part, parse_parts
from reporters.spool.spool import Spool
from tests.reporters.spool.delivery import REPORTER, Clock, Depot, dead, elsewhere, receipt_for, report
from tests.waiting import eventually


def spooled(directory: Path, count: int) -> Path:
    """Spool *count* reports by a process that has died; return the only segment file."""
    spool = Spool(directory, REPORTER, process=dead)
    for number in range(count):
        spool.append(report(number))
    (segment,) = directory.rglob("*.segment")
    return segment


def copied(segment: Path, data: bytes, directory: Path) -> Spool:
    """Return a spool in the new *directory* like that of *segment*, whose content is *data*."""
    source = segment.parent.parent
    shutil.copytree(source, directory)
    (directory / segment.relative_to(source)).write_bytes(data)
    return Spool(directory, REPORTER, is_durable=False)


def test_a_writer_killed_at_any_byte_of_a_record_loses_no_earlier_record(tmp_path: Path) -> None:
    segment = spooled(tmp_path / "whole", 2)
    whole = segment.read_bytes()
    first, second = (whole.index(b"record %d " % number) for number in (1, 2))
    for length in range(first, len(whole) + 1):
        spool = copied(segment, whole[:length], tmp_path / str(length))
        spool.append(report(9))
        depot = Depot()
        depot.deliver(spool)
        confirmed = [report(number) for number, end in enumerate((second, len(whole))) if length >= end]
        assert sorted(depot.bodies()) == sorted([*confirmed, report(9)]), length
        assert depot.dropped() == [], length
        spool.tidy()
        assert len(list((tmp_path / str(length)).glob("*-*"))) == 1, length
        shutil.rmtree(tmp_path / str(length))


def test_a_damaged_record_is_set_aside_and_reported_and_the_others_are_delivered(tmp_path: Path) -> None:
    segment = spooled(tmp_path / "whole", 4)
    whole = segment.read_bytes()
    starts = [whole.index(b"record %d " % number) for number in range(5)] + [len(whole)]
    for offset in range(0, len(whole), 7):
        changed = whole[:offset] + bytes([whole[offset] ^ 4]) + whole[offset + 1 :]
        spool = copied(segment, changed, tmp_path / str(offset))
        depot = Depot()
        depot.deliver(spool)
        spool.tidy()
        depot.deliver(spool)
        broken = max((number for number, start in enumerate(starts) if start <= offset), default=None)
        assert sorted(depot.bodies()) == [report(n) for n in range(4) if broken is None or n != broken - 1]
        notes = [(note.first, note.last) for note in depot.dropped()]
        assert notes == ([] if broken is None else [(broken, broken)])
        if broken is not None:
            name = f"{segment.parent.name}-{broken}"
            kept = (tmp_path / str(offset) / "damaged" / name).read_bytes()
            assert kept == changed[starts[broken] : starts[broken + 1]]
            assert (tmp_path / str(offset) / "damaged" / f"{name}.reason").read_text().startswith("damaged: ")
        assert not (tmp_path / str(offset) / segment.parent.name).exists()
        shutil.rmtree(tmp_path / str(offset))


def test_a_segment_that_is_cut_in_the_middle_of_a_chain_is_reported(tmp_path: Path) -> None:
    writer = Spool(tmp_path / "spool", REPORTER, process=dead, segment_bytes=1000)
    for number in range(20):
        writer.append(report(number))
    segments = sorted((tmp_path / "spool").rglob("*.segment"))
    third = int(segments[2].stem)
    fourth = int(segments[3].stem)
    segments[2].write_bytes(b"")
    segments[4].unlink()
    spool = Spool(tmp_path / "spool", REPORTER)
    depot = Depot()
    depot.deliver(spool)
    dropped = [number for note in depot.dropped() for number in range(note.first, note.last + 1)]
    assert sorted(dropped)[: fourth - third] == list(range(third, fourth))
    assert set(range(int(segments[4].stem), int(segments[5].stem))) <= set(dropped)
    assert len(depot.bodies()) + len(dropped) == 20
    assert all(note.reason == "absent from its segment" for note in depot.dropped())


def test_what_a_writer_on_another_host_has_written_may_appear_later(tmp_path: Path) -> None:
    clock = Clock()
    writer = Spool(tmp_path / "spool", REPORTER, process=elsewhere, segment_bytes=1000)
    for number in range(10):
        writer.append(report(number))
    second = sorted((tmp_path / "spool").rglob("*.segment"))[1]
    whole = second.read_bytes()
    second.write_bytes(whole[:-100])  # as a cache of NFS may have it
    reader = Spool(tmp_path / "spool", REPORTER, monotonic=lambda: clock.seconds)
    depot = Depot()
    depot.deliver(reader)
    assert len(depot.bodies()) == 9
    assert not reader.is_empty()
    second.write_bytes(whole)
    depot.deliver(reader)
    assert sorted(depot.bodies()) == [report(number) for number in range(10)]
    assert depot.dropped() == []


def test_what_a_silent_writer_on_another_host_did_not_write_is_reported(tmp_path: Path) -> None:
    clock = Clock()
    writer = Spool(tmp_path / "spool", REPORTER, process=elsewhere, segment_bytes=1000)
    for number in range(10):
        writer.append(report(number))
    second = sorted((tmp_path / "spool").rglob("*.segment"))[1]
    second.write_bytes(second.read_bytes()[:-100])
    reader = Spool(tmp_path / "spool", REPORTER, monotonic=lambda: clock.seconds)
    depot = Depot()
    for _ in range(2):
        depot.deliver(reader)
        clock.seconds += 901.0
    depot.deliver(reader)
    assert len(depot.bodies()) == 9
    assert [note.first - note.last for note in depot.dropped()] == [0]
    assert reader.is_empty()


operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("send"), st.integers(1, 8)),
        st.tuples(st.just("arrive"), st.integers(0, 20)),
        st.tuples(st.just("repeat"), st.integers(0, 20)),
        st.tuples(st.just("lose"), st.integers(0, 20)),
        st.tuples(st.just("restart"), st.booleans()),
        st.tuples(st.just("forge"), st.integers(0, 20)),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(operations)
def test_no_order_of_receipts_and_restarts_loses_a_record(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Requests and receipts are lost, repeated, forged and reordered, and the process restarts."""
    world = _World(tmp_path_factory.mktemp("spool") / "spool")
    for step, number in steps:
        getattr(world, step)(number)
    world.restart(True)
    world.depot.deliver(world.spool)
    world.depot.check_chains()
    assert sorted(world.depot.bodies()) == sorted(report(number) for number in range(world.appended))
    assert world.depot.dropped() == []
    assert world.spool.status().records == 0


class _World:
    """A spool and its server, with an unreliable network between them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.depot = Depot()
        self.appended = 0
        self.sent: list[list[Part]] = []
        self.receipts: list[Receipt] = []
        self.spool = self._open()

    def _open(self) -> Spool:
        return Spool(self.directory, REPORTER, is_durable=False, segment_bytes=1200)

    def append(self, count: int) -> None:
        for _ in range(count):
            self.spool.append(report(self.appended))
            self.appended += 1

    def send(self, most: int) -> None:
        if parts := self.spool.batch(most):
            self.sent.append(parts)

    def arrive(self, index: int) -> None:
        """A request arrives, maybe not for the first time, and its receipt gets back."""
        if self.sent:
            self.receipts.append(self.depot.receive(self.sent[index % len(self.sent)]))
            self.spool.acknowledge(self.receipts[-1])

    def repeat(self, index: int) -> None:
        if self.receipts:
            self.spool.acknowledge(self.receipts[index % len(self.receipts)])

    def lose(self, index: int) -> None:
        if self.sent:
            self.spool.release(self.sent.pop(index % len(self.sent)))

    def forge(self, index: int) -> None:
        """A receipt of records that the server has not received, with a hash that is not theirs."""
        if self.sent:
            parts = self.sent[index % len(self.sent)]
            other = [
                Part(part.chain, (*part.records[:-1], replace(part.records[-1], hash="0" * 64)))
                for part in parts
            ]
            self.spool.acknowledge(receipt_for(other))

    def restart(self, is_orderly: bool | int) -> None:
        if is_orderly:
            self.spool.close()
        self.spool = self._open()


WRITER = """
import sys, time, uuid
from pathlib import Path
from reporters.spool.spool import Spool
spool = Spool(Path(sys.argv[1]), "ncsa", segment_bytes=4000, is_durable=False)
for number in range(10**9):
    run = uuid.uuid4()
    spool.append(b'{"pad":"%s","run":"%s"}' % (b"x" * (number % 300), str(run).encode()))
    sys.stdout.write(f"{run}\\n")
    sys.stdout.flush()
    time.sleep(0.001)
"""
DELIVERER = """
import os, sys, time
from pathlib import Path
from reporters.spool.records import encode_parts
from reporters.spool.spool import Spool
from tests.reporters.spool.delivery import receipt_for
spool = Spool(Path(sys.argv[1]), "ncsa", is_durable=False)
with open(sys.argv[2], "ab", buffering=0) as depot:
    while True:
        parts = spool.batch(50)
        if parts:
            data = encode_parts(parts)
            depot.write(b"%d\\n" % len(data) + data)
            spool.acknowledge(receipt_for(parts))
        time.sleep(0.001)
"""


@pytest.mark.parametrize("kills", [12, pytest.param(300, marks=pytest.mark.nightly)])
def test_no_confirmed_record_is_lost_when_writers_and_deliverers_are_killed(
    tmp_path: Path, kills: int
) -> None:
    chance = random.Random(kills)
    world = _Processes(tmp_path)
    try:
        for _ in range(3):
            world.start_writer()
        world.start_deliverer()
        for _ in range(kills):
            world.wait_for_progress(chance.randrange(1, 30))
            world.kill(chance.random() < 0.4, chance.randrange(3))
    finally:
        world.stop()
    depot = world.depot()
    last = Spool(tmp_path / "spool", REPORTER)
    depot.deliver(last)
    last.tidy()
    depot.check_chains()
    runs = Counter(uuid.UUID(body[-38:-2].decode()) for body in depot.bodies())
    assert set(runs.values()) == {1}
    assert world.confirmed() - runs.keys() == set()
    assert depot.dropped() == []
    assert last.status().records == 0
    assert list((tmp_path / "spool").glob("[!.]*-*")) == []


class _Processes:
    """Writers and a deliverer of one spool; each writes what it did to a file."""

    def __init__(self, tmp_path: Path) -> None:
        self._path = tmp_path
        self._writers: list[subprocess.Popen[bytes]] = []
        self._deliverer: subprocess.Popen[bytes] | None = None
        self._logs = 0
        self._depots = 0

    def start_writer(self) -> None:
        self._logs += 1
        with (self._path / f"writer-{self._logs}").open("wb") as log:
            argv = [sys.executable, "-c", WRITER, str(self._path / "spool")]
            self._writers.append(subprocess.Popen(argv, stdout=log))

    def start_deliverer(self) -> None:
        self._depots += 1
        argv = [
            sys.executable,
            "-c",
            DELIVERER,
            str(self._path / "spool"),
            str(self._path / f"depot-{self._depots}"),
        ]
        self._deliverer = subprocess.Popen(argv)

    def wait_for_progress(self, records: int) -> None:
        before = self._written()
        assert eventually(lambda: self._written() >= before + 37 * records)

    def _written(self) -> int:
        return sum(path.stat().st_size for path in self._path.glob("writer-*"))

    def kill(self, is_deliverer: bool, writer: int) -> None:
        if is_deliverer and self._deliverer is not None:
            _kill(self._deliverer)
            self.start_deliverer()
        else:
            _kill(self._writers.pop(writer))
            self.start_writer()

    def stop(self) -> None:
        for process in [*self._writers, self._deliverer]:
            if process is not None:
                _kill(process)

    def confirmed(self) -> set[uuid.UUID]:
        text = b"".join(path.read_bytes() for path in self._path.glob("writer-*"))
        return {uuid.UUID(line.decode()) for line in text.splitlines() if len(line) == 36}

    def depot(self) -> Depot:
        depot = Depot()
        for path in self._path.glob("depot-*"):
            data = path.read_bytes()
            while data:
                length, _, data = data.partition(b"\n")
                if len(data) >= int(
                    length
                ):  # the last request of a killed deliverer may be cut: not received
                    depot.receive(parse_parts(data[: int(length)]))
                data = data[int(length) :]
        return depot


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()
