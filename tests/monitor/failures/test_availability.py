"""Availability and reliability from timelines: the tables of ARGO, hand-worked timelines, and brute force."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.failures.availability import (
    StatusSeconds,
    Timeline,
    TimelineStatus,
    account,
    all_of,
    any_of,
    constant,
    of_periods,
    of_results,
    with_maintenance,
)
from tests.monitor.imports.formats.reading import LANL, SHARED, needs_shared_data

UP, UNKNOWN, SCHEDULED, DOWN = TimelineStatus
LETTERS = {"u": UP, "?": UNKNOWN, "s": SCHEDULED, "d": DOWN}
NAMES = {status: letter for letter, status in LETTERS.items()}

# The status of two services together; rows and columns in the order u ? s d.
AND = """
u ? s d
? ? s d
s s s d
d d d d
"""
OR = """
u u u u
u ? ? d
u ? s d
u d d d
"""


def table(text: str) -> dict[tuple[str, str], str]:
    rows = [line.split() for line in text.split("\n") if line]
    return {(a, b): rows["u?sd".index(a)]["u?sd".index(b)] for a in "u?sd" for b in "u?sd"}


def timeline(letters: str) -> Timeline:
    """Return a timeline with a letter a second from second 0 on."""
    parts = [constant(LETTERS[letter], second, second + 1) for second, letter in enumerate(letters)]
    starts = [part.starts[0] for part in parts]
    statuses = np.array([part.statuses[0] for part in parts], np.int8)
    is_change = np.append(True, statuses[1:] != statuses[:-1])
    return Timeline(np.array(starts, np.int64)[is_change], statuses[is_change], len(letters))


def letters(shown: Timeline) -> str:
    """Return the status of every second as a letter."""
    seconds = np.arange(int(shown.starts[0]), shown.end)
    return "".join(NAMES[TimelineStatus(status)] for status in shown.at(seconds))


def is_canonical(shown: Timeline) -> bool:
    ascends = bool((np.diff(shown.starts) > 0).all()) and shown.starts[-1] < shown.end
    return ascends and bool((np.diff(shown.statuses) != 0).all())


@pytest.mark.parametrize(("combine", "expected"), [(all_of, AND), (any_of, OR)], ids=["and", "or"])
def test_two_services_combine_as_in_the_profile_of_argo(
    combine: Callable[[Sequence[Timeline]], Timeline], expected: str
) -> None:
    for (one, other), both in table(expected).items():
        assert letters(combine([timeline(one), timeline(other)])) == both, (one, other)


@pytest.mark.parametrize(
    ("seconds", "availability", "reliability"),
    [
        (StatusSeconds(up=3, unknown=0, scheduled=0, down=1), 0.75, 0.75),
        (StatusSeconds(up=3, unknown=6, scheduled=0, down=1), 0.75, 0.75),
        (StatusSeconds(up=3, unknown=0, scheduled=2, down=1), 0.5, 0.75),
        (StatusSeconds(up=0, unknown=5, scheduled=0, down=0), None, None),
        (StatusSeconds(up=0, unknown=0, scheduled=5, down=0), 0.0, None),
        (StatusSeconds(up=0, unknown=0, scheduled=0, down=5), 0.0, 0.0),
    ],
)
def test_availability_and_reliability(
    seconds: StatusSeconds, availability: float | None, reliability: float | None
) -> None:
    assert (seconds.availability, seconds.reliability) == (availability, reliability)


def results(slots: dict[int, bool], *, valid: int, start: int = 0, end: int = 10) -> str:
    times = np.array(list(slots), np.int64)
    passed = np.array(list(slots.values()), bool)
    shown = of_results(times, passed, times + valid, start=start, end=end)
    assert is_canonical(shown)
    return letters(shown)


@pytest.mark.parametrize(
    ("slots", "valid", "expected"),
    [
        ({}, 5, "??????????"),
        ({0: True}, 20, "uuuuuuuuuu"),
        ({2: True}, 3, "??uuu?????"),
        ({2: True, 4: False}, 3, "??uuddd???"),
        ({2: True, 5: False, 8: True}, 3, "??uuudddu" + "u"),
        ({0: True, 5: True}, 3, "uuu??uuu??"),
        ({9: False}, 5, "?????????d"),
        ({-2: False, 4: True}, 4, "dd??uuuu??"),  # a result from before the period
        ({-9: False}, 4, "??????????"),
        ({12: False}, 4, "??????????"),
        ({1: True, 2: True, 3: True}, 1, "?uuu??????"),
    ],
)
def test_a_result_counts_until_the_next_one_as_long_as_it_is_valid(
    slots: dict[int, bool], valid: int, expected: str
) -> None:
    assert results(slots, valid=valid) == expected


def test_a_service_that_is_tested_more_often_does_not_weigh_more() -> None:
    often = {second: second >= 5 for second in range(10)}
    assert results(often, valid=9) == results({0: False, 5: True}, valid=9) == "ddddduuuuu"


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([], "uudd??uudd"),
        ([(1, 3)], "ussd??uudd"),
        ([(3, 5), (4, 7)], "uudssssudd"),
        ([(-5, 2), (8, 99)], "ssdd??uuss"),
        ([(0, 10)], "ssssssssss"),
        ([(4, 4)], "uudd??uudd"),
    ],
)
def test_maintenance_overrides_results(windows: list[tuple[int, int]], expected: str) -> None:
    shown = with_maintenance(timeline("uudd??uudd"), windows)
    assert is_canonical(shown)
    assert letters(shown) == expected


def test_a_month_worked_by_hand() -> None:
    """Gather OR Circle, AND the login; maintenance of an hour; nothing is known in the last hour."""
    hour = 3600
    gather = of_periods([(2 * hour, 5 * hour)], DOWN, UP, start=0, end=10 * hour)
    circle = of_periods([(4 * hour, 6 * hour)], DOWN, UP, start=0, end=10 * hour)
    login = of_periods([(9 * hour, 10 * hour)], UNKNOWN, UP, start=0, end=10 * hour)
    site = with_maintenance(all_of([any_of([gather, circle]), login]), [(4 * hour + 1800, 5 * hour + 1800)])
    seconds = account(site, 0, 10 * hour)  # both are down from 4:00 to 5:00, half of it is scheduled
    assert seconds == StatusSeconds(up=7 * hour + 1800, unknown=hour, scheduled=hour, down=1800)
    assert seconds.availability == pytest.approx(7.5 / 9)
    assert seconds.reliability == pytest.approx(7.5 / 8)


def test_a_period_within_a_timeline_is_accounted_alone() -> None:
    shown = timeline("uudd??ss")
    assert account(shown, 1, 5) == StatusSeconds(up=1, unknown=1, scheduled=0, down=2)
    assert account(shown, 6, 8) == StatusSeconds(up=0, unknown=0, scheduled=2, down=0)


several = st.integers(1, 30).flatmap(
    lambda length: st.lists(
        st.text(alphabet="u?sd", min_size=length, max_size=length), min_size=1, max_size=4
    )
)


@given(several)
def test_timelines_combine_second_by_second(texts: list[str]) -> None:
    for combine, text in ((all_of, AND), (any_of, OR)):
        rule = table(text)
        expected = texts[0]
        for other in texts[1:]:
            expected = "".join(rule[pair] for pair in zip(expected, other, strict=True))
        shown = combine([timeline(each) for each in texts])
        assert is_canonical(shown)
        assert letters(shown) == expected


@given(
    st.dictionaries(st.integers(-20, 40), st.booleans(), max_size=12),
    st.integers(1, 15),
    st.lists(st.tuples(st.integers(-5, 35), st.integers(-5, 35)), max_size=4),
)
def test_results_and_maintenance_equal_brute_force(
    slots: dict[int, bool], valid: int, windows: list[tuple[int, int]]
) -> None:
    slots = dict(sorted(slots.items()))
    expected = ""
    for second in range(30):
        latest = max((slot for slot in slots if slot <= second), default=None)
        is_known = latest is not None and second < latest + valid
        status = ("u" if slots[latest] else "d") if is_known and latest is not None else "?"
        expected += "s" if any(begin <= second < end for begin, end in windows) else status
    times = np.array(list(slots), np.int64)
    passed = np.array(list(slots.values()), bool)
    shown = of_results(times, passed, times + valid, start=0, end=30)
    assert letters(with_maintenance(shown, windows)) == expected
    seconds = account(with_maintenance(shown, windows), 0, 30)
    assert [seconds.up, seconds.unknown, seconds.scheduled, seconds.down] == [
        expected.count(letter) for letter in "u?sd"
    ]


def lanl_outages() -> dict[str, list[tuple[int, int]]]:
    """Return the outages of each node by ``system/node``, as minutes since 1970."""
    outages: dict[str, list[tuple[int, int]]] = defaultdict(list)
    with gzip.open(SHARED / LANL, "rt", encoding="latin-1", newline="") as file:
        for row in csv.DictReader(file):
            times = [row["Prob Started"].strip(), row["Prob Fixed"].strip()]
            if not all(times):
                continue
            started, fixed = (datetime.strptime(text, "%m/%d/%Y %H:%M").replace(tzinfo=UTC) for text in times)
            outages[f"{row['System']}/{row['nodenumz']}"].append(
                (int(started.timestamp()) // 60, int(fixed.timestamp()) // 60)
            )
    return outages


@needs_shared_data
def test_the_availability_of_ten_years_of_outages_equals_brute_force_minute_by_minute() -> None:
    outages = lanl_outages()
    assert len(outages) > 3000
    start, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) // 60 for year in (1996, 2006))
    busiest = sorted(outages, key=lambda node: -len(outages[node]))[:40]
    for node in busiest:
        is_down = np.zeros(end - start, bool)
        for began, ended in outages[node]:
            is_down[max(began - start, 0) : max(ended - start, 0)] = True
        shown = of_periods(outages[node], DOWN, UP, start=start, end=end)
        seconds = account(shown, start, end)
        down = int(is_down.sum())
        assert (seconds.up, seconds.unknown, seconds.scheduled, seconds.down) == (
            len(is_down) - down,
            0,
            0,
            down,
        )
        assert seconds.availability == pytest.approx(1 - is_down.mean())
