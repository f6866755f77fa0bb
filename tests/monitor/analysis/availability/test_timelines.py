"""Availability and reliability from timelines: the tables of ARGO, hand-worked timelines, and brute force."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.availability.timelines import (
    StatusSeconds,
    Timelines,
    TimelineStatus,
    account,
    combine,
    leave_out_unknown,
    of_periods,
    of_results,
    status_seconds,
    with_maintenance,
)
from tests.monitor.runs.imports.formats.reading import LANL, SHARED, needs_shared_data

UP, UNKNOWN, SCHEDULED, DOWN, NOT_COUNTED = TimelineStatus
LETTERS = {"u": UP, "?": UNKNOWN, "s": SCHEDULED, "d": DOWN, "-": NOT_COUNTED}
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


def timelines(*texts: str, start: int = 0) -> Timelines:
    """Return a timeline for each text, which has a letter a second from *start* on."""
    rows = [
        (owner, start + second, LETTERS[text[second]])
        for owner, text in enumerate(texts)
        for second in range(len(text))
        if second == 0 or text[second] != text[second - 1]
    ]
    owners, starts, statuses = np.array(rows, np.int64).reshape(-1, 3).T
    end = start + (len(texts[0]) if texts else 1)
    return Timelines(owners, starts, statuses.astype(np.int8), len(texts), start, end)


def letters(shown: Timelines) -> list[str]:
    """Return the status of every second of each owner as a letter."""
    assert is_canonical(shown)
    seconds = np.arange(shown.start, shown.end)
    return [
        "".join(NAMES[TimelineStatus(status)] for status in shown.at(np.full(len(seconds), owner), seconds))
        for owner in range(shown.count)
    ]


def is_canonical(shown: Timelines) -> bool:
    by_owner = [shown.owners == owner for owner in range(shown.count)]
    return all(
        shown.starts[own][0] == shown.start
        and bool((np.diff(shown.starts[own]) > 0).all())
        and shown.starts[own][-1] < shown.end
        and bool((np.diff(shown.statuses[own]) != 0).all())
        for own in by_owner
    )


def numbers(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def together(*texts: str, needs_all: bool) -> str:
    """Return the timeline of a group of owners."""
    groups = np.zeros(len(texts), np.int64)
    (text,) = letters(combine(timelines(*texts), groups, np.array([needs_all])))
    return text


def in_windows(shown: Timelines, windows: Sequence[tuple[int, int]]) -> Timelines:
    """Return the timeline of the only owner with *windows*."""
    begins, ends = np.array(windows, np.int64).reshape(-1, 2).T
    owners = np.zeros(len(begins), np.int64)
    scheduled = of_periods(owners, begins, ends, SCHEDULED, UP, count=1, start=shown.start, end=shown.end)
    return with_maintenance(shown, scheduled)


def seconds_of(shown: Timelines, start: int, end: int) -> StatusSeconds:
    return status_seconds(account(shown, numbers(start, end))[0, 0])


@pytest.mark.parametrize(("needs_all", "expected"), [(True, AND), (False, OR)], ids=["and", "or"])
def test_two_services_combine_as_in_the_profile_of_argo(needs_all: bool, expected: str) -> None:
    for (one, other), both in table(expected).items():
        assert together(one, other, needs_all=needs_all) == both, (one, other)
        assert together(one, "-", other, needs_all=needs_all) == both, "one that does not count"


def test_a_group_without_counted_owners_is_unknown() -> None:
    for needs_all in (True, False):
        assert together("--", "--", needs_all=needs_all) == "??"
        assert letters(combine(timelines(), numbers(), np.array([needs_all]))) == ["?"]


def test_groups_do_not_influence_each_other() -> None:
    shown = combine(timelines("uudd", "dduu", "udud"), numbers(2, 0, 2), np.array([True, True, False]))
    assert letters(shown) == ["dduu", "????", "uuud"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("??u???", "??u---"),
        ("???u??", "---u??"),
        ("??????", "------"),
        ("d?????", "d??---"),
        ("?????d", "---??d"),
        ("s??s??", "s??s??"),
    ],
)
def test_an_owner_does_not_count_in_a_period_in_which_nothing_is_known(text: str, expected: str) -> None:
    assert letters(leave_out_unknown(timelines(text), numbers(0, 3, 6))) == [expected]


def test_an_owner_counts_again_when_something_is_known() -> None:
    assert letters(leave_out_unknown(timelines("u?????u?", "????????"), numbers(0, 2, 4, 6, 8))) == [
        "u?----u?",
        "--------",
    ]


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
    owners = np.zeros(len(times), np.int64)
    (text,) = letters(of_results(owners, times, passed, times + valid, count=1, start=start, end=end))
    return text


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
    assert letters(in_windows(timelines("uudd??uudd"), windows)) == [expected]


def test_series_without_results_are_unknown_between_others() -> None:
    shown = of_results(
        numbers(1, 1, 3),
        numbers(2, 4, 0),
        np.array([True, False, True]),
        numbers(9, 6, 3),
        count=5,
        start=0,
        end=8,
    )
    assert letters(shown) == ["????????", "??uudd??", "????????", "uuu?????", "????????"]


def test_of_two_results_in_a_second_the_last_one_counts() -> None:
    shown = of_results(
        numbers(0, 0), numbers(1, 1), np.array([True, False]), numbers(4, 3), count=1, start=0, end=5
    )
    assert letters(shown) == ["?dd??"]


def test_a_month_worked_by_hand() -> None:
    """Gather OR Circle, AND the login; maintenance of an hour; nothing is known in the last hour."""
    hour = 3600
    of_series = of_periods(
        numbers(0, 1), numbers(2 * hour, 4 * hour), numbers(5 * hour, 6 * hour), DOWN, UP,
        count=2, start=0, end=10 * hour,
    )  # fmt: skip
    transfer = combine(of_series, numbers(0, 0), np.array([False]))
    login = of_periods(
        numbers(0), numbers(9 * hour), numbers(10 * hour), UNKNOWN, UP, count=1, start=0, end=10 * hour
    )
    services = Timelines(
        np.concatenate([transfer.owners, login.owners + 1]),
        np.concatenate([transfer.starts, login.starts]),
        np.concatenate([transfer.statuses, login.statuses]),
        count=2,
        start=0,
        end=10 * hour,
    )
    site = in_windows(
        combine(services, numbers(0, 0), np.array([True])), [(4 * hour + 1800, 5 * hour + 1800)]
    )
    seconds = seconds_of(site, 0, 10 * hour)  # both are down from 4:00 to 5:00, half of it is scheduled
    assert seconds == StatusSeconds(up=7 * hour + 1800, unknown=hour, scheduled=hour, down=1800)
    assert seconds.availability == pytest.approx(7.5 / 9)
    assert seconds.reliability == pytest.approx(7.5 / 8)


def test_a_period_within_a_timeline_is_accounted_alone() -> None:
    shown = timelines("uudd??ss", "dddddddd")
    assert seconds_of(shown, 1, 5) == StatusSeconds(up=1, unknown=1, scheduled=0, down=2)
    assert seconds_of(shown, 6, 8) == StatusSeconds(up=0, unknown=0, scheduled=2, down=0)
    assert account(shown, numbers(0, 3, 3, 8))[1].tolist() == [[0, 0, 0, 3], [0, 0, 0, 0], [0, 0, 0, 5]]


several = st.integers(1, 30).flatmap(
    lambda length: st.lists(
        st.text(alphabet="u?sd", min_size=length, max_size=length), min_size=1, max_size=4
    )
)


@given(several, st.integers(-5, 5), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_timelines_combine_second_by_second(texts: list[str], start: int, chosen: list[int]) -> None:
    groups = numbers(*chosen[: len(texts)])
    for needs_all, text in ((True, AND), (False, OR)):
        rule = table(text)
        expected = []
        for group in range(3):
            members = [each for each, own in zip(texts, groups, strict=True) if own == group]
            together = members[0] if members else "?" * len(texts[0])
            for other in members[1:]:
                together = "".join(rule[pair] for pair in zip(together, other, strict=True))
            expected.append(together)
        shown = combine(timelines(*texts, start=start), groups, np.full(3, needs_all))
        assert letters(shown) == expected


@given(
    st.lists(st.dictionaries(st.integers(-20, 40), st.booleans(), max_size=12), min_size=1, max_size=3),
    st.integers(1, 15),
    st.lists(st.tuples(st.integers(-5, 35), st.integers(-5, 35)), max_size=4),
)
def test_results_and_maintenance_equal_brute_force(
    several: list[dict[int, bool]], valid: int, windows: list[tuple[int, int]]
) -> None:
    owners, times, passed, expected = [], [], [], []
    for owner, slots in enumerate(several):
        statuses = ""
        for second in range(30):
            latest = max((slot for slot in slots if slot <= second), default=None)
            is_known = latest is not None and second < latest + valid
            statuses += ("u" if slots[latest] else "d") if is_known and latest is not None else "?"
        expected.append(statuses)
        owners += [owner] * len(slots)
        times += sorted(slots)
        passed += [slots[slot] for slot in sorted(slots)]
    shown = of_results(
        numbers(*owners), numbers(*times), np.array(passed, bool), numbers(*times) + valid,
        count=len(several), start=0, end=30,
    )  # fmt: skip
    assert letters(shown) == expected
    begins, ends = np.array([window for window in windows for _ in several], np.int64).reshape(-1, 2).T
    everywhere = np.tile(np.arange(len(several)), len(windows))
    scheduled = of_periods(everywhere, begins, ends, SCHEDULED, UP, count=len(several), start=0, end=30)
    for owner, seconds in enumerate(account(with_maintenance(shown, scheduled), numbers(0, 30))[:, 0]):
        statuses = "".join(
            "s" if any(begin <= second < end for begin, end in windows) else letter
            for second, letter in enumerate(expected[owner])
        )
        assert seconds.tolist() == [statuses.count(letter) for letter in "u?sd"]


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
    rows = [(number, *times) for number, node in enumerate(busiest) for times in outages[node]]
    owners, begins, ends = np.array(rows, np.int64).T
    shown = of_periods(owners, begins, ends, DOWN, UP, count=len(busiest), start=start, end=end)
    accounted = account(shown, numbers(start, end))[:, 0]
    for node, of_node in zip(busiest, accounted, strict=True):
        is_down = np.zeros(end - start, bool)
        for began, ended in outages[node]:
            is_down[max(began - start, 0) : max(ended - start, 0)] = True
        down = int(is_down.sum())
        seconds = status_seconds(of_node)
        assert seconds == StatusSeconds(up=len(is_down) - down, unknown=0, scheduled=0, down=down)
        assert seconds.availability == pytest.approx(1 - is_down.mean())
