"""Which signature wins, and to which failures a signature applies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.analysis.signatures.classifier import MOST_CHARACTERS, Classifier, FailureText, InvalidPattern
from monitor.analysis.signatures.signature import Signature
from monitor.models.failure_signature import Category, Severity

FULL = Signature("disk-full", "Disk full", Category.STORAGE, Severity.MAJOR, True, ("no space",), "")
REFUSED = Signature("refused", "Refused", Category.NETWORK, Severity.MAJOR, True, ("refused",), "")


def name_of(failure: FailureText, *signatures: Signature) -> str | None:
    signature = Classifier(signatures).classify(failure)
    return signature.name if signature else None


def test_no_signature_matches_without_signatures() -> None:
    assert name_of(FailureText("no space")) is None


@pytest.mark.parametrize("text", ["no space left", "NO SPACE", "write:\nNo Space left\nlost connection"])
def test_letters_match_in_either_case_on_every_line(text: str) -> None:
    assert name_of(FailureText(text), FULL) == "disk-full"


def test_the_highest_precedence_wins() -> None:
    text = FailureText("connection refused, no space")
    assert name_of(text, FULL, REFUSED) == "refused"
    assert name_of(text, replace(FULL, precedence=1), REFUSED) == "disk-full"


def test_of_equal_precedence_what_went_wrong_first_wins() -> None:
    assert name_of(FailureText("no space, then refused"), FULL, REFUSED) == "disk-full"
    assert name_of(FailureText("refused", stderr_tail="no space"), FULL, REFUSED) == "refused"


def test_the_message_the_end_of_stderr_and_the_exit_status_are_searched() -> None:
    killed = replace(FULL, name="killed", patterns=("exit status 137",))
    assert name_of(FailureText("", stderr_tail="no space"), FULL) == "disk-full"
    assert name_of(FailureText("aggregate failed", exit_status=137), killed) == "killed"
    assert name_of(FailureText("aggregate failed", exit_status=13), killed) is None


@pytest.mark.parametrize(("stage", "is_named"), [("cleanup", True), ("init", False), ("", True)])
def test_a_signature_of_a_stage_applies_to_this_stage_and_to_unknown_ones(stage: str, is_named: bool) -> None:
    signature = replace(FULL, stages=frozenset({"cleanup"}))
    assert (name_of(FailureText("no space", stage), signature) is not None) == is_named


@pytest.mark.parametrize(
    ("tools", "is_named"), [({"ssh", "slurm"}, True), ({"ssh", "fork"}, False), (set(), True)]
)
def test_a_signature_of_a_tool_applies_where_the_tool_took_part(tools: set[str], is_named: bool) -> None:
    signature = replace(FULL, tools=frozenset({"slurm"}))
    failure = FailureText("no space", tools=frozenset(tools))
    assert (name_of(failure, signature) is not None) == is_named


def test_only_the_start_of_a_huge_message_and_the_end_of_a_huge_stderr_are_searched() -> None:
    rubbish = "x" * 10_000_000
    assert name_of(FailureText(f"no space {rubbish}"), FULL) == "disk-full"
    assert name_of(FailureText("", stderr_tail=f"{rubbish} no space"), FULL) == "disk-full"
    assert len(FailureText(rubbish, stderr_tail=rubbish).text) <= MOST_CHARACTERS + 1


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*)*x", r"(?:a?){500}a{500}"])
def test_a_pattern_that_other_engines_backtrack_for_ever_on_is_matched_in_one_pass(pattern: str) -> None:
    assert name_of(FailureText("a" * 4000 + "!"), FULL) is None
    try:
        classifier = Classifier([replace(FULL, patterns=(pattern,))])
    except InvalidPattern:
        return
    classifier.classify(FailureText("a" * 4000 + "!"))


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\1", "(", "a{2000}", "x*", ""])
def test_an_unusable_pattern_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(InvalidPattern, match=r"invalid|missing|bad|too large|empty text"):
        Classifier([replace(FULL, patterns=(pattern,))])
