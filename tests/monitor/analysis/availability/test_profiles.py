"""Profiles select series and services by tables of cases; versions are chosen by site and day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from monitor.analysis.availability.months import InvalidMonth, month_after, month_before, parse_month
from monitor.analysis.availability.profiles import CountedSeries, rules_of, services_of
from monitor.analysis.availability.versions import VersionsByDay, find_version, record_versions
from monitor.core.units import tenths_of_percent
from monitor.models import AvailabilityProfile, ProfileVersion, Site

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SERIES = [
    CountedSeries(1, "circle-ab", "main", "circle", "home", frozenset({"a", "b"})),
    CountedSeries(2, "circle-bc", "main", "circle", "home", frozenset({"b", "c"})),
    CountedSeries(3, "login-a", "main", "login", "agent", frozenset({"a"})),
    CountedSeries(4, "login-a-test", "tests", "login", "home", frozenset({"a"})),
    CountedSeries(5, "job", "tests", "batch_queue", "agent", frozenset({"a", "c"})),
]


def services(**document: Any) -> dict[str, tuple[str, list[int]]]:
    found = services_of(rules_of(document), SERIES)
    return {service.name: (service.needs, list(service.series)) for service in found}


@pytest.mark.parametrize(
    ("selection", "keys"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"suites": ["main"]}, [1, 2, 3]),
        ({"probes": ["login", "batch_queue"]}, [3, 4, 5]),
        ({"series": ["login-*"]}, [3, 4]),
        ({"series": ["login-?", "job"]}, [3, 5]),
        ({"series": ["LOGIN-A"]}, []),
        ({"sites": ["c"]}, [2, 5]),
        ({"reporters": ["agent"]}, [3, 5]),
        ({"reporters": ["agent"], "suites": ["main"]}, [3]),
        ({"series": ["[a-z]*"], "sites": ["nowhere"]}, []),
    ],
)
def test_a_selection_covers_series_that_match_every_key(selection: dict[str, Any], keys: list[int]) -> None:
    included = services(include=selection)
    assert sorted(key for _, own in included.values() for key in own) == keys
    excluded = services(exclude=selection or None)
    if selection:
        assert sorted(key for _, own in excluded.values() for key in own) == sorted(
            {1, 2, 3, 4, 5} - set(keys)
        )


def test_without_services_each_probe_is_one_of_which_any_series_passes() -> None:
    assert services() == {"batch_queue": ("any", [5]), "circle": ("any", [1, 2]), "login": ("any", [3, 4])}


def test_services_have_their_own_needs_and_series_may_test_several() -> None:
    assert services(
        exclude={"series": ["*-test"]},
        services={
            "all": {"needs": "all", "suites": ["main", "tests"]},
            "logins": {"probes": ["login"], "exclude": {"reporters": ["home"]}},
            "empty": {"probes": ["stream"]},
        },
    ) == {"all": ("all", [1, 2, 3, 5]), "logins": ("any", [3])}


def version(profile: str, number: int, valid_from: int, sites: list[int], *, is_removed: bool = False) -> Any:
    return ProfileVersion(
        profile=profile,
        number=number,
        valid_from=date(2026, 3, valid_from),
        site_keys=sites,
        rules=None if is_removed else {},
    )


@pytest.mark.parametrize(
    ("site", "day", "expected"),
    [
        (1, 1, "default-1"),
        (1, 2, "general-1"),
        (1, 5, "own-1"),
        (1, 9, "own-2"),
        (1, 20, "general-1"),  # the profile was removed
        (2, 5, "general-1"),
        (2, 9, "own-2"),
        (3, 31, "general-1"),
    ],
)
def test_the_version_of_a_site_is_the_latest_valid_one_that_names_it(
    site: int, day: int, expected: str
) -> None:
    versions = VersionsByDay(
        [
            version("general", 1, 2, []),
            version("own", 1, 5, [1]),
            version("own", 2, 8, [1, 2]),
            version("own", 3, 20, [], is_removed=True),
        ],
        version("default", 1, 1, []),
    )
    assert str(versions.find(site, date(2026, 3, day))) == expected


@pytest.mark.django_db
def test_each_change_makes_a_version_and_none_changes() -> None:
    site = Site.objects.create(name="a")
    profile = AvailabilityProfile.objects.create(name="own")
    assert [str(each) for each in record_versions(NOON)] == ["own-1"]
    assert record_versions(NOON + DAY) == []
    profile.sites.add(site)
    profile.services = {"login": {"needs": "any", "probes": ["login"]}}
    profile.save()
    (second,) = record_versions(NOON + DAY)
    assert (str(second), second.valid_from, second.site_keys) == ("own-2", date(2026, 3, 11), [site.pk])
    profile.valid_from = date(2026, 4, 1)
    profile.save()
    (third,) = record_versions(NOON + DAY)
    assert (str(third), third.valid_from) == ("own-3", date(2026, 4, 1))
    profile.delete()
    (removed,) = record_versions(NOON + 2 * DAY)
    assert (str(removed), removed.rules, removed.valid_from) == ("own-4", None, date(2026, 3, 12))
    assert record_versions(NOON + 3 * DAY) == []
    assert ProfileVersion.objects.get(number=1).rules is not None


@pytest.mark.django_db
def test_the_profile_of_a_deleted_site_does_not_apply_to_all_sites() -> None:
    site = Site.objects.create(name="a")
    profile = AvailabilityProfile.objects.create(name="own")
    profile.sites.add(site)
    (first,) = record_versions(NOON)
    site.delete()
    assert record_versions(NOON) == []
    AvailabilityProfile.objects.update(needs="any")
    (second,) = record_versions(NOON)
    assert second.site_keys == first.site_keys != []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text", ["", "own", "own-", "-1", "own-x", "own-٣", "own-99999999999999999999", "a\x00-1"]
)
def test_a_text_that_names_no_version_finds_none(text: str) -> None:
    assert find_version(text) is None


@pytest.mark.django_db
def test_the_default_version_is_found_by_name() -> None:
    found = find_version("default-1")
    assert found is not None
    assert find_version("default-1") == found


@pytest.mark.parametrize(
    ("text", "month"),
    [("", date(2026, 3, 1)), ("2026-03", date(2026, 3, 1)), ("1970-01", date(1970, 1, 1))],
)
def test_a_month_is_parsed(text: str, month: date) -> None:
    assert parse_month(text, NOON) == month


@pytest.mark.parametrize(
    "text", ["2026-04", "2026-3", "1969-12", "2026-00", "2026-03-01", " 2026-03", "٢٠٢٦-٠٣"]
)
def test_what_is_no_month_is_refused(text: str) -> None:
    with pytest.raises(InvalidMonth):
        parse_month(text, NOON)


def test_months_before_and_after_cross_years() -> None:
    assert month_after(date(2025, 12, 1)) == date(2026, 1, 1)
    assert month_before(date(2026, 1, 1)) == date(2025, 12, 1)
    assert month_before(month_after(date(2026, 2, 1))) == date(2026, 2, 1)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0 %"), (0.9314, "93.1 %"), (1.0, "100.0 %"), (0.99999, "99.9 %"), (0.00001, "0.0 %")],
)
def test_tenths_of_percent_round_to_100_only_what_is_1(share: float, text: str) -> None:
    assert tenths_of_percent(share) == text
