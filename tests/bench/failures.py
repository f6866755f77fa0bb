"""All signatures against all labelled texts: RE2 with a filter, against ``re``, pattern by pattern."""

from __future__ import annotations

import random
import re

from monitor.analysis.signatures.classifier import Classifier, FailureText
from monitor.analysis.signatures.shipped import shipped
from tests.bench.base import Result, interleaved
from tests.monitor.analysis.signatures.labelled_texts import labelled_texts

ROUNDS = 5


def measure() -> list[Result]:
    return [_classification()]


def _classification() -> Result:
    texts = [FailureText(text) for _, text in labelled_texts()]
    classifier = Classifier(shipped())
    patterns = [re.compile(f"(?im){pattern}") for each in shipped() for pattern in each.patterns]
    sample = random.Random(1).sample(texts, 100)

    def one_by_one() -> None:
        for failure in sample:
            for pattern in patterns:
                pattern.search(failure.text)

    ours, reference = interleaved(
        lambda: [classifier.classify(failure) for failure in texts], one_by_one, ROUNDS
    )
    each, reference_each = ours / len(texts), reference / len(sample)
    figures = {
        "signatures": float(len(shipped())),
        "a text, us": each * 1e6,
        "pattern by pattern, us": reference_each * 1e6,
    }
    return Result(
        "failures: classify / re.search of every pattern", each / reference_each, 0.05, "lower", figures
    )
