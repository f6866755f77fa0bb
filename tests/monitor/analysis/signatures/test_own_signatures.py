"""Signatures of one's own: accepted, edited and withdrawn, with a record; history is judged again by them."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from monitor.analysis.signatures import own as own_signatures
from monitor.analysis.signatures.active import active_signatures
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.analysis.signatures.own import (
    ConflictingSignature,
    InvalidSignatureValues,
    OutdatedSignature,
    SignatureError,
)
from monitor.analysis.signatures.unknown_failures import preview, proposals
from monitor.models import (
    FailureSignature,
    JudgedHistory,
    OwnSignature,
    RawReport,
    Run,
    Series,
    SignatureChange,
)
from monitor.models.failure_signature import Origin
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import failed_circle_report
from tests.monitor.conftest import NOON

MINUTE = timedelta(minutes=1)
LATER = NOON + 90 * MINUTE
JAMMED = "the frobnicator {} is jammed"
VALUES: dict[str, Any] = {
    "title": "The frobnicator is jammed",
    "category": "resource",
    "severity": "major",
    "patterns": ["frobnicator .* jammed"],
}


@pytest.fixture
def jammed(circle: Series) -> None:
    """Four runs that failed by a jammed frobnicator, and an older one by a full disk."""
    messages = [None, *(JAMMED.format(number) for number in range(4))]
    reports = [
        failed_circle_report(NOON + number * MINUTE, **({} if message is None else {"message": message}))
        for number, message in enumerate(messages)
    ]
    receipts = ingest_all([wire.to_json(report) for report in reports])
    assert all(receipt.accepted for receipt in receipts), receipts
    classify_runs(LATER)


def causes() -> list[str | None]:
    return list(Run.objects.order_by("slot").values_list("signature__name", flat=True))


def test_an_accepted_signature_names_history_and_a_withdrawn_one_no_more(jammed: None) -> None:
    assert causes() == ["disk-full", *["unknown"] * 4]
    row = own_signatures.accept("jam", VALUES, "chief", LATER)
    assert FailureSignature.objects.get(name="jam").origin == Origin.PAGE
    assert classify_runs(LATER) == 4
    assert causes() == ["disk-full", *["jam"] * 4]
    own_signatures.withdraw("jam", row.version, "deputy", LATER)
    assert FailureSignature.objects.get(name="jam").origin == Origin.WITHDRAWN
    assert classify_runs(LATER) == 4
    assert causes() == ["disk-full", *["unknown"] * 4]
    assert JudgedHistory.objects.get().rejudge_before is None
    record = SignatureChange.objects.values_list("signature", "action", "user", "at")
    assert list(record) == [("jam", "withdrawn", "deputy", LATER), ("jam", "added", "chief", LATER)]


def test_an_edited_signature_judges_history_again_and_its_change_is_recorded(jammed: None) -> None:
    row = own_signatures.accept("jam", VALUES, "chief", LATER)
    classify_runs(LATER)
    edited = own_signatures.edit(
        "jam",
        {**VALUES, "patterns": ["frobnicator [01] is jammed"], "precedence": 3},
        row.version,
        "deputy",
        LATER,
    )
    classify_runs(LATER)
    assert causes() == ["disk-full", "jam", "jam", "unknown", "unknown"]
    assert (edited.changed_by, edited.precedence) == ("deputy", 3)
    change = SignatureChange.objects.first()
    assert change is not None
    assert change.differences == [
        "patterns: frobnicator .* jammed → frobnicator [01] is jammed",
        "precedence: default → 3",
    ]


@pytest.mark.parametrize(
    ("name", "changed", "key", "message"),
    [
        ("Jam!", {}, "name", "expected a name"),
        ("unknown", {}, "name", "unknown is what no signature matches"),
        ("jam", {"title": ""}, "title", "expected"),
        ("jam", {"category": "weather"}, "category", "weather"),
        ("jam", {"category": ""}, "category", "'user'"),
        ("jam", {"patterns": []}, "patterns", "at least 1"),
        (
            "jam",
            {"patterns": ["a", "(?=b)"]},
            "patterns",
            "number 2: not a regular expression of RE2",
        ),
        ("jam", {"patterns": ["(a"]}, "patterns", "missing )"),
        ("jam", {"patterns": ["a*"]}, "patterns", "matches an empty text"),
        ("jam", {"patterns": ["((a{99}){99}){99}"]}, "patterns", "not a regular expression of RE2"),
        ("jam", {"patterns": ["a" * 1001]}, "patterns", "at most 1000 characters"),
        ("jam", {"precedence": 101}, "precedence", "at most 100"),
        ("jam", {"precedence": "high"}, "precedence", "whole number"),
        ("jam", {"stages": ["a b"]}, "stages", "expected a name"),
    ],
)
@pytest.mark.django_db
def test_an_invalid_signature_is_refused_with_its_field(
    name: str, changed: dict[str, Any], key: str, message: str
) -> None:
    with pytest.raises(InvalidSignatureValues) as refused:
        own_signatures.accept(name, {**VALUES, **changed}, "chief", NOON)
    assert message in refused.value.problems[key]
    assert not OwnSignature.objects.exists()
    assert not SignatureChange.objects.exists()


@pytest.mark.django_db
def test_a_name_or_pattern_in_use_is_refused() -> None:
    own_signatures.accept("jam", VALUES, "chief", NOON)
    with pytest.raises(ConflictingSignature, match=r"there is a signature jam since .* by chief"):
        own_signatures.accept("jam", {**VALUES, "patterns": ["gate"]}, "deputy", NOON)
    with pytest.raises(ConflictingSignature, match="the signature jam has the pattern frobnicator"):
        own_signatures.accept("jam-2", VALUES, "deputy", NOON)
    with pytest.raises(ConflictingSignature, match="gridcast ships a signature disk-full"):
        own_signatures.accept("disk-full", VALUES, "deputy", NOON)
    assert [row.name for row in OwnSignature.objects.all()] == ["jam"]


@pytest.mark.django_db
def test_a_change_that_the_user_has_not_seen_is_not_overwritten() -> None:
    row = own_signatures.accept("jam", VALUES, "chief", NOON)
    own_signatures.edit("jam", {**VALUES, "title": "Jam"}, row.version, "deputy", NOON)
    with pytest.raises(OutdatedSignature, match=r"was changed at .* by deputy"):
        own_signatures.edit("jam", {**VALUES, "title": "Ham"}, row.version, "chief", NOON)
    with pytest.raises(OutdatedSignature, match="was changed"):
        own_signatures.withdraw("jam", row.version, "chief", NOON)
    own_signatures.withdraw("jam", row.version + 1, "deputy", NOON)
    with pytest.raises(OutdatedSignature, match="withdrawn"):
        own_signatures.edit("jam", VALUES, row.version + 1, "chief", NOON)


@pytest.mark.django_db(transaction=True)
def test_of_two_users_who_accept_at_once_one_gets_an_error() -> None:
    barrier, errors = threading.Barrier(2), []

    def accept(name: str) -> None:
        barrier.wait()
        try:
            own_signatures.accept(name, VALUES, name, NOON)
        except SignatureError as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=accept, args=(name,)) for name in ("jam", "jammed")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(error) for error in errors] == [ConflictingSignature]
    assert OwnSignature.objects.count() == SignatureChange.objects.count() == 1


@pytest.mark.django_db
def test_a_row_that_cannot_be_used_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    own_signatures.accept("jam", VALUES, "chief", NOON)
    own_signatures.accept("gate", {**VALUES, "patterns": ["gate stuck"]}, "chief", NOON)
    OwnSignature.objects.filter(name="jam").update(patterns=["(broken"])
    names = {signature.name for signature in active_signatures()}
    assert "gate" in names
    assert "jam" not in names
    assert "own signatures with invalid patterns are not used: jam" in caplog.text


@pytest.mark.django_db
def test_an_own_signature_replaces_one_that_an_upgrade_ships_under_its_name() -> None:
    own_signatures.accept("jam", VALUES, "chief", NOON)
    OwnSignature.objects.update(name="disk-full")
    (found,) = [signature for signature in active_signatures() if signature.name == "disk-full"]
    assert found.title == VALUES["title"]


def test_unknown_runs_are_proposed_as_a_signature_that_names_them(jammed: None) -> None:
    (proposal,) = proposals(Run.objects.all(), LATER)
    assert (proposal.runs, len(proposal.series)) == (4, 1)
    assert (proposal.first, proposal.latest) == (NOON + MINUTE, NOON + 4 * MINUTE)
    assert proposal.template == "the frobnicator <number> is jammed"
    values = {**VALUES, "patterns": list(proposal.signature.patterns)}
    own_signatures.accept(proposal.signature.name, values, "chief", LATER)
    classify_runs(LATER)
    assert causes() == ["disk-full", *[proposal.signature.name] * 4]
    assert proposals(Run.objects.all(), LATER) == []


def test_a_proposed_signature_also_names_runs_whose_reports_are_gone(jammed: None) -> None:
    RawReport.objects.all().delete()
    (proposal,) = proposals(Run.objects.all(), LATER)
    own_signatures.accept("jam", {**VALUES, "patterns": list(proposal.signature.patterns)}, "chief", LATER)
    classify_runs(LATER)
    assert causes()[1:] == ["jam"] * 4


def test_proposals_are_made_of_visible_runs_only(jammed: None) -> None:
    assert proposals(Run.objects.none(), LATER) == []


def test_a_preview_counts_unknown_runs_and_those_of_other_causes(jammed: None) -> None:
    shown = preview(Run.objects.all(), own_signatures.checked("jam", VALUES), LATER)
    assert (shown.unknown, shown.series, shown.all_unknown, shown.named) == (4, 1, 4, [])
    assert shown.examples[0] == JAMMED.format(3)
    greedy = own_signatures.checked("all", {**VALUES, "patterns": ["."]})
    assert preview(Run.objects.all(), greedy, LATER).named == [("disk-full", 1)]
    assert preview(Run.objects.none(), greedy, LATER).unknown == 0


def test_a_preview_reads_stderr_as_the_classifier_does(circle: Series) -> None:
    report = failed_circle_report(NOON, message="odd")
    assert report.failure is not None
    report = replace(report, failure=replace(report.failure, stderr_tail="first\nthe gate is stuck"))
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report)]))
    classify_runs(LATER)
    signature = own_signatures.checked("gate", {**VALUES, "patterns": ["^the gate is stuck$"]})
    assert preview(Run.objects.all(), signature, LATER).unknown == 1
