"""Records of chains are stored once, with their reports, and get a receipt; no history is rewritten."""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from monitor.models import Chain, ChainRecord, ConflictingReport, RawReport, Reporter, Run, Sample, Series
from monitor.models.chain import Disposition
from monitor.runs.ingest.chain_limit import DAY, MAX_EXTRA_RECORDS, TooManyExtraRecords
from monitor.runs.ingest.chains import DeclaredHead, declare_heads, ingest_parts
from reporters import report as wire
from reporters.spool.notes import DroppedNote
from reporters.spool.receipts import RecordRange
from reporters.spool.records import DROPPED, REPORT, START
from tests.monitor.runs.ingest.spooled import SpooledChain

MINUTE = timedelta(minutes=1)


def slots(noon: datetime, count: int) -> list[datetime]:
    return [noon + number * MINUTE for number in range(count)]


def dispositions() -> list[tuple[int, int]]:
    return list(ChainRecord.objects.order_by("chain", "sequence").values_list("sequence", "disposition"))


def test_records_are_stored_with_their_reports_and_covered_by_the_receipt(
    circle: Series, noon: datetime
) -> None:
    chain = SpooledChain().report(*slots(noon, 3))
    receipt = ingest_parts("home", [chain.part()])
    assert receipt.reporter == "home"
    assert receipt.records == (RecordRange(chain.name, 0, 3, chain.head),)
    assert (receipt.refused, receipt.conflicts) == ((), ())
    assert {raw.body for raw in RawReport.objects.all()} == {each.body for each in chain.records[1:]}
    rows = list(ChainRecord.objects.order_by("sequence"))
    assert [(row.kind, row.disposition) for row in rows] == [
        (START, Disposition.NOTE),
        *[(REPORT, Disposition.STORED)] * 3,
    ]
    assert [bytes(row.hash).hex() for row in rows] == [record.hash for record in chain.records]
    assert [row.slot for row in rows] == [None, *slots(noon, 3)]
    assert [row.run for row in rows[1:]] == [wire.run_id("circle", slot) for slot in slots(noon, 3)]
    assert rows[0].text.encode() == chain.records[0].body
    (stored,) = Chain.objects.all()
    assert (stored.uuid, stored.reporter.name) == (chain.name, "home")


def test_a_record_received_twice_is_stored_once_and_receipted_again(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 3))
    ingest_parts("home", [chain.part(range(3))])
    receipt = ingest_parts("home", [chain.part(range(1, 4))])
    assert receipt.records == (RecordRange(chain.name, 1, 3, chain.head),)
    assert receipt.refused == ()
    assert dispositions() == [(0, Disposition.NOTE), *((number, Disposition.STORED) for number in (1, 2, 3))]
    assert RawReport.objects.count() == 3


def test_records_arrive_in_any_order(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 5))
    for numbers in ([5], [2, 3], [0], [4], [1]):
        assert ingest_parts("home", [chain.part(numbers)]).refused == ()
    assert [sequence for sequence, _ in dispositions()] == list(range(6))


def test_one_request_has_parts_of_several_chains(circle: Series, noon: datetime) -> None:
    old = SpooledChain().report(*slots(noon, 2))
    new = SpooledChain(previous=old).report(noon + 5 * MINUTE)
    receipt = ingest_parts("home", [new.part([1]), old.part([2]), old.part([0, 1]), new.part([0])])
    assert [(each.chain, each.first, each.last) for each in receipt.records] == [
        (new.name, 1, 1),
        (old.name, 2, 2),
        (old.name, 0, 1),
        (new.name, 0, 0),
    ]
    assert Chain.objects.count() == 2
    assert RawReport.objects.count() == 3


def test_the_same_report_in_another_record_is_a_duplicate(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(noon, noon)
    assert ingest_parts("home", [chain.part()]).conflicts == ()
    assert dispositions()[1:] == [(1, Disposition.STORED), (2, Disposition.DUPLICATE)]


def test_another_report_of_a_run_is_a_conflict_in_every_receipt(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(noon).report(noon, reason="changed")
    for _ in range(2):
        receipt = ingest_parts("home", [chain.part()])
        assert [(each.sequence, each.run) for each in receipt.conflicts] == [(2, wire.run_id("circle", noon))]
        assert receipt.refused == ()
    assert dispositions()[1:] == [(1, Disposition.STORED), (2, Disposition.CONFLICT)]
    assert ConflictingReport.objects.get().body == chain.records[2].body


def test_a_report_that_can_never_be_stored_is_refused_in_every_receipt(
    circle: Series, noon: datetime
) -> None:
    chain = SpooledChain().report(noon).report(noon, series="nobody-knows").report(noon + MINUTE)
    chain.report(timezone.now() + timedelta(days=2))
    chain.add(REPORT, b"no report")
    for _ in range(2):
        receipt = ingest_parts("home", [chain.part()])
        refused = {each.sequence: each.error for each in receipt.refused}
        assert list(refused) == [2, 4, 5]
        assert "nobody-knows" in refused[2]
        assert "minutes after now" in refused[4]
        assert "JSON" in refused[5]
        assert receipt.records == (RecordRange(chain.name, 0, 5, chain.head),)
    assert RawReport.objects.count() == 2


def test_a_premature_report_is_neither_stored_nor_refused_nor_receipted(
    circle: Series, noon: datetime
) -> None:
    chain = SpooledChain().report(noon).report(timezone.now() + timedelta(hours=1)).report(noon + MINUTE)
    for _ in range(2):
        receipt = ingest_parts("home", [chain.part()])
        assert [(each.first, each.last) for each in receipt.records] == [(0, 1), (3, 3)]
        assert [each.hash for each in receipt.records] == [chain.records[1].hash, chain.head]
        assert receipt.refused == ()
    assert [sequence for sequence, _ in dispositions()] == [0, 1, 3]
    only_premature = ingest_parts("home", [chain.part([2])])
    assert (only_premature.records, only_premature.refused) == ((), ())


def test_records_that_store_no_report_are_limited(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 2)).report(noon, series="nobody-knows").report(noon)
    ingest_parts("home", [chain.part([0])])
    began = paced_until()
    ingest_parts("home", [chain.part([1, 2])])
    assert paced_until() == began, "stored reports do not count"
    ingest_parts("home", [chain.part([3, 4])])
    ingest_parts("home", [chain.part()])  # received before: nothing is added
    assert DAY / MAX_EXTRA_RECORDS <= paced_until() - began <= 2 * DAY / MAX_EXTRA_RECORDS
    Reporter.objects.update(paced_until=timezone.now() + DAY)
    chain.report(noon + 3 * MINUTE).report(noon, series="nobody-knows")
    with pytest.raises(TooManyExtraRecords, match="reporter home sent more than"):
        ingest_parts("home", [chain.part([5, 6])])
    assert ChainRecord.objects.count() == 5
    assert ingest_parts("home", [chain.part([5])]).refused == ()


def paced_until() -> datetime:
    until = Reporter.objects.get(name="home").paced_until
    assert until is not None
    return until


def test_notes_are_kept_and_malformed_ones_refused(circle: Series, noon: datetime) -> None:
    chain = SpooledChain()
    chain.dropped(chain, 5, 9)
    chain.add(DROPPED, b"{}")
    receipt = ingest_parts("home", [chain.part()])
    assert [each.sequence for each in receipt.refused] == [2]
    assert "first: expected an integer" in receipt.refused[0].error
    note = DroppedNote.from_body(ChainRecord.objects.get(sequence=1).text.encode())
    assert (note.first, note.last) == (5, 9)


def test_a_chain_that_starts_in_the_name_of_another_reporter_is_refused(circle: Series) -> None:
    Reporter.objects.create(name="ncsa")
    (refused,) = ingest_parts("ncsa", [SpooledChain("home").part()]).refused
    assert refused.error == "reporter: expected 'ncsa', got 'home'"


def test_a_record_of_a_number_that_has_another_is_refused_and_logged(
    circle: Series, noon: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    """The attack: a reporter rewrites its history after its reports were stored."""
    chain = SpooledChain().report(*slots(noon, 3))
    ingest_parts("home", [chain.part()])
    forged = SpooledChain(name=chain.name)
    forged.records = chain.records[:2]
    forged.report(noon + 10 * MINUTE, noon + 11 * MINUTE, noon + 12 * MINUTE)
    with caplog.at_level(logging.WARNING, "monitor.runs.ingest.chains"):
        receipt = ingest_parts("home", [forged.part()])
    assert [each.sequence for each in receipt.refused] == [2, 3, 4]
    assert f"with the hash {chain.records[2].hash}, was received before" in receipt.refused[0].error
    assert len(caplog.messages) == 1
    assert "the reporter 'home' sent, are refused" in caplog.messages[0]
    assert [bytes(row.hash).hex() for row in ChainRecord.objects.order_by("sequence")] == [
        record.hash for record in chain.records
    ]
    assert RawReport.objects.count() == 3


@pytest.mark.parametrize("is_one_request", [True, False])
def test_records_that_do_not_continue_the_chain_are_refused(
    circle: Series, noon: datetime, is_one_request: bool
) -> None:
    chain = SpooledChain().report(*slots(noon, 2))
    forged = SpooledChain(name=chain.name)
    forged.records = chain.records[:2]
    forged.report(noon + 10 * MINUTE, noon + 11 * MINUTE)
    parts = [chain.part(), forged.part([3])]
    receipts = [
        ingest_parts("home", each) for each in ([parts] if is_one_request else [[part] for part in parts])
    ]
    assert [each.error for receipt in receipts for each in receipt.refused] == [
        "record 3 does not continue the record 2 that was received"
    ]
    assert RawReport.objects.count() == 2


def test_a_chain_of_another_reporter_is_refused_and_stays_as_it_is(
    circle: Series, noon: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    Reporter.objects.create(name="ncsa")
    chain = SpooledChain().report(noon)
    ingest_parts("home", [chain.part([0])])
    for numbers in ([0, 1], [1]):
        receipt = ingest_parts("ncsa", [chain.part(numbers)])
        assert {each.error for each in receipt.refused} == {"the chain is of another reporter"}
        assert len(receipt.refused) == len(numbers)
    assert dispositions() == [(0, Disposition.NOTE)]
    assert ingest_parts("home", [chain.part()]).refused == ()


def test_a_report_of_a_series_of_another_reporter_is_refused(circle: Series, noon: datetime) -> None:
    Reporter.objects.create(name="ncsa")
    own_name = SpooledChain("ncsa").report(noon)
    other_name = SpooledChain("ncsa").report(noon, reporter="home")
    errors = [each.error for each in ingest_parts("ncsa", [own_name.part(), other_name.part()]).refused]
    assert sorted(errors) == [
        "reporter: expected 'ncsa', the reporter of the credential, got 'home'",
        "series: no series 'circle' is assigned to the reporter 'ncsa' at this slot",
    ]
    assert not Run.objects.exists()


def test_an_unknown_reporter_stores_nothing(circle: Series, noon: datetime) -> None:
    with pytest.raises(Reporter.DoesNotExist, match="'nobody'"):
        ingest_parts("nobody", [SpooledChain("nobody").part()])
    assert not Chain.objects.exists()


def test_a_record_that_cannot_be_stored_leaves_no_report_behind(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 2))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE monitor_chainrecord ADD CONSTRAINT few CHECK (sequence < 2)")
    with pytest.raises(IntegrityError, match="few"):
        ingest_parts("home", [chain.part()])
    assert not Run.objects.exists()
    assert not RawReport.objects.exists()
    assert not Chain.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_with_the_same_records_store_them_once(circle: Series, noon: datetime) -> None:
    chains = [SpooledChain().report(*slots(noon + 10 * number * MINUTE, 4)) for number in range(3)]

    def deliver(number: int) -> int:
        try:
            parts = [chain.part() for chain in chains]
            return len(ingest_parts("home", parts[:: -1 if number % 2 else 1]).refused)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(deliver, range(8))) == [0] * 8
    assert ChainRecord.objects.count() == 15
    assert RawReport.objects.count() == 12
    assert Sample.objects.count() == 12 * 8
    assert set(ChainRecord.objects.filter(kind=REPORT).values_list("disposition", flat=True)) == {
        Disposition.STORED
    }


def test_a_run_of_a_renamed_series_is_found_by_its_record(circle: Series, noon: datetime) -> None:
    Run.objects.create(pk=wire.run_id("circle", noon), series=circle, slot=noon, due_at=noon)
    Series.objects.update(name="ring")
    ingest_parts("home", [SpooledChain().report(noon, series="ring").part()])
    assert ChainRecord.objects.get(sequence=1).run == wire.run_id("circle", noon)


def declared() -> list[tuple[uuid.UUID, int, str]]:
    return list(Chain.objects.values_list("uuid", "declared_next", "declared_head"))


def test_declared_heads_rise_and_never_fall(circle: Series, caplog: pytest.LogCaptureFixture) -> None:
    chain = uuid.uuid4()
    with caplog.at_level(logging.WARNING, "monitor.runs.ingest.chains"):
        for number in (0, 0, 3, 3, 5):
            declare_heads("home", [DeclaredHead(chain, number, f"{number:064x}")])
        assert declared() == [(chain, 5, f"{5:064x}")]
        assert caplog.messages == []
        declare_heads("home", [DeclaredHead(chain, 4, f"{4:064x}")])
    assert declared() == [(chain, 5, f"{5:064x}")]
    assert caplog.messages == [
        f"the reporter 'home' declares that chain {chain} ends before record 4, but declared record 5, or"
        " another head, earlier"
    ]


def test_a_head_of_another_reporter_changes_nothing(circle: Series, caplog: pytest.LogCaptureFixture) -> None:
    Reporter.objects.create(name="ncsa")
    chain = uuid.uuid4()
    declare_heads("home", [DeclaredHead(chain, 3, "a" * 64)])
    with caplog.at_level(logging.WARNING, "monitor.runs.ingest.chains"):
        declare_heads("ncsa", [DeclaredHead(chain, 9, "b" * 64)])
    assert declared() == [(chain, 3, "a" * 64)]
    assert caplog.messages == [
        f"the reporter 'ncsa' declares that chain {chain} ends before record 9, but it is of 'home'"
    ]


def test_a_chain_is_declared_before_its_records_arrive(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(noon)
    declare_heads("home", [DeclaredHead(chain.name, chain.next, chain.head)])
    assert ingest_parts("home", [chain.part()]).refused == ()
    assert declared() == [(chain.name, 2, chain.head)]
