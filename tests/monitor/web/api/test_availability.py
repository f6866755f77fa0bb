"""The API of availability: months, days, profiles and recomputations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from monitor.analysis.availability.refresh import refresh
from monitor.analysis.availability.versions import record_versions
from monitor.models import AvailabilityProfile, Recomputation, Run, Series, Site, Suite
from monitor.models.run import State
from reporters import report as wire

HOUR = timedelta(hours=1)
MARCH = datetime(2005, 3, 1, tzinfo=UTC)
URL = "/api/v1/availability"
ORDER = {"sites": ["site-of-here"], "month": "2005-03", "reason": "new disks"}


@pytest.fixture
def march(circle: Series) -> Series:
    """The series failed at "here" in the last six hours of 1 March."""
    for hour in range(24):
        slot = MARCH + hour * HOUR
        Run.objects.create(
            id=wire.run_id(circle.name, slot),
            series=circle,
            slot=slot,
            due_at=slot,
            state=State.FAILED if hour >= 18 else State.PASSED,
            failed_resource="here" if hour >= 18 else "",
        )
    refresh(timezone.now())
    return circle


@pytest.fixture
def member(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("member"))
    return client


@pytest.fixture
def runner(db: None) -> Client:
    user = User.objects.create_user("runner")
    user.user_permissions.add(Permission.objects.get(codename="run_series"))
    client = Client()
    client.force_login(user)
    return client


def post(client: Client, **changes: Any) -> Any:
    return client.post(f"{URL}/recomputations", {**ORDER, **changes}, content_type="application/json")


def test_the_sites_of_a_month_are_listed(march: Series, member: Client) -> None:
    here, there = member.get(URL, {"month": "2005-03"}).json()["months"]
    assert (here["site"], there["site"]) == ("site-of-here", "site-of-there")
    assert (here["month"], here["profile_versions"], here["published_at"]) == ("2005-03", ["default-1"], None)
    assert here["down_seconds"] > 0
    assert there["availability"] == 1


def test_a_site_has_days_and_services(march: Series, member: Client) -> None:
    shown = member.get(f"{URL}/sites/site-of-here", {"month": "2005-03"}).json()
    assert len(shown["days"]) == 31
    first = shown["days"][0]
    assert (first["day"], first["availability"], first["reliability"]) == ("2005-03-01", 0.75, 0.75)
    assert (first["profile_version"], first["until"]) == ("default-1", "2005-03-02T00:00:00Z")
    assert [service["service"] for service in shown["services"]] == ["circle"]


def test_a_recomputation_answers_with_the_difference(march: Series, runner: Client, member: Client) -> None:
    Run.objects.filter(slot=MARCH + 17 * HOUR).update(failed_resource="here")
    Run.objects.create(
        id=wire.run_id("circle", MARCH + HOUR / 2),
        series=march,
        slot=MARCH + HOUR / 2,
        due_at=MARCH,
        state=State.FAILED,
        failed_resource="here",
    )
    answer = post(runner)
    assert answer.status_code == 201
    record = answer.json()
    assert (record["requested_by"], record["reason"], record["profile_version"]) == (
        "runner",
        "new disks",
        None,
    )
    (day,) = (change for change in record["changes"] if not change["is_month"])
    assert day["text"] == "2005-03-01, site-of-here: 75.0 % -> 72.9 %"
    assert (day["before"]["down_seconds"], day["after"]["down_seconds"]) == (21600, 23400)
    assert member.get(f"{URL}/recomputations").json()["recomputations"] == [record]
    assert member.get(answer["Location"]).json() == record
    assert member.get(f"{URL}/recomputations", {"site": "site-of-there"}).json()["recomputations"] == []


@pytest.mark.parametrize(
    ("changes", "status", "detail"),
    [
        ({"reason": " "}, 422, "expected a reason"),
        ({"sites": []}, 422, "sites: List should have at least 1 item after validation, not 0"),
        ({"sites": ["nowhere"]}, 404, "there is no site 'nowhere' with availability that you may see"),
        ({"sites": ["x"] * 201}, 422, "sites: List should have at most 200 items after validation, not 201"),
        ({"month": "9999-01"}, 422, "month: 9999-01 lies in the future"),
        ({"month": "March"}, 422, "month: expected a month such as 2026-03, got 'March'"),
        ({"profile_version": "none-1"}, 422, "profile_version: there is no version 'none-1' of a profile"),
    ],
)
def test_a_refused_recomputation_says_why(
    march: Series, runner: Client, changes: dict[str, Any], status: int, detail: str
) -> None:
    answer = post(runner, **changes)
    assert (answer.status_code, answer.json()["detail"]) == (status, detail)
    assert not Recomputation.objects.exists()


def test_a_user_without_permission_does_not_recompute(march: Series, member: Client) -> None:
    assert post(member).status_code == 403
    assert not Recomputation.objects.exists()


def test_versions_of_profiles_are_listed_with_rules(march: Series, member: Client) -> None:
    profile = AvailabilityProfile.objects.create(name="strict", needs="any", exclude={"probes": ["noop"]})
    profile.sites.add(Site.objects.get(name="site-of-here"))
    record_versions(timezone.now())
    profile.delete()
    record_versions(timezone.now())
    default, strict, removed = member.get(f"{URL}/profiles").json()["profile_versions"]
    assert (default["name"], strict["name"], removed["name"]) == ("default-1", "strict-1", "strict-2")
    assert (strict["sites"], strict["rules"]["exclude"]) == (["site-of-here"], {"probes": ["noop"]})
    assert (strict["is_removed"], removed["is_removed"]) == (False, True)
    Suite.objects.create(name="hidden").viewers.add(Group.objects.create(name="operators"))
    assert [version["rules"] for version in member.get(f"{URL}/profiles").json()["profile_versions"]] == [
        None,
        None,
        None,
    ]


def test_sites_that_a_user_may_not_see_are_unknown(march: Series, member: Client, runner: Client) -> None:
    post(runner)
    Suite.objects.get().viewers.add(Group.objects.create(name="operators"))
    assert member.get(URL, {"month": "2005-03"}).json()["months"] == []
    assert member.get(f"{URL}/recomputations").json()["recomputations"] == []
    assert member.get(f"{URL}/sites/site-of-here").status_code == 404
    assert post(runner).status_code == 404


@pytest.mark.parametrize("path", ["", "/sites/site-of-here", "/profiles", "/recomputations"])
def test_a_caller_without_credentials_is_refused(db: None, path: str) -> None:
    assert Client().get(f"{URL}{path}").status_code == 401


@pytest.mark.parametrize("month", ["2005", "9999-01", "2005-13", "\x00"])
def test_an_invalid_month_is_refused(march: Series, member: Client, month: str) -> None:
    assert member.get(URL, {"month": month}).status_code == 422
    assert member.get(f"{URL}/sites/site-of-here", {"month": month}).status_code == 422


def test_a_month_without_availability_is_not_found(march: Series, member: Client) -> None:
    assert member.get(f"{URL}/sites/site-of-here", {"month": "1999-01"}).json()["code"] == "no_availability"
