"""The errors that the study of two grids lists have their published causes.

Four are verbatim. Of GT2's job submission the study names codes; their texts are those of the GRAM library.
"""

from __future__ import annotations

import pytest

from monitor.analysis.signatures.classifier import Classifier, FailureText
from monitor.analysis.signatures.shipped import shipped
from monitor.models.failure_signature import UNKNOWN
from tests.monitor.analysis.signatures.labelled_texts import labelled_texts

SOFTENV = "SoftEnv 1.4.2: updating your software environment, one moment..."
LISTEN = 'Assertion GLOBUS_FALSE && "listen() failed" failed in file globus_io_tcp.c at line 681'
VERBATIM = [
    (SOFTENV, "resource"),
    ("proxy is not valid long enough", "credential"),
    ("Invalid ns1:value path", "middleware"),
    (LISTEN, "middleware"),
]
CODES = [
    (5, "the executable does not exist", "user"),
    (7, "authentication with the remote server failed", "credential"),
    (10, "data transfer to the server failed", "middleware"),
    (12, "the connection to the server failed (check host and port)", "middleware"),
    (25, "the job manager detected an invalid script status", "middleware"),
    (43, "the job manager failed to stage the executable", "middleware"),
    (69, "the job manager failed to create the temporary stdout filename", "storage"),
    (70, "the job manager failed to create the temporary stderr filename", "storage"),
    (75, "the cache file could not be opened in order to relocate the user proxy", "storage"),
]


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(shipped())


def category_of(classifier: Classifier, failure: FailureText) -> str:
    signature = classifier.classify(failure)
    return signature.category.value if signature else UNKNOWN


@pytest.mark.parametrize(("text", "category"), VERBATIM)
def test_a_published_error_has_its_category(classifier: Classifier, text: str, category: str) -> None:
    for printed in (text, text.lower(), f"globus-job-run: {text}\n"):
        assert category_of(classifier, FailureText(printed)) == category


@pytest.mark.parametrize(("code", "text", "category"), CODES)
def test_a_published_code_of_gram_has_its_category_with_and_without_its_text(
    classifier: Classifier, code: int, text: str, category: str
) -> None:
    for printed in (f"GRAM Job submission failed because {text} (error code {code})", f"Globus error {code}"):
        assert category_of(classifier, FailureText(printed)) == category


@pytest.mark.parametrize("status", [134, -6])
def test_the_assertion_of_globus_io_is_its_own_cause_although_the_program_aborts(
    classifier: Classifier, status: int
) -> None:
    failure = FailureText("cannot run globusrun", exit_status=status, stderr_tail=f"{LISTEN}\nAborted\n")
    assert category_of(classifier, failure) == "middleware"
    other = LISTEN.replace("globus_io_tcp.c", "solver.c")
    crash = FailureText("cannot run solver", exit_status=status, stderr_tail=f"{other}\nAborted\n")
    assert category_of(classifier, crash) == "probe"


def test_the_line_that_softenv_prints_at_login_hides_no_other_cause(classifier: Classifier) -> None:
    differing = {}
    for label, text in labelled_texts():
        signature = classifier.classify(FailureText(f"{SOFTENV}\n{text}"))
        expected = "softenv-updating" if label == UNKNOWN else label
        if signature is None or signature.name != expected:
            differing[text] = signature
    assert differing == {}


@pytest.mark.parametrize(
    "text",
    [
        "the certificate is not valid long enough to sign a proxy of 12 hours",
        "Invalid executable path",
        "Invalid RSL: no value for path",
        "listen() failed: Permission denied",
    ],
)
def test_a_text_that_only_resembles_a_published_error_keeps_its_cause(
    classifier: Classifier, text: str
) -> None:
    named = {signature.name for signature in classifier.matching(FailureText(text))}
    assert named.isdisjoint({"ws-invalid-element", "globus-listen-failed", "gsi-proxy-lifetime-short"})
