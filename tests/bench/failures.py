"""All signatures against all labelled texts: RE2 with a filter against Python's ``re``, pattern by pattern.

And a month of the availability of many sites, against the same minutes one by one.
"""

from __future__ import annotations

import random
import re

import numpy as np

from monitor.failures.availability import account, all_of, any_of, of_results, with_maintenance
from monitor.failures.classifier import Classifier, FailureText
from monitor.failures.shipped import shipped
from tests.bench.base import Result, interleaved
from tests.monitor.failures.labelled_texts import labelled_texts

ROUNDS = 5
SITES, SERIES = 200, 500
HOUR, DAY = 3600, 86400
MONTH = 30 * DAY
_REFERENCE_SITES = 2


def measure() -> list[Result]:
    return [_classification(), _availability()]


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


def _availability() -> Result:
    """Each site has two series of which one suffices, and a login; each of *SERIES* runs once an hour."""
    random_numbers = np.random.default_rng(1)
    slots = np.arange(0, MONTH, HOUR)
    passed = random_numbers.random((SERIES, len(slots))) > 0.2
    windows = [(day * DAY, day * DAY + 2 * HOUR) for day in range(0, 30, 7)]

    def a_site(site: int) -> None:
        own = [(site * 3 + number) % SERIES for number in range(3)]
        one, other, login = (
            of_results(slots, passed[series], slots + 2 * HOUR, start=0, end=MONTH) for series in own
        )
        shown = with_maintenance(all_of([any_of([one, other]), login]), windows)
        for day in range(30):
            account(shown, day * DAY, (day + 1) * DAY)

    def every_site() -> None:
        for site in range(SITES):
            a_site(site)

    def minute_by_minute() -> None:
        for site in range(_REFERENCE_SITES):
            own = [passed[(site * 3 + number) % SERIES] for number in range(3)]
            up = 0
            for minute in range(0, MONTH, 60):
                hour = minute // HOUR
                is_scheduled = any(begin <= minute < end for begin, end in windows)
                up += not is_scheduled and bool((own[0][hour] or own[1][hour]) and own[2][hour])

    ours, reference = interleaved(every_site, minute_by_minute, ROUNDS)
    each, reference_each = ours / SITES, reference / _REFERENCE_SITES
    figures = {"a month of 200 sites, s": ours, "minute by minute, s a site": reference_each}
    return Result("failures: availability / minute by minute", each / reference_each, 0.2, "lower", figures)
