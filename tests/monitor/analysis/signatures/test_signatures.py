"""Every shipped signature is recognised by its texts, and by no others."""

from __future__ import annotations

import ctypes
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.signatures.classifier import Classifier, FailureText, compile_pattern
from monitor.analysis.signatures.loading import read
from monitor.analysis.signatures.shipped import FOLDER, shipped
from monitor.models.failure_signature import UNKNOWN
from tests.by_night import by_night
from tests.monitor.analysis.signatures.labelled_texts import labelled_texts

TEXTS = labelled_texts()


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(shipped())


def test_each_text_has_the_signature_that_it_is_labelled_with(classifier: Classifier) -> None:
    wrong = {}
    for label, text in TEXTS:
        signature = classifier.classify(FailureText(text))
        name = signature.name if signature else UNKNOWN
        if name != label:
            wrong[text] = f"{name}, expected {label}"
    assert wrong == {}


def test_each_shipped_signature_has_a_text() -> None:
    texts = Counter(label for label, _ in TEXTS)
    assert [each.name for each in shipped() if not texts[each.name]] == []


def test_the_shipped_files_are_valid_and_have_no_name_twice() -> None:
    checked = [each for file in sorted(FOLDER.glob("*.yaml")) for each in read(file.read_bytes(), file.name)]
    assert tuple(checked) == shipped()
    assert len({each.name for each in checked}) == len(checked)


def test_each_shipped_signature_says_what_helps() -> None:
    assert [each.name for each in shipped() if not each.help] == []
    assert len(shipped()) >= 120


@pytest.mark.parametrize("texts", [200, by_night(len(TEXTS))])
def test_matching_all_patterns_at_once_finds_what_each_finds_alone(
    classifier: Classifier, texts: int
) -> None:
    alone = {each.name: [compile_pattern(pattern) for pattern in each.patterns] for each in shipped()}
    for _, text in random.sample(TEXTS, texts):
        failure = FailureText(text)
        expected = [
            name for name, patterns in alone.items() if any(pattern.search(text) for pattern in patterns)
        ]
        assert [each.name for each in classifier.matching(failure)] == expected


def test_texts_of_several_tools_together_find_what_each_text_finds(classifier: Classifier) -> None:
    everything = "\n".join(text for _, text in TEXTS)
    chunks = [everything[start : start + 3900] for start in range(0, len(everything), 3900)]
    for chunk in chunks:
        names = {each.name for each in classifier.matching(FailureText(chunk))}
        for label, text in TEXTS:
            if label != UNKNOWN and f"\n{text}\n" in chunk:
                assert label in names, text


@given(st.text())
def test_any_text_is_classified(text: str) -> None:
    signature = Classifier(shipped()[:20]).classify(FailureText(text))
    assert signature is None or signature in shipped()


def test_the_codes_of_gram_are_those_of_its_library(classifier: Classifier) -> None:
    """A code alone, as some clients print it, gives the signature of the text of the installed library."""
    try:
        error_string = ctypes.CDLL("libglobus_gram_protocol.so.3").globus_gram_protocol_error_string
    except OSError as error:
        pytest.skip(f"the GRAM library is not installed: {error}")
    error_string.restype = ctypes.c_char_p
    differing = {}
    for code in range(1, 165):
        text = error_string(code).decode()
        by_text = classifier.classify(FailureText(f"GRAM Job failed because {text}"))
        by_code = classifier.classify(FailureText(f"Globus error {code}: no text"))
        if by_code is not None and by_text != by_code:
            differing[code] = (text, by_text and by_text.name, by_code.name)
    assert differing == {}
