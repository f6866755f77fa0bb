"""Records of a reporter's chain against the same reports without a chain; the audit of the chain."""

from __future__ import annotations

import statistics
import uuid
from collections.abc import Sequence

from monitor.models import Reporter
from monitor.models.reporter import HOME
from monitor.runs.ingest.audit_chains import audit_chains
from monitor.runs.ingest.chains import ingest_parts
from monitor.runs.ingest.service import ingest_all
from reporters.spool.notes import StartNote
from reporters.spool.records import REPORT, START, Part, Record, next_record
from tests.bench import ingest
from tests.bench.base import Result, seconds

BATCHES = 12


def measure() -> list[Result]:
    ingest.define_series()
    bodies, chain = ingest.drawn_bodies(), uuid.uuid4()
    last = next_record(chain, None, START, StartNote(HOME, ingest.START, None, "").to_body())
    ingest_parts(HOME, [Part(chain, (last,))])
    alone, chained = [], []
    for number in range(2 * BATCHES):
        batch = [next(bodies) for _ in range(ingest.BATCH)]
        ingest.expect(batch)
        if number % 2:
            alone.append(seconds(lambda batch=batch: ingest_all(batch, senders=[HOME] * len(batch))))  # type: ignore[misc]
            continue
        records = _records(chain, last, batch)
        last = records[-1]
        chained.append(seconds(lambda records=records: _send(chain, records)))  # type: ignore[misc]
    records_seconds, reports_seconds = statistics.median(chained), statistics.median(alone)
    return [
        Result(
            name="records of a chain, 500 at once / reports without a chain",
            ratio=reports_seconds / records_seconds,
            target=0.7,
            better="higher",
            figures={
                "records/s": ingest.BATCH / records_seconds,
                "reports/s": ingest.BATCH / reports_seconds,
            },
        ),
        _audit(records_seconds / ingest.BATCH),
    ]


def _audit(record_seconds: float) -> Result:
    """Measure the audit of the chain against the storing of its records."""
    reporter = Reporter.objects.get(name=HOME)
    result = audit_chains(reporter)
    if not result.is_sound or result.records != BATCHES * ingest.BATCH + 1:
        raise AssertionError(result)
    audited_seconds = seconds(lambda: audit_chains(reporter)) / result.records
    return Result(
        name="records audited / stored",
        ratio=record_seconds / audited_seconds,
        target=2.0,
        better="higher",
        figures={"audited, records/s": 1 / audited_seconds},
    )


def _records(chain: uuid.UUID, last: Record, batch: Sequence[bytes]) -> list[Record]:
    records = [last]
    for body in batch:
        records.append(next_record(chain, records[-1], REPORT, body))
    return records[1:]


def _send(chain: uuid.UUID, records: Sequence[Record]) -> None:
    receipt = ingest_parts(HOME, [Part(chain, tuple(records))])
    if receipt.refused or receipt.conflicts:
        raise AssertionError(receipt)
