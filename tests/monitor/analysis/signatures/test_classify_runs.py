"""Failed runs get the signature of their failure, and history is judged again by new signatures."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from monitor.analysis.signatures import classify_runs as module
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.analysis.signatures.signature import Signature
from monitor.models import FailureSignature, JudgedHistory, RawReport, Run, Series
from monitor.models.failure_signature import Category, Severity
from monitor.models.run import State
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.conftest import NOON

MINUTE = timedelta(minutes=1)
FULL = Signature(
    "full", "Disk full", Category.STORAGE, Severity.MAJOR, True, ("no space left",), "Free some."
)
TAPES = replace(FULL, name="tapes", title="No tapes", patterns=("no tape",))


@pytest.fixture(autouse=True)
def _depot(circle: Series) -> None:
    pass


def ingested(*reports: wire.Report) -> None:
    receipts = ingest_all([wire.to_json(report) for report in reports])
    assert all(receipt.accepted for receipt in receipts), receipts


def causes() -> list[str | None]:
    return list(Run.objects.order_by("slot").values_list("signature__name", flat=True))


def test_a_failed_run_gets_its_signature_and_a_passed_one_none() -> None:
    ingested(circle_report(NOON), failed_circle_report(NOON + MINUTE))
    assert classify_runs(NOON + 2 * MINUTE, [FULL]) == 1
    assert causes() == [None, "full"]
    assert classify_runs(NOON + 2 * MINUTE, [FULL]) == 0


def test_what_no_signature_matches_is_unknown() -> None:
    ingested(failed_circle_report(NOON, message="the tape robot dropped the tape"))
    classify_runs(NOON, [FULL])
    assert causes() == ["unknown"]


def test_the_shipped_signatures_are_used_by_default() -> None:
    ingested(failed_circle_report(NOON))
    classify_runs(NOON)
    assert causes() == ["disk-full"]


def test_a_broken_and_a_timed_out_run_have_signatures_and_a_missed_one_has_none() -> None:
    broken = replace(
        failed_circle_report(NOON, message="KeyError: x"), outcome="broken", reason="init broke: KeyError: x"
    )
    timed_out = replace(
        failed_circle_report(NOON + MINUTE, message="scp ran longer than 10 s and was stopped"),
        outcome="timed_out",
    )
    ingested(broken, timed_out)
    series = Series.objects.get()
    Run.objects.create(
        id=wire.run_id("circle", NOON + 2 * MINUTE),
        series=series,
        slot=NOON + 2 * MINUTE,
        due_at=NOON + 2 * MINUTE,
        state=State.MISSED,
    )
    classify_runs(NOON)
    assert causes() == ["probe-broken", "monitor-timeout", None]


def test_a_run_without_a_report_is_judged_by_its_reason() -> None:
    ingested(failed_circle_report(NOON))
    RawReport.objects.all().delete()
    classify_runs(NOON, [FULL])
    assert causes() == ["full"]


def test_history_is_judged_again_when_the_signatures_change() -> None:
    slots = [NOON + number * MINUTE for number in range(5)]
    ingested(*(failed_circle_report(slot, message="no tape, no space left") for slot in slots))
    classify_runs(slots[-1] + MINUTE, [FULL])
    assert causes() == ["full"] * 5
    both = [FULL, replace(TAPES, precedence=1)]
    assert classify_runs(slots[-1] + MINUTE, both) == 5
    assert causes() == ["tapes"] * 5
    assert JudgedHistory.objects.get().rejudge_before is None
    assert classify_runs(slots[-1] + MINUTE, both) == 0


def test_history_is_judged_in_batches_and_a_call_goes_on_where_the_last_one_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slots = [NOON + number * MINUTE for number in range(6)]
    ingested(*(failed_circle_report(slot) for slot in slots))
    monkeypatch.setattr(module, "BATCH", 2)
    classify_runs(slots[-1] + MINUTE, [TAPES])
    assert causes() == ["unknown"] * 6
    monkeypatch.setattr(module, "_MOST_BATCHES", 1)
    classify_runs(slots[-1] + MINUTE, [FULL])
    assert causes() == ["unknown"] * 4 + ["full"] * 2
    classify_runs(slots[-1] + MINUTE, [FULL])
    assert causes() == ["unknown"] * 2 + ["full"] * 4
    ingested(failed_circle_report(slots[-1] + MINUTE))
    classify_runs(slots[-1] + MINUTE, [FULL])  # what is new comes first
    classify_runs(slots[-1] + MINUTE, [FULL])
    assert causes() == ["full"] * 7


def test_a_changed_title_changes_the_row_that_runs_refer_to() -> None:
    ingested(failed_circle_report(NOON))
    classify_runs(NOON, [FULL])
    key = FailureSignature.objects.get(name="full").pk
    classify_runs(NOON, [replace(FULL, title="The disk is full")])
    row = FailureSignature.objects.get(name="full")
    assert (row.pk, row.title, row.help) == (key, "The disk is full", "Free some.")


def test_a_late_report_of_a_lost_run_is_classified() -> None:
    series = Series.objects.get()
    Run.objects.create(
        id=wire.run_id("circle", NOON), series=series, slot=NOON, due_at=NOON, state=State.LOST
    )
    assert classify_runs(NOON, [FULL]) == 0
    ingested(failed_circle_report(NOON))
    classify_runs(NOON, [FULL])
    assert causes() == ["full"]


def test_the_tools_of_the_resources_of_a_series_decide_which_signatures_apply() -> None:
    of_slurm = replace(FULL, name="slurm-full", tools=frozenset({"slurm"}), precedence=1)
    of_local = replace(FULL, name="local-full", tools=frozenset({"local"}), precedence=1)
    ingested(failed_circle_report(NOON))
    classify_runs(NOON, [FULL, of_slurm])
    assert causes() == ["full"]
    classify_runs(NOON + MINUTE, [FULL, of_slurm, of_local])
    assert causes() == ["local-full"]


def test_no_time_is_needed_to_be_classified(noon: datetime) -> None:
    """A run whose slot lies ahead, within the tolerance of ingest, is judged again as well."""
    ingested(failed_circle_report(noon))
    classify_runs(noon, [TAPES])
    classify_runs(noon, [FULL])
    assert causes() == ["full"]
