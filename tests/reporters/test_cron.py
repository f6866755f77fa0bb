"""Cron expressions with hashed numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest
import scipy  # submodules load when used: scipy.stats takes a second
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from reporters.cron import MAX_CHARACTERS, NAMED, InvalidSchedule, hashed, parse_cron
from reporters.schedule import parse_schedule
from tests.by_night import by_night
from tests.reporters.expressions import expressions, unless_never

REFUSED = (Path(__file__).parent / "data" / "schedules-refused.txt").read_text(encoding="utf-8")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SERIES = 10_000
NAMINGS: dict[str, Callable[[int], str]] = {
    "numbers": lambda n: f"series-{n}",
    "a mesh": lambda n: f"circle-{n // 100}-to-{n % 100}",
    "long": lambda n: f"teragrid-2005-gather-from-anl-iu-ornl-to-purdue-{n:05}",
}


def refused() -> list[tuple[str, ...]]:
    lines = [line for line in REFUSED.splitlines() if " | " in line and not line.startswith("# ")]
    return [tuple(line.split(" | ", maxsplit=1)) for line in lines]


@pytest.mark.parametrize(
    ("expression", "plain"),
    [
        ("* * * * *", "* * * * *"),
        ("0 12 * * 1-5", "0 12 * * 1-5"),
        ("0 12 * jan mon", "0 12 * JAN MON"),
        ("H * * * *", "36 * * * *"),
        ("?,5 * * * *", "36,5 * * * *"),
        ("@hourly", "36 * * * *"),
        (" @Hourly ", "36 * * * *"),
        ("H(0-29) * * * *", "6 * * * *"),
        ("H/15 * * * *", "6-59/15 * * * *"),
    ],
)
def test_an_expression_becomes_plain_cron(expression: str, plain: str) -> None:
    assert parse_cron(expression, "gather-main").text == plain


def test_two_series_get_slots_of_their_own() -> None:
    assert parse_cron("@daily", "gather-main") != parse_cron("@daily", "circle-main")


@pytest.mark.parametrize("expression", NAMED)
def test_a_name_for_an_expression_spreads_series(expression: str) -> None:
    assert len({parse_cron(expression, f"series-{n}").text for n in range(100)}) > 40


@pytest.mark.parametrize(("expression", "message"), refused())
def test_an_invalid_expression_is_refused_with_what_was_expected(expression: str, message: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        parse_cron(expression, "gather-main")
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "hostile",
    [
        "9" * 1_000_000,
        "*," * 500_000 + "* * * * *",
        " " * 1_000_000,
        "H" * MAX_CHARACTERS,
        f"*/{'9' * 150} * * * *",
        "\0 * * * *",
        "* * * * *\0",
        "*\n*\n*\n*\n* *",
        "\ud800 * * * *",
        "\uff05s * * * *",
        "* * * * '; DROP TABLE run; --",
        "$(reboot) * * * *",
        "½ * * * *",
        "\U0001d7d9 * * * *",
    ],
    ids=lambda text: text[:12].encode("unicode_escape").decode(),
)
def test_hostile_text_is_refused_with_a_short_printable_message(hostile: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"\Aschedule .*expected") as refusal:
        parse_cron(hostile, "gather-main")
    assert len(str(refusal.value)) < 300
    assert str(refusal.value).isprintable()


@given(expressions(), st.text(max_size=30))
def test_the_parsed_fields_are_those_of_cronsim(expression: str, name: str) -> None:
    cron = unless_never(lambda: parse_cron(expression, name))
    other = CronSim(cron.text, EPOCH)
    assert list(cron.minutes) == sorted(other.minutes)
    assert list(cron.hours) == sorted(other.hours)
    assert cron.days == other.days
    assert cron.months == other.months
    assert cron.weekdays == {day % 7 for day in other.weekdays if isinstance(day, int)}
    assert cron.either is not other.day_and


@given(expressions(), st.integers(0, 100 * 365 * 24 * 3600))
def test_slots_are_those_of_cronsim(expression: str, second: int) -> None:
    after = datetime(1990, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    schedule = unless_never(lambda: parse_schedule(expression, "gather-main"))
    slots = schedule.slots(after, after + timedelta(days=60 * 366))
    assert list(islice(slots, 8)) == list(islice(CronSim(schedule.cron.text, after), 8))


@pytest.mark.parametrize(
    ("naming", "expression", "field", "numbers"),
    [
        *((naming, "H * * * *", "minutes", range(60)) for naming in NAMINGS),
        by_night("numbers", "H(10-39) * * * *", "minutes", range(10, 40)),
        by_night("numbers", "H/15 * * * *", "minutes", range(15)),
        ("numbers", "H(10-39)/20 * * * *", "minutes", range(10, 30)),
        by_night("numbers", "0 H * * *", "hours", range(24)),
        by_night("numbers", "0 0 H * *", "days", range(1, 29)),
        by_night("numbers", "0 0 1 H *", "months", range(1, 13)),
        ("numbers", "0 0 * * H", "weekdays", range(7)),
    ],
)
def test_ten_thousand_series_are_uniform_over_the_full_range(
    naming: str, expression: str, field: str, numbers: Sequence[int]
) -> None:
    counts = Counter(min(getattr(parse_cron(expression, NAMINGS[naming](n)), field)) for n in range(SERIES))
    assert set(counts) == set(numbers)  # including the last
    assert scipy.stats.chisquare([counts[number] for number in numbers]).pvalue > 0.01


def test_the_hour_of_a_series_says_nothing_about_its_minute() -> None:
    crons = [parse_cron("H H * * *", f"series-{n}") for n in range(SERIES)]
    counts = Counter((cron.hours[0] // 4, cron.minutes[0] // 10) for cron in crons)
    assert scipy.stats.chisquare(list(counts.values())).pvalue > 0.01
    assert len(counts) == 36


@pytest.mark.parametrize(
    ("name", "purpose", "size", "number"),
    [
        ("gather-main", "minute", 60, 36),
        ("gather-main", "hour", 24, 3),
        ("größe", "minute", 60, 30),
        ("", "weekday", 7, 5),
        ("\ud800", "minute", 60, 45),
    ],
)
def test_hashed_numbers_never_change(name: str, purpose: str, size: int, number: int) -> None:
    assert hashed(name, purpose, size) == number
