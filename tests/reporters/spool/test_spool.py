"""A spool loses nothing: records leave it with a receipt for their hash, or are reported as dropped."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reporters.spool.bounds import Bounds
from reporters.spool.files import SpoolError
from reporters.spool.lanes import FRESH_SECONDS, Lane
from reporters.spool.notes import StartNote
from reporters.spool.receipts import ConflictingRecord, Receipt, RecordRange, RefusedRecord
from reporters.spool.records import Part, encode
from reporters.spool.set_aside import MOST_FILES, AsideCount, count_aside
from reporters.spool.spool import Spool
from tests.reporters.spool.delivery import (
    NOON,
    REPORTER,
    Clock,
    Depot,
    dead,
    elsewhere,
    receipt_for,
    report,
)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", REPORTER, now=lambda: NOON)


def reopened(spool: Spool, **options: object) -> Spool:
    """Return the spool as another process of this host sees it."""
    return Spool(spool.directory, REPORTER, now=lambda: NOON, **options)  # type: ignore[arg-type]


def chain_directories(spool: Spool) -> list[str]:
    return sorted(path.name for path in spool.directory.iterdir() if path.is_dir() and "-" in path.name)


def numbers(bodies: list[bytes]) -> list[int]:
    """Return the numbers of the runs whose reports *bodies* are."""
    return [uuid.UUID(body[-38:-2].decode()).int for body in bodies]


def reports_in(parts: list[Part]) -> list[int]:
    return numbers([record.body for part in parts for record in part.records if record.kind == "report"])


def test_records_are_delivered_oldest_first_and_leave_with_the_receipt(spool: Spool) -> None:
    for number in range(5):
        spool.append(report(number))
    depot = Depot()
    assert depot.deliver(spool) == 1
    assert numbers(depot.bodies()) == [0, 1, 2, 3, 4]
    assert [record.kind for record in depot.records.values()] == ["start"] + ["report"] * 5
    assert spool.batch() == []
    status = spool.status()
    assert (status.records, status.oldest_at, status.dropped_records) == (0, None, 0)


def test_a_record_without_a_receipt_is_delivered_again(spool: Spool) -> None:
    spool.append(report(1))
    parts = spool.batch()
    assert spool.batch() == []  # in flight
    spool.release(parts)
    assert spool.batch() == parts
    assert reopened(spool).batch() == parts  # what is in flight is known to its process only


def test_records_outlive_the_process_and_its_successor_names_its_chain(spool: Spool) -> None:
    spool.append(report(1))
    last = spool.append(report(2))
    spool.close()
    following = reopened(spool)
    following.append(report(3))
    depot = Depot()
    depot.deliver(following)
    assert sorted(numbers(depot.bodies())) == [1, 2, 3]
    second, first = (StartNote.from_body(body) for body in depot.bodies("start"))  # the fresh one first
    assert (first.reporter, first.at, first.previous_chain, first.previous_head) == (REPORTER, NOON, None, "")
    (ended, _) = following.heads()
    assert (second.previous_chain, second.previous_head) == (ended.chain, last.hash)
    assert (ended.next, ended.head) == (3, last.hash)


def test_the_newest_head_is_known_after_its_chain_is_removed(spool: Spool) -> None:
    last = spool.append(report(1))
    Depot().deliver(spool)
    (head,) = spool.heads()
    spool.close()
    following = reopened(spool)
    following.tidy()
    assert chain_directories(spool) == []
    assert following.heads() == [head]
    following.append(report(2))
    (start, _) = following.batch()[0].records
    note = StartNote.from_body(start.body)
    assert (note.previous_chain, note.previous_head) == (head.chain, last.hash)


def test_a_chain_with_undelivered_records_stays_and_so_does_that_of_a_living_writer(spool: Spool) -> None:
    spool.append(report(1))
    other = reopened(spool, process=dead)
    other.append(report(2))
    reader = reopened(spool)
    reader.tidy()
    assert len(chain_directories(spool)) == 2
    Depot().deliver(reader)
    reader.tidy()
    (left,) = chain_directories(spool)
    assert left == str(spool.heads()[-1].chain)


def test_a_writer_whose_chain_was_removed_while_it_lived_loses_nothing(spool: Spool) -> None:
    clock = Clock()
    abroad = reopened(spool, process=elsewhere)
    abroad.append(report(1))
    depot = Depot()
    reader = reopened(spool, monotonic=lambda: clock.seconds)
    depot.deliver(reader)
    for _ in range(3):  # silent; renamed; silent still
        reader.tidy()
        clock.seconds += 901.0
    assert chain_directories(spool) == []
    abroad.append(report(2))
    depot.deliver(reader)
    assert numbers(depot.bodies()) == [1, 2]


def test_a_record_that_appears_while_its_chain_is_retired_is_delivered(spool: Spool) -> None:
    clock = Clock()
    abroad = reopened(spool, process=elsewhere)
    abroad.append(report(1))
    depot = Depot()
    reader = reopened(spool, monotonic=lambda: clock.seconds)
    depot.deliver(reader)
    reader.tidy()
    clock.seconds += 901.0
    reader.tidy()
    (retired,) = spool.directory.glob("*.retired")
    living = retired.rename(retired.with_suffix(""))
    abroad.append(report(2))  # as if before the renaming
    living.rename(retired)
    clock.seconds += 901.0
    reader.tidy()
    depot.deliver(reader)
    assert set(numbers(depot.bodies())) == {1, 2}


def test_the_heartbeat_of_a_writer_on_another_host_keeps_its_chain(spool: Spool) -> None:
    clock = Clock()
    abroad = reopened(spool, process=elsewhere)
    abroad.append(report(1))
    reader = reopened(spool, monotonic=lambda: clock.seconds)
    Depot().deliver(reader)
    (directory,) = chain_directories(spool)
    for beat in range(5):
        (spool.directory / directory / "heartbeat").write_text(f"beat {beat}")
        reader.tidy()
        clock.seconds += 899.0
    assert chain_directories(spool) == [directory]


def test_what_a_writer_left_that_was_killed_while_it_started_is_removed(spool: Spool) -> None:
    left = spool.directory / f".{uuid.uuid4()}.new"
    left.mkdir()
    (left / "owner").write_text(dead().to_text())
    spool.append(report(1))
    spool.tidy()
    assert not left.exists()
    assert reports_in(spool.batch()) == [1]


def test_a_batch_keeps_its_bounds_and_takes_one_record_at_least(spool: Spool) -> None:
    for number in range(20):
        spool.append(report(number, padding=10_000))
    assert [len(part.records) for part in spool.batch(most_records=4)] == [4]
    assert sum(len(part.records) for part in spool.batch(most_bytes=35_000)) == 3
    assert sum(len(part.records) for part in spool.batch(most_bytes=1)) == 1
    assert sum(len(part.records) for part in spool.batch()) == 21 - 8


def test_a_batch_of_large_records_fits_into_a_request(spool: Spool) -> None:
    for number in range(40):
        spool.append(report(number, padding=250_000))
    depot = Depot()  # parses requests as the server does
    assert depot.deliver(spool) == 2
    assert len(depot.bodies()) == 40


def test_fresh_records_are_delivered_beside_a_backlog(spool: Spool) -> None:
    for number in range(3000):
        spool.append(report(number))
    following = reopened(spool)
    following.batch(most_records=1)
    depot = Depot()
    for number in range(5000, 5010):
        following.append(report(number))
    assert following.acknowledge(depot.receive(following.batch(most_records=100))).ignored == ()
    delivered = numbers(depot.bodies())
    assert set(range(5000, 5010)) < set(delivered)
    assert sorted(delivered)[:-10] == list(range(89))
    depot.deliver(following)
    assert len(depot.bodies()) == 3010
    depot.check_chains()


def test_a_flood_of_fresh_records_leaves_half_of_a_batch_to_the_backlog(spool: Spool) -> None:
    for number in range(1000):
        spool.append(report(number))
    following = Spool(spool.directory, REPORTER, now=lambda: NOON + timedelta(hours=1))
    following.status()
    for number in range(5000, 6000):
        following.append(report(number))
    delivered = reports_in(following.batch(most_records=100))
    assert sum(number >= 5000 for number in delivered) in {49, 50}  # and the start of the chain
    assert sum(number < 5000 for number in delivered) in {49, 50}


def test_fresh_records_and_the_backlog_are_delivered_apart(spool: Spool) -> None:
    spool.append(report(1))
    steady = [1000.0]
    following = Spool(spool.directory, REPORTER, monotonic=lambda: steady[0])
    following.status()
    following.append(report(2))
    backlog, fresh = following.batch(lane=Lane.BACKLOG), following.batch(lane=Lane.FRESH)
    assert (reports_in(backlog), reports_in(fresh)) == ([1], [2])
    assert following.batch() == []  # both are in flight
    for parts in (backlog, fresh):
        following.release(parts)
    steady[0] += FRESH_SECONDS
    assert following.batch(lane=Lane.FRESH) == []
    assert set(reports_in(following.batch(lane=Lane.BACKLOG))) == {1, 2}


def test_a_segment_is_removed_only_when_all_its_records_have_receipts(spool: Spool) -> None:
    small = reopened(spool, segment_bytes=2000)
    for number in range(40):
        small.append(report(number, padding=100))
    files = list(spool.directory.rglob("*.segment"))
    assert len(files) > 5
    parts = small.batch()
    (part,) = parts
    without_third = [Part(part.chain, part.records[:3]), Part(part.chain, part.records[4:])]
    small.acknowledge(receipt_for(without_third))
    left = sorted(spool.directory.rglob("*.segment"))
    assert [int(path.stem) for path in left] == [0, max(int(path.stem) for path in files)]
    small.release(parts)
    for reader in (small, reopened(spool)):
        assert [record.sequence for part in reader.batch() for record in part.records] == [3]


@pytest.mark.parametrize("kind", ["hash", "reporter", "beyond"])
def test_a_forged_receipt_is_ignored(spool: Spool, kind: str) -> None:
    spool.append(report(1))
    parts = spool.batch()
    receipt = receipt_for(parts)
    (range_,) = receipt.records
    forged = {
        "hash": replace(receipt, records=(replace(range_, hash="0" * 64),)),
        "reporter": replace(receipt, reporter="anl"),
        "beyond": replace(receipt, records=(replace(range_, last=9),)),
    }[kind]
    answer = spool.acknowledge(forged)
    assert answer.records == 0
    assert len(answer.ignored) == 1
    spool.release(parts)
    assert spool.batch() == parts
    assert spool.acknowledge(receipt).records == 2


def test_a_receipt_for_an_unknown_chain_changes_nothing(spool: Spool) -> None:
    spool.append(report(1))
    receipt = Receipt(REPORTER, NOON, (RecordRange(uuid.uuid4(), 0, 5, "0" * 64),))
    assert spool.acknowledge(receipt).records == 0
    assert reports_in(spool.batch()) == [1]


def test_a_refused_record_is_kept_for_the_operator_with_the_reason(spool: Spool) -> None:
    spool.append(report(1))
    refused = spool.append(report(2))
    parts = spool.batch()
    (part,) = parts
    receipt = replace(
        receipt_for(parts),
        refused=(RefusedRecord(part.chain, 2, "there is no series 'x'"), RefusedRecord(part.chain, 77, "?")),
        conflicts=(ConflictingRecord(part.chain, 1, uuid.UUID(int=1)),),
    )
    assert spool.acknowledge(receipt).records == 3
    assert spool.batch() == []
    kept = {path.name: path.read_bytes() for path in (spool.directory / "refused").iterdir()}
    name = f"{part.chain}-2"
    assert kept == {name: encode(refused), f"{name}.reason": b"there is no series 'x'\n"}


def test_refused_records_beyond_the_bound_are_counted_and_told(spool: Spool) -> None:
    refused = spool.directory / "refused"
    refused.mkdir()
    for number in range(MOST_FILES - 2):
        (refused / str(number)).touch()
    for number in (1, 2, 3):
        spool.append(report(number))
    parts = spool.batch()
    (part,) = parts
    errors = tuple(RefusedRecord(part.chain, sequence, "no such series") for sequence in (1, 2, 3))
    acknowledged = spool.acknowledge(replace(receipt_for(parts), refused=errors))
    assert (acknowledged.records, acknowledged.not_kept) == (4, 2)
    assert count_aside(refused) == AsideCount(1, 2)
    assert spool.acknowledge(replace(receipt_for(parts), refused=errors)).not_kept == 0, "a repetition"


def test_dropped_records_are_reported_and_the_bound_is_kept(spool: Spool) -> None:
    small = reopened(spool, bounds=Bounds(most_bytes=40_000))
    for number in range(300):
        small.append(report(number, padding=500))
    status = small.status()
    assert status.bytes <= 45_000
    assert status.dropped_records > 200
    depot = Depot()
    depot.deliver(small)
    delivered = {record.sequence for record in depot.records.values()}
    dropped = {number for note in depot.dropped() for number in range(note.first, note.last + 1)}
    assert not delivered & dropped
    assert delivered | dropped == set(range(max(delivered) + 1))
    assert 0 in delivered  # the start of the chain
    assert {note.reason for note in depot.dropped()} == {"the spool is full: 40000 bytes"}
    assert numbers(depot.bodies()) == list(range(300 - len(depot.bodies()), 300))  # the oldest were dropped
    assert reopened(spool).status().dropped_records == status.dropped_records == len(dropped)


def test_the_last_records_of_a_dead_writer_are_dropped_but_not_those_of_a_living_one(spool: Spool) -> None:
    reopened(spool, process=dead).append(report(1, padding=6000))
    spool.append(report(2, padding=6000))
    small = reopened(spool, bounds=Bounds(most_bytes=2000))
    small.tidy()
    depot = Depot()
    depot.deliver(small)
    assert numbers(depot.bodies()) == [2]
    assert [(note.first, note.last) for note in depot.dropped()] == [(1, 1)]
    assert len(depot.bodies("start")) == 3


def test_old_records_are_dropped_and_a_jump_of_the_clock_drops_none(spool: Spool) -> None:
    clock = Clock()
    aged = Spool(
        spool.directory,
        REPORTER,
        Bounds(most_age_seconds=86400.0),
        segment_bytes=1000,
        now=lambda: clock.now,
        monotonic=lambda: clock.seconds,
    )
    for number in range(20):
        aged.append(report(number))
    clock.now += timedelta(days=3650)
    aged.tidy()
    assert aged.status().dropped_records == 0
    clock.now = NOON - timedelta(hours=1)
    aged.append(report(20))
    clock.now, clock.seconds = NOON + timedelta(days=2), 2 * 86400.0
    aged.tidy()
    depot = Depot()
    depot.deliver(aged)
    assert 0 < len(depot.bodies()) < 10
    assert 20 in numbers(depot.bodies())
    assert {note.reason for note in depot.dropped()} == {"older than 1 days"}


def test_the_oldest_record_has_the_time_of_its_body(spool: Spool) -> None:
    depot = Depot()
    spool.append(b'{"clock":{"sent_at":"2026-11-01T01:02:03Z"}}')
    assert spool.status().oldest_at == NOON  # the start of the chain
    parts = spool.batch()
    spool.release(parts)
    spool.acknowledge(receipt_for([Part(parts[0].chain, parts[0].records[:1])]))
    assert spool.status().oldest_at == NOON.replace(day=1, hour=1, minute=2, second=3)
    depot.deliver(spool)
    assert spool.status().oldest_at is None


def test_a_spool_knows_the_runs_whose_reports_wait(spool: Spool) -> None:
    one, two, three = (uuid.UUID(int=number) for number in (1, 2, 3))
    spool.append(report(1))
    reader = reopened(spool)
    assert (one in reader, two in reader) == (True, False)
    spool.append(report(2))
    nested = b'{"extra":{"run":"%s"},"run":"%s"}' % (str(one).encode(), str(three).encode())
    spool.append(nested)
    assert reader.pending_runs() == {one, two, three}
    Depot().deliver(spool)
    assert one not in reader
    assert reader.pending_runs() == set()


def test_threads_append_to_one_chain(spool: Spool) -> None:
    with ThreadPoolExecutor(8) as pool:
        records = list(pool.map(lambda number: spool.append(report(number)), range(200)))
    assert sorted(record.sequence for record in records) == list(range(1, 201))
    depot = Depot()
    depot.deliver(spool)
    depot.check_chains()
    assert sorted(numbers(depot.bodies())) == list(range(200))


def test_a_child_process_has_a_chain_of_its_own_after_a_fork(spool: Spool) -> None:
    spool.append(report(1))
    child = os.fork()
    if child == 0:
        try:
            spool.append(report(2))
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    spool.append(report(3))
    depot = Depot()
    depot.deliver(spool)
    assert sorted(numbers(depot.bodies())) == [1, 2, 3]
    assert len(spool.heads()) == 2


LIMITED = """
import resource, sys
from pathlib import Path
from reporters.spool.spool import Spool, SpoolError
limit, before = map(int, sys.argv[2:])
spool = Spool(Path(sys.argv[1]), "ncsa", segment_bytes=1000 if before else 10**6)
errors = 0
for number in range(20):
    if number == before:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        spool.append(b'{"n":%d,"pad":"%s"}' % (number, b"x" * 300))
    except SpoolError as error:
        errors += 1
        message = str(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
spool.append(b'{"n":20}')
sys.stdout.write(f"{errors} {message}")
"""


@pytest.mark.parametrize(
    ("limit", "before"),
    [(0, 0), (100, 0), (1000, 0), (1500, 0), (2500, 0), (0, 5), (50, 5), (150, 5), (550, 5)],
)
def test_a_full_disk_leaves_no_partial_record_and_the_writer_goes_on(
    tmp_path: Path, limit: int, before: int
) -> None:
    """The disk is full once *before* records are written; the first row of a segment has 91 bytes."""
    directory = tmp_path / "spool"
    argv = [sys.executable, "-c", LIMITED, str(directory), str(limit), str(before)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    errors, _, message = done.stdout.partition(" ")
    assert message == f"cannot append to the spool {directory}: File too large"
    depot = Depot()
    reader = Spool(directory, REPORTER)
    depot.deliver(reader)
    assert len(depot.bodies()) == 21 - int(errors)
    assert depot.bodies()[-1] == b'{"n":20}'
    assert len(depot.bodies("start")) == 1
    assert depot.dropped() == []
    depot.check_chains()


def test_a_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match=r"cannot make the spool .*/file/spool: Not a directory"):
        Spool(tmp_path / "file" / "spool", REPORTER)
    spool = Spool(tmp_path / "spool", REPORTER)
    (tmp_path / "spool").rmdir()
    with pytest.raises(SpoolError, match=r"cannot append to the spool .*: No such file"):
        spool.append(report(1))
    with pytest.raises(SpoolError, match=r"cannot read the spool .*: No such file"):
        spool.batch()


def test_a_body_with_a_newline_is_refused(spool: Spool) -> None:
    with pytest.raises(ValueError, match="expected compact JSON"):
        spool.append(b'{\n"n":1}')


def test_only_its_owner_reads_a_spool(spool: Spool) -> None:
    spool.append(report(1))
    assert spool.directory.stat().st_mode & 0o077 == 0
    files = [path for path in spool.directory.rglob("*") if path.is_file() and path.name != "heartbeat"]
    assert files
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)
