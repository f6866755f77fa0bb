"""Names sort by their numbers, the same in the database and in Python."""

from __future__ import annotations

import random

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from monitor.models import ApiToken, Site, Suite
from monitor.models.natural_order import sort_name
from monitor.models.token import READ
from tests.monitor.web.api.paging import all_pages

NAMES = [
    "a",
    "a-b",
    "A-b",
    "a-b1",
    "a-b9",
    "a-b10",
    "a1",
    "a2",
    "a02",
    "a10",
    "a10b",
    "a10c2",
    "a_b",
    "b",
    "B2",
    "z",
]
LONG = ["0", "00000000000000000000", "9" * 12, "9" * 50, "0" * 13 + "1", "1-" * 25, "20261126T152145"]


def stored(names: list[str]) -> dict[str, str]:
    """Return what the database computes for *names*, by name."""
    Suite.objects.bulk_create([Suite(name=name) for name in names])
    return dict(Suite.objects.filter(name__in=names).values_list("name", "sort_name"))


@pytest.mark.django_db
def test_the_database_and_python_compute_the_same() -> None:
    letters = random.Random(20261126)
    drawn = {"".join(letters.choices("ab0019Z-_", k=letters.randint(1, 50))) for _ in range(2000)}
    names = sorted({*drawn, *NAMES, *LONG})
    assert stored(names) == {name: sort_name(name) for name in names}


@pytest.mark.django_db
def test_sites_are_listed_in_natural_order_page_by_page() -> None:
    Site.objects.bulk_create([Site(name=name) for name in random.Random(3).sample(NAMES, len(NAMES))])
    assert list(Site.objects.values_list("name", flat=True)) == sorted(NAMES, key=sort_name)
    token = ApiToken.objects.issue(User.objects.create_superuser("operator"), "program", [READ])
    client = Client(headers={"authorization": f"Bearer {token}"})
    listed = all_pages(client, "/api/v1/sites", "sites")
    assert [each["name"] for each in listed] == sorted(NAMES, key=sort_name)


def test_numbers_count_as_numbers_and_the_case_of_letters_only_last() -> None:
    expected = [
        "a",
        "A-b",
        "a-b",
        "a-b1",
        "a-b9",
        "a-b10",
        "a1",
        "a02",
        "a2",
        "a10",
        "a10b",
        "a10c2",
        "a_b",
        "b",
        "B2",
        "z",
    ]
    assert sorted(NAMES, key=sort_name) == expected


@given(st.lists(st.integers(0, 10**12 - 1), min_size=2, unique=True))
def test_names_with_one_number_sort_by_it(numbers: list[int]) -> None:
    ordered = sorted((f"site{number}" for number in numbers), key=sort_name)
    assert ordered == [f"site{number}" for number in sorted(numbers)]


@given(st.sets(st.from_regex(r"[-a-zA-Z0-9_]{1,30}", fullmatch=True), min_size=2))
def test_no_two_names_have_the_same_text(names: set[str]) -> None:
    assert len({sort_name(name) for name in names}) == len(names)


@pytest.mark.django_db
def test_a_page_of_series_behind_a_name_is_read_from_the_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(
            "EXPLAIN SELECT name FROM monitor_series WHERE sort_name > %s ORDER BY sort_name LIMIT 100",
            [sort_name("ring-9")],
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Cond: (sort_name >" in plan
