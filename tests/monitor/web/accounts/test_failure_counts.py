"""One rule counts failures and places: in Valkey, and in memory while Valkey is unreachable."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from monitor.core import valkey
from monitor.core.valkey import PAUSE_SECONDS
from monitor.web.accounts import failure_counts
from monitor.web.accounts.failure_counts import (
    PLACE_SECONDS,
    WINDOW_SECONDS,
    AttemptState,
    Counts,
    MemoryCounts,
    SharedCounts,
    ValkeyCounts,
)

NOON = 1_772_366_400
ADMITTED, BUSY, REFUSED = AttemptState


def in_valkey() -> ValkeyCounts:
    return ValkeyCounts(valkey.connect(settings.CELERY_BROKER_URL, within_seconds=3.0))


@pytest.fixture(params=[in_valkey, MemoryCounts], ids=["Valkey", "memory"])
def counts(request: pytest.FixtureRequest) -> Counts:
    made: Counts = request.param()
    return made


@pytest.fixture
def key() -> str:
    return f"test:{uuid.uuid4().hex}"


def begin(counts: Counts, key: str, place: str = "a", now: int = NOON, most: int = 3) -> AttemptState:
    return counts.begin([key], [most], place, now).state


def test_places_and_failures_together_reach_the_limit(counts: Counts, key: str) -> None:
    assert [begin(counts, key, place) for place in "abcd"] == [ADMITTED, ADMITTED, ADMITTED, BUSY]
    counts.release([key], "a")
    assert begin(counts, key, "d") == ADMITTED
    counts.fail([key], "b", NOON)
    assert begin(counts, key, "e") == BUSY
    counts.fail([key], "c", NOON)
    assert begin(counts, key, "e") == BUSY, "d may still be right"
    counts.fail([key], "d", NOON)
    assert begin(counts, key, "e") == REFUSED


def test_a_place_that_is_not_given_back_ends_by_itself(counts: Counts, key: str) -> None:
    for place in "abc":
        begin(counts, key, place)
    assert begin(counts, key, "d", NOON + PLACE_SECONDS - 1) == BUSY
    assert begin(counts, key, "d", NOON + PLACE_SECONDS) == ADMITTED


def test_a_window_ends_after_the_first_failure_whatever_happens_in_it(counts: Counts, key: str) -> None:
    for second in range(3):
        begin(counts, key, now=NOON + second)
        counts.fail([key], "a", NOON + second)
    ruling = counts.begin([key], [3], "b", NOON + 600)
    assert (ruling.state, ruling.ends) == (REFUSED, NOON + WINDOW_SECONDS)
    assert begin(counts, key, "b", NOON + WINDOW_SECONDS - 1) == REFUSED
    assert begin(counts, key, "b", NOON + WINDOW_SECONDS) == ADMITTED


def test_only_the_first_refusal_of_a_window_is_news(counts: Counts, key: str) -> None:
    counts.fail([key], "a", NOON)
    assert [counts.begin([key], [1], "b", NOON + 1).is_news for _ in range(3)] == [True, False, False]
    counts.fail([key], "a", NOON + WINDOW_SECONDS)
    assert counts.begin([key], [1], "b", NOON + WINDOW_SECONDS).is_news


def test_no_lock_outlasts_a_clock_that_goes_back(counts: Counts, key: str) -> None:
    other = f"{key}:other"
    counts.fail([key], "a", NOON)
    counts.begin([other], [1], "a", NOON)
    before = NOON - 100_000
    ruling = counts.begin([key], [1], "b", before)
    assert (ruling.state, ruling.ends) == (REFUSED, before + WINDOW_SECONDS)
    assert begin(counts, key, "b", before + WINDOW_SECONDS, most=1) == ADMITTED
    assert begin(counts, other, "b", before, most=1) == BUSY, "it is still under way"
    assert begin(counts, other, "b", before + PLACE_SECONDS, most=1) == ADMITTED


def test_keys_are_counted_together_or_not_at_all(counts: Counts, key: str) -> None:
    full, failed, free = (f"{key}:{name}" for name in ("full", "failed", "free"))
    counts.begin([full], [1], "a", NOON)
    counts.fail([failed], "a", NOON)
    busy = counts.begin([free, full], [1, 1], "b", NOON)
    assert (busy.state, busy.at) == (BUSY, 1)
    refused = counts.begin([free, full, failed], [1, 1, 1], "b", NOON)
    assert (refused.state, refused.at) == (REFUSED, 2), "failures first: waiting would not help"
    assert begin(counts, free, "b", most=1) == ADMITTED


def test_success_forgives_what_it_may_and_counts_nothing(counts: Counts, key: str) -> None:
    personal, shared = f"{key}:personal", f"{key}:shared"
    counts.fail([personal, shared], "a", NOON)
    counts.begin([personal, shared], [2, 2], "b", NOON)
    counts.release([personal, shared], "b", [personal])
    assert counts.forget([personal, shared, key], NOON) == [0, 1, 0]
    assert counts.forget([shared], NOON) == [0]


def test_a_counted_act_is_taken_back_in_its_window_only(counts: Counts, key: str) -> None:
    first, second = (counts.count([key], [2], NOON + second) for second in range(2))
    assert first.ends == second.ends == NOON + WINDOW_SECONDS
    assert counts.count([key], [2], NOON).state == REFUSED
    counts.take_back(key, first.ends, NOON)
    assert counts.count([key], [2], NOON).state == ADMITTED
    later = NOON + WINDOW_SECONDS
    counts.count([key], [2], later)
    counts.take_back(key, first.ends, later)
    assert counts.forget([key], later) == [1]
    counts.take_back(key, later + WINDOW_SECONDS, later)
    assert counts.forget([key], later) == [0]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "count", "fail", "release", "forgive", "take back", "forget"]),
        st.sampled_from(["x", "y", "xy"]),
        st.sampled_from("abc"),
        st.integers(-PLACE_SECONDS, WINDOW_SECONDS),
    ),
    max_size=30,
)


@given(STEPS)
def test_valkey_and_memory_agree_step_by_step(steps: list[tuple[str, str, str, int]]) -> None:
    prefix = uuid.uuid4().hex
    both: list[Counts] = [in_valkey(), MemoryCounts()]
    now = NOON
    for act, names, place, seconds in steps:
        now += seconds
        keys = [f"test:{prefix}:{name}" for name in names]
        first, second = (step(counts, act, keys, place, now) for counts in both)
        assert first == second, (act, names, place, now)


def step(counts: Counts, act: str, keys: list[str], place: str, now: int) -> object:
    limits = [2, 3][: len(keys)]
    calls: dict[str, Callable[[], object]] = {
        "begin": lambda: counts.begin(keys, limits, place, now)[:2],
        "count": lambda: counts.count(keys, limits, now)[:2],
        "fail": lambda: counts.fail(keys, place, now),
        "release": lambda: counts.release(keys, place),
        "forgive": lambda: counts.release(keys, place, keys[:1]),
        "take back": lambda: counts.take_back(keys[0], now + WINDOW_SECONDS, now),
        "forget": lambda: counts.forget(keys, now),
    }
    return calls[act]()


def test_many_at_once_get_exactly_the_places_that_there_are(counts: Counts, key: str) -> None:
    with ThreadPoolExecutor(16) as pool:
        states = list(pool.map(lambda place: begin(counts, key, str(place), most=50), range(120)))
    assert (states.count(ADMITTED), states.count(BUSY)) == (50, 70)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda place: counts.fail([key], str(place), NOON), range(120)))
    assert counts.forget([key], NOON) == [120]


def test_without_valkey_limits_hold_for_the_process(
    key: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lonely = SharedCounts(_at(f"redis+socket://{tmp_path}/nothing.sock"))
    with caplog.at_level(logging.WARNING, logger=failure_counts.__name__):
        assert [begin(lonely, key, place) for place in "abcd"] == [ADMITTED, ADMITTED, ADMITTED, BUSY]
        lonely.fail([key], "a", NOON)
        lonely.release([key], "b")
        assert begin(lonely, key, "d") == ADMITTED
    assert caplog.text.count("Valkey is unreachable") == 1, "it is asked once in some seconds"


def test_valkey_counts_again_when_it_answers(key: str) -> None:
    seconds = [0.0]
    returning = SharedCounts(_at("redis://127.0.0.1:1/0"), steady=lambda: seconds[0])
    returning.fail([key], "a", NOON)
    returning.shared = in_valkey()
    assert begin(returning, key, most=1) == REFUSED, "not before the pause is over"
    seconds[0] += PAUSE_SECONDS
    assert begin(returning, key, most=1) == ADMITTED


def test_other_names_push_no_count_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, most = MemoryCounts(), 1000
    monkeypatch.setattr(failure_counts, "MOST_IN_MEMORY", most)
    for number in range(most):
        begin(counts, f"over-{number}")
    counts.fail(["ada"], "a", NOON + PLACE_SECONDS)
    for number in range(most - 1):
        counts.fail([f"other-{number}"], "a", NOON + PLACE_SECONDS)
    assert begin(counts, "ada", now=NOON + PLACE_SECONDS, most=1) == REFUSED


def _at(url: str) -> ValkeyCounts:
    return ValkeyCounts(valkey.connect(url, within_seconds=3.0))
