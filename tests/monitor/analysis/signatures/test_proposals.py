"""Proposed signatures match all texts of their template, and nothing else."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from monitor.analysis.signatures.classifier import Classifier, FailureText
from monitor.analysis.signatures.own import checked
from monitor.analysis.signatures.proposals import Proposal, propose
from monitor.analysis.signatures.text_group import TextGroup
from monitor.models.failure_signature import Category
from tests.monitor.analysis.signatures.labelled_texts import labelled_texts

START = r"(?:^|failed: |out of time: )\s*"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def group(text: str, runs: int = 3, series: tuple[int, ...] = (1,), minutes: int = 0) -> TextGroup:
    at = NOON + timedelta(minutes=minutes)
    return TextGroup(FailureText(text), text, None, runs, frozenset(series), at, at)


def proposed(*texts: str, named: tuple[str, ...] = ()) -> list[Proposal]:
    return propose([group(text) for text in texts], [FailureText(text) for text in named], ())


def pattern(*texts: str) -> str:
    (proposal,) = proposed(*texts)
    return proposal.signature.patterns[0]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["the beam (3 GeV) is off*"], START + r"the beam \(3 GeV\) is off\*\s*$"),
        (
            ["job 1 lost its lease on cn7", "job 22 lost its lease on cn8"],
            START + r"job \d+ lost its lease on cn\d+\s*$",
        ),
        (
            [f"user {name} is banned here" for name in ("a-1", "b.2", "c_3")],
            START + r"user [\w.-]+ is banned here\s*$",
        ),
        (["12:00:01 broker: lease lost again"], r"\bbroker: lease lost again\s*$"),
    ],
)
def test_a_pattern_has_constant_parts_literally_and_narrow_classes_for_others(
    texts: list[str], expected: str
) -> None:
    assert pattern(*texts) == expected


def test_a_pattern_matches_with_and_without_what_the_ledger_puts_before_the_text() -> None:
    (proposal,) = proposed("the frobnicator is jammed")
    classifier = Classifier([proposal.signature])
    for text in ("the frobnicator is jammed", "init at cn1 failed: The frobnicator is jammed"):
        assert classifier.classify(FailureText(text)) == proposal.signature
    for text in ("the frobnicator is jammed no more", "init: the frobnicator is jammed"):
        assert classifier.classify(FailureText(text)) is None


@pytest.mark.parametrize("text", ["error", "code 12", "job 12 failed", "/a/b/c", "", "12 34 56", "x y z"])
def test_texts_that_say_too_little_are_not_proposed(text: str) -> None:
    assert proposed(text) == []


@pytest.mark.parametrize(("runs", "series", "count"), [(2, (1,), 0), (3, (1,), 1), (2, (1, 2), 1)])
def test_a_proposal_needs_three_runs_or_two_series(runs: int, series: tuple[int, ...], count: int) -> None:
    assert len(propose([group("the frobnicator is jammed", runs, series)], [], ())) == count


def test_a_proposal_counts_runs_and_series_and_has_the_latest_examples() -> None:
    texts = [group(f"lease {number} of the broker lost", 2, (number % 3,), number) for number in range(9)]
    (proposal,) = propose(texts, [], ())
    assert (proposal.runs, sorted(proposal.series)) == (18, [0, 1, 2])
    assert (proposal.first, proposal.latest) == (NOON, NOON + timedelta(minutes=8))
    assert proposal.examples == tuple(f"lease {number} of the broker lost" for number in (8, 7, 6))
    assert proposal.template == "lease <number> of the broker lost"
    assert proposal.signature.title == "Lease … of the broker lost"
    assert proposal.signature.name == "lease-the-broker-lost"


def test_a_pattern_that_matches_a_text_of_another_cause_is_not_proposed() -> None:
    texts = [f"lease {number} of the broker lost" for number in range(3)]
    assert proposed(*texts, named=("lease 7 of the broker lost",)) == []
    assert len(proposed(*texts, named=("lease 7 of the broker found",))) == 1


def test_a_pattern_that_matches_a_text_of_another_template_is_not_proposed() -> None:
    plain = group("the frobnicator is jammed")
    longer = group("job failed: the frobnicator is jammed")  # as if the ledger had put it there
    names = [each.signature.patterns[0] for each in propose([plain, longer], [], ())]
    assert names == [START + r"job failed: the frobnicator is jammed\s*$"]


def test_names_are_free_and_valid() -> None:
    texts = [group("the frobnicator, is jammed"), group("the frobnicator is: jammed")]
    names = [each.signature.name for each in propose(texts, [], {"the-frobnicator-jammed"})]
    assert names == ["the-frobnicator-jammed-2", "the-frobnicator-jammed-3"]


@pytest.mark.parametrize(
    ("text", "category", "reason"),
    [
        ("the Certificate service is asleep", Category.CREDENTIAL, "certificate"),
        ("no inodes remain for the certificate service", Category.UNKNOWN, ""),
        ("the frobnicator is jammed", Category.UNKNOWN, ""),
    ],
)
def test_a_category_is_suggested_only_with_a_reason(text: str, category: Category, reason: str) -> None:
    (proposal,) = proposed(text)
    assert (proposal.signature.category, proposal.category_reason) == (category, reason)


def test_proposals_for_captured_texts_match_no_text_that_shipped_signatures_name() -> None:
    texts = labelled_texts()
    named = [FailureText(each.text) for each in texts if each.signature != "unknown"]
    unknown = [group(each.text) for each in texts if each.signature == "unknown"]
    classifier = Classifier([each.signature for each in propose(unknown, (), ())])
    wrong = {signature.name for text in named for signature in classifier.matching(text)}
    kept = propose(unknown, named, ())
    assert len(kept) > 100
    assert wrong.isdisjoint(each.signature.name for each in kept)
    for proposal in kept:
        values = {"title": proposal.signature.title, "category": "unknown", "severity": "major"}
        checked(proposal.signature.name, {**values, "patterns": list(proposal.signature.patterns)})


def test_every_proposal_matches_all_of_its_texts_and_no_other_one() -> None:
    draw = random.Random(11)
    forms = [
        "frobnicator on cn{} is out of phase at /scratch/{}/run",
        "<script>alert({})</script> broke the gate {}",
        "(((((a+)+)+)+)+ {} $^.*[{}] never ends well",
        "gate\t{}\tof the dam is  stuck ({})",
        "Größe der Datei {} ist ungültig für {}",
    ]
    texts = [form.format(draw.randrange(10**6), draw.randrange(999)) for form in forms for _ in range(30)]
    proposals = proposed(*texts)
    assert len(proposals) == len(forms)
    for proposal in proposals:
        classifier = Classifier([proposal.signature])
        matched = [text for text in texts if classifier.classify(FailureText(text))]
        assert len(matched) == 30
        assert proposal.runs == 90
