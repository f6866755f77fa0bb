"""The audit of a reporter's chains finds what is missing, doubled or altered, and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.core.compression import pack
from monitor.depot.series.delete import delete_series
from monitor.models import (
    ChainRecord,
    ConflictingReport,
    RawReport,
    Reporter,
    ReporterStatus,
    RetentionCutoff,
    Series,
)
from monitor.models.chain import Disposition
from monitor.runs.ingest import audit_chains as audited
from monitor.runs.ingest.audit_chains import ChainAudit, audit_chains
from monitor.runs.ingest.chains import DeclaredHead, declare_heads, ingest_parts
from tests.monitor.runs.ingest.spooled import SpooledChain

MINUTE = timedelta(minutes=1)


def slots(noon: datetime, count: int) -> list[datetime]:
    return [noon + number * MINUTE for number in range(count)]


def deliver(*chains: SpooledChain, without: Sequence[int] = ()) -> None:
    """Deliver all records of *chains* but those *without*, and declare the heads of the chains."""
    for chain in chains:
        for number in range(chain.next):
            if number not in without:
                ingest_parts(chain.reporter, [chain.part([number])])
        declare_heads(chain.reporter, [DeclaredHead(chain.name, chain.next, chain.head)])


def audit(reporter: str = "home") -> ChainAudit:
    return audit_chains(Reporter.objects.get(name=reporter))


def figures(result: ChainAudit) -> tuple[int, int, int]:
    return result.missing, result.doubled, result.altered


def findings(result: ChainAudit) -> list[str]:
    return [str(finding) for finding in result.findings]


def set_spooled(records: int) -> None:
    now = timezone.now()
    home = Reporter.objects.get(name="home")
    ReporterStatus.objects.create(reporter=home, seen_at=now, started_at=now, spool_records=records)


def test_complete_chains_have_no_findings(circle: Series, noon: datetime) -> None:
    old = SpooledChain().report(*slots(noon, 3)).report(noon)
    new = SpooledChain(previous=old).report(noon + 9 * MINUTE).report(noon, reason="another")
    deliver(old, new)
    result = audit()
    assert (result.chains, result.records, figures(result), findings(result)) == (2, 8, (0, 0, 0), [])
    assert (result.conflicts, result.refused, result.expired, result.unlinked) == (1, 0, 0, 0)


def test_missing_records_are_named_by_their_ranges(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 9))
    deliver(chain, without=[2, 3, 6, 8, 9])
    result = audit()
    assert figures(result) == (5, 0, 0)
    assert findings(result) == [
        f"chain {chain.name}, records 2 to 3: missing",
        f"chain {chain.name}, record 6: missing",
        f"chain {chain.name}, records 8 to 9: missing",
    ]
    assert result.unlinked == 2  # the records 4 and 7


def test_dropped_records_are_counted_apart(circle: Series, noon: datetime) -> None:
    old = SpooledChain().report(*slots(noon, 6))
    new = SpooledChain(previous=old).dropped(old, 2, 3).dropped(old, 5, 5)
    deliver(old, without=[2, 3, 4])
    deliver(new)
    result = audit()
    assert (result.dropped, figures(result)) == (2, (1, 0, 0))
    assert findings(result) == [f"chain {old.name}, record 4: missing"]


def test_a_chain_of_which_nothing_arrived_is_missing(circle: Series, noon: datetime) -> None:
    declared, unknown = SpooledChain().report(noon), SpooledChain().report(noon)
    later = SpooledChain(previous=unknown)
    declare_heads("home", [DeclaredHead(declared.name, 2, declared.head)])
    deliver(later)
    assert findings(audit()) == [
        f"chain {declared.name}, records 0 to 1: missing",
        f"chain {unknown.name}, record 0: missing: chain {later.name} continues a record with the hash"
        f" {unknown.head}",
    ]


def test_an_undeclared_end_is_missing_if_a_later_chain_continues_it(circle: Series, noon: datetime) -> None:
    old = SpooledChain().report(*slots(noon, 2))
    new = SpooledChain(previous=old)
    ingest_parts("home", [old.part(range(2)), new.part()])
    assert findings(audit()) == [
        f"chain {old.name}, record 2: missing: chain {new.name} continues a record with the hash {old.head}"
    ]
    ingest_parts("home", [old.part([2])])
    assert figures(audit()) == (0, 0, 0)


def test_missing_records_may_wait_in_the_spool(circle: Series, noon: datetime) -> None:
    deliver(SpooledChain().report(*slots(noon, 4)), without=[3, 4])
    set_spooled(2)
    assert (audit().waiting, figures(audit()), findings(audit())) == (2, (0, 0, 0), [])
    ReporterStatus.objects.update(spool_records=1)  # so at least one record is lost
    assert (audit().waiting, figures(audit())) == (0, (2, 0, 0))


def test_an_altered_report_is_found(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 4))
    deliver(chain)
    other = chain.records[1].body.replace(b'"passed"', b'"failed"')
    packing, packed = pack(other)
    RawReport.objects.filter(slot__in=slots(noon, 2)).update(packing=packing, packed=packed)
    result = audit()
    assert figures(result) == (0, 0, 2)
    assert findings(result) == [
        f"chain {chain.name}, records 1 to 2: its hash is not that of the stored report and the record before"
    ]


def test_an_altered_note_or_hash_is_found(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 3))
    deliver(chain)
    ChainRecord.objects.filter(sequence=0).update(text="{}")
    ChainRecord.objects.filter(sequence=2).update(hash=bytes(32))
    assert figures(audit()) == (0, 0, 3)  # also the record behind the altered hash


def test_a_report_that_vanished_is_altered_but_an_expired_one_is_not(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 4)).report(noon, reason="another")
    deliver(chain)
    RawReport.objects.filter(slot__lt=noon + 2 * MINUTE).delete()
    ConflictingReport.objects.all().delete()
    result = audit()
    assert figures(result) == (0, 0, 3)
    assert findings(result)[0] == f"chain {chain.name}, records 1 to 2: its report is not in the depot"
    RetentionCutoff.objects.create(series=circle, kind="reports", kept_from=noon + 2 * MINUTE)
    result = audit()
    assert (figures(result), result.expired) == ((0, 0, 0), 3)


def test_reports_of_a_deleted_series_are_not_checked(circle: Series, noon: datetime) -> None:
    deliver(SpooledChain().report(*slots(noon, 2)))
    delete_series(Series.objects.all())
    result = audit()
    assert (figures(result), result.expired) == ((0, 0, 0), 2)


def test_a_damaged_report_is_altered(circle: Series, noon: datetime) -> None:
    deliver(SpooledChain().report(noon))
    RawReport.objects.update(packed=b"damaged")
    assert figures(audit()) == (0, 0, 1)


def test_a_head_that_differs_from_the_declared_one_is_altered(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(noon)
    ingest_parts("home", [chain.part()])
    declare_heads("home", [DeclaredHead(chain.name, 2, "a" * 64)])
    assert findings(audit()) == [
        f"chain {chain.name}, record 1: its hash is not {'a' * 64}, as the reporter declared"
    ]


def test_a_run_with_two_stored_records_is_doubled(circle: Series, noon: datetime) -> None:
    deliver(SpooledChain().report(noon, noon))
    assert figures(audit()) == (0, 0, 0)
    ChainRecord.objects.filter(sequence=2).update(disposition=Disposition.STORED)
    result = audit()
    assert figures(result) == (0, 1, 0)
    assert findings(result) == [
        f"run {ChainRecord.objects.get(sequence=2).run}: 2 records are stored as its report"
    ]


def test_a_run_with_two_stored_reports_is_doubled(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(noon)
    deliver(chain)
    raw = RawReport.objects.get()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO monitor_rawreport SELECT run_id, slot + interval '1 s', received_at, packing, packed"
            " FROM monitor_rawreport WHERE run_id = %s",
            [raw.run_id],
        )
    assert findings(audit()) == [f"chain {chain.name}, record 1: its run has several stored reports"]


def test_refused_records_are_there_but_not_checked(circle: Series, noon: datetime) -> None:
    deliver(SpooledChain().report(noon, series="nobody-knows").report(noon))
    result = audit()
    assert (figures(result), result.refused, result.unlinked) == ((0, 0, 0), 1, 0)


def test_a_rewritten_history_shows_as_missing(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 2))
    deliver(chain)
    forged = SpooledChain(name=chain.name)
    forged.records = chain.records[:1]
    forged.report(noon, noon + 5 * MINUTE, noon + 6 * MINUTE, noon + 7 * MINUTE, reason="forged")
    ingest_parts("home", [forged.part()])
    declare_heads("home", [DeclaredHead(chain.name, forged.next, forged.head)])
    assert findings(audit()) == [f"chain {chain.name}, records 3 to 4: missing"]


def test_chains_of_other_reporters_do_not_count(circle: Series, noon: datetime) -> None:
    Reporter.objects.create(name="ncsa")
    deliver(SpooledChain("ncsa").report(noon), without=[1])
    assert (audit().chains, figures(audit("ncsa"))) == (0, (1, 0, 0))


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_batches_of_any_size_give_the_same_result(circle: Series, noon: datetime, batch: int) -> None:
    chain = SpooledChain().report(*slots(noon, 7))
    deliver(chain, without=[3, 7])
    RawReport.objects.filter(slot=noon).update(packed=b"damaged")
    assert findings(audit_chains(Reporter.objects.get(), batch=batch)) == findings(audit())
    assert batch < audited.BATCH


def run_command(*options: str) -> str:
    out = StringIO()
    call_command("ledger", "audit", *options, stdout=out)
    return out.getvalue()


def test_the_command_says_that_all_is_well(circle: Series, noon: datetime) -> None:
    deliver(SpooledChain().report(*slots(noon, 2)).report(noon, reason="another"))
    assert run_command("--reporter=home").splitlines() == [
        "4 records of 1 chains of home: 0 missing, 0 doubled, 0 altered",
        "1 conflicting with an earlier report of their run",
    ]


def test_the_command_names_findings_and_fails(circle: Series, noon: datetime) -> None:
    chain = SpooledChain().report(*slots(noon, 2))
    deliver(chain, without=[1])
    out = StringIO()
    with pytest.raises(CommandError, match="the depot differs from the chains of home"):
        call_command("ledger", "audit", "--reporter=home", stdout=out)
    assert out.getvalue().splitlines() == [
        f"chain {chain.name}, record 1: missing",
        "2 records of 1 chains of home: 1 missing, 0 doubled, 0 altered",
        "1 not checked: the record before was not received",
    ]


def test_the_command_names_the_reporters_if_there_is_none_of_that_name(circle: Series) -> None:
    with pytest.raises(CommandError, match=r"there is no reporter 'ncsa'; there are: home"):
        run_command("--reporter=ncsa")


def test_many_findings_are_counted_though_only_some_are_kept(circle: Series) -> None:
    result = ChainAudit("home")
    for number in range(0, 4 * audited.MOST_FINDINGS, 2):
        result.add(audited.MISSING, uuid.UUID(int=0), number, number, "missing")
    assert (result.missing, len(result.findings)) == (2 * audited.MOST_FINDINGS, audited.MOST_FINDINGS)


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_order_and_repetition_nothing_is_missing_doubled_or_altered(
    circle: Series, noon: datetime, data: st.DataObject
) -> None:
    """Requests are cut, repeated, delayed and reordered; chains have duplicates, conflicts and drops."""
    chains: list[SpooledChain] = []
    for _ in range(data.draw(st.integers(1, 3), "chains")):
        chain = SpooledChain(previous=chains[-1] if chains else None)
        for minute in data.draw(st.lists(st.integers(0, 5), max_size=6), "slots"):
            chain.report(noon + minute * MINUTE, reason=data.draw(st.sampled_from(["", "another"])))
        chains.append(chain)
    lost = [chain.next - 1 if data.draw(st.booleans()) and chain.next > 1 else None for chain in chains]
    writer = chains[-1]
    for chain, number in zip(chains[:-1], lost[:-1], strict=True):
        if number is not None:
            writer.dropped(chain, number, number)
    requests = [
        (chain, range(first, min(first + size, chain.next)))
        for chain in chains
        for size in [data.draw(st.integers(1, 4), "size")]
        for first in range(0, chain.next, size)
    ]
    repeated = requests + data.draw(st.lists(st.sampled_from(requests), max_size=5), "repeated")
    with transaction.atomic():
        for chain, numbers in data.draw(st.permutations(repeated), "requests"):
            kept = [number for number in numbers if chain is writer or number != lost[chains.index(chain)]]
            if kept:
                assert ingest_parts("home", [chain.part(kept)]).refused == ()
            declare_heads("home", [DeclaredHead(chain.name, chain.next, chain.head)])
        result = audit()
        transaction.set_rollback(True)
    assert (figures(result), findings(result)) == ((0, 0, 0), [])
    assert result.records + result.dropped == sum(chain.next for chain in chains)
