"""A recomputation changes published months too, and records who wanted it, why, and what it changed."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitor.analysis.availability.recompute import (
    InvalidRecomputation,
    RecomputationRequest,
    describe_change,
    recompute,
)
from monitor.analysis.availability.refresh import refresh
from monitor.analysis.availability.versions import record_versions
from monitor.models import (
    AvailabilityProfile,
    MaintenanceChange,
    MaintenanceWindow,
    ProfileVersion,
    Recomputation,
    RecomputedPeriod,
    Run,
    Series,
    Site,
    SiteDay,
    SiteMonth,
)
from monitor.models.run import State
from reporters import report as wire

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MARCH = datetime(2005, 3, 1, tzinfo=UTC)
FIRST, LAST = date(2005, 3, 1), date(2005, 3, 31)
NOW = timezone.now()


def run_at(series: Series, slot: datetime, *, failed_at: str = "", state: str = "") -> None:
    Run.objects.create(
        id=wire.run_id(series.name, slot),
        series=series,
        slot=slot,
        due_at=slot,
        state=state or (State.FAILED if failed_at else State.PASSED),
        failed_resource=failed_at,
    )


@pytest.fixture
def march(circle: Series) -> Series:
    """The series failed at "here" in the last six hours of 1 and 2 March, then it did not run any more.

    The month is published.
    """
    for day in (MARCH, MARCH + DAY):
        for hour in range(24):
            run_at(circle, day + hour * HOUR, failed_at="here" if hour >= 18 else "")
    for half_hours in (95, 96):  # the last result is valid until midnight
        run_at(circle, MARCH + half_hours * HOUR / 2, state=State.MISSED)
    refresh(NOW)
    SiteMonth.objects.of_sites().filter(month=FIRST).update(published_at=NOW)
    return circle


def of(*names: str, first: date = FIRST, last: date = LAST, **changes: object) -> RecomputationRequest:
    values: dict[str, object] = {
        "sites": list(Site.objects.filter(name__in=names)),
        "first": first,
        "last": last,
        "requester": "alice",
        "reason": "the disks were replaced",
    }
    return RecomputationRequest(**{**values, **changes})  # type: ignore[arg-type]


def changes_of(record: Recomputation) -> list[str]:
    return [describe_change(period) for period in record.periods.all()]


def window(site: str = "site-of-here") -> None:
    added = MaintenanceWindow.objects.create(
        name="disks", starts_at=MARCH + 12 * HOUR, ends_at=MARCH + 24 * HOUR
    )
    added.sites.add(Site.objects.get(name=site))


def test_a_published_month_changes_only_by_a_recomputation(march: Series) -> None:
    late = MARCH + 17 * HOUR + HOUR / 2
    run_at(march, late, failed_at="here")
    refresh(NOW)
    month = SiteMonth.objects.of_sites().filter(site__name="site-of-here", month=FIRST)
    assert (month.get().down_seconds, month.get().has_late_data) == (12 * 3600, True)
    record = recompute(of("site-of-here"), NOW)
    assert (month.get().down_seconds, month.get().has_late_data) == (12 * 3600 + 1800, False)
    assert month.get().published_at == NOW
    assert changes_of(record) == [
        "March 2005, site-of-here: 75.0 % -> 74.0 %",
        "2005-03-01, site-of-here: 75.0 % -> 72.9 %",
    ]
    period = record.periods.get(is_month=False)
    assert (period.before, period.after) == ([64800, 0, 0, 21600], [63000, 0, 0, 23400])
    assert (record.requester, record.reason) == ("alice", "the disks were replaced")


def test_a_recomputation_that_changes_nothing_says_so(march: Series) -> None:
    assert changes_of(recompute(of("site-of-here"), NOW)) == ["March 2005, site-of-here: 75.0 % -> 75.0 %"]


def test_days_outside_the_period_and_other_sites_stay(march: Series) -> None:
    for day in (MARCH, MARCH + DAY):
        run_at(march, day + 30 * HOUR / 2 + HOUR / 2, failed_at="here")
        run_at(march, day + 30 * HOUR / 2 + HOUR / 3, failed_at="there")
    record = recompute(of("site-of-here", first=date(2005, 3, 2), last=date(2005, 3, 2)), NOW)
    days = SiteDay.objects.of_sites().filter(site__name="site-of-here", down_seconds__gt=0)
    assert [day.down_seconds for day in days] == [21600, 23400]
    assert not SiteDay.objects.of_sites().filter(site__name="site-of-there", down_seconds__gt=0).exists()
    assert {period.site_name for period in record.periods.all()} == {"site-of-here"}
    assert SiteMonth.objects.of_sites().get(site__name="site-of-here", month=FIRST).has_late_data


def test_a_newer_version_of_a_profile_is_used_on_request_only(march: Series) -> None:
    for hour in range(48):
        slot = MARCH + hour * HOUR
        login = _login(march)
        run_at(login, slot)
    AvailabilityProfile.objects.create(name="login", services={"login": {"series": ["login"]}}, needs="all")
    (version,) = record_versions(NOW)
    assert changes_of(recompute(of("site-of-here"), NOW))[0] == "March 2005, site-of-here: 75.0 % -> 83.1 %"
    record = recompute(of("site-of-here", version=version), NOW)
    assert changes_of(record)[0] == "March 2005, site-of-here: 83.1 % -> 100.0 %"
    period = record.periods.get(is_month=False, day=date(2005, 3, 1))
    assert (period.before_version, period.after_version) == ("default-1", "login-1")
    again = recompute(of("site-of-here"), NOW)
    assert changes_of(again) == ["March 2005, site-of-here: 100.0 % -> 100.0 %"], "the days keep the version"


def _login(circle: Series) -> Series:
    login, is_new = Series.objects.get_or_create(
        name="login", defaults={"probe": "login", "suite": circle.suite, "reporter": circle.reporter}
    )
    if is_new:
        login.bindings.create(role="target", position=0, resource=circle.bindings.get(position=0).resource)
    return login


def test_a_month_that_was_never_computed_has_no_figures_before(march: Series) -> None:
    record = recompute(of("site-of-here", first=date(2005, 4, 10), last=date(2005, 4, 11)), NOW)
    assert changes_of(record)[0] == "April 2005, site-of-here: - -> -"
    assert record.periods.first().before is None  # type: ignore[union-attr]


def test_the_record_outlives_the_site(march: Series) -> None:
    record = recompute(of("site-of-here"), NOW)
    RecomputedPeriod.objects.update(site=None)
    assert changes_of(record) == ["March 2005, site-of-here: 75.0 % -> 75.0 %"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reason": "  "}, "expected a reason"),
        ({"reason": "x" * 501}, "expected a reason of at most 500 characters"),
        ({"sites": []}, "expected a site"),
        ({"first": date(2005, 3, 2), "last": date(2005, 3, 1)}, "2005-03-01 is before 2005-03-02"),
        ({"first": date(1969, 3, 2)}, "expected a day from 1970-01-01 on, got 1969-03-02"),
        ({"first": date(9000, 1, 1), "last": date(9000, 1, 2)}, "9000-01-01 lies in the future"),
        ({"first": date(2003, 3, 1)}, "expected at most 400 days"),
    ],
)
def test_a_request_that_is_refused_names_the_reason_and_changes_nothing(
    march: Series, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidRecomputation) as error:
        recompute(of("site-of-here", **changes), NOW)  # type: ignore[arg-type]
    assert str(error.value) == message
    assert not Recomputation.objects.exists()


def test_a_profile_that_does_not_apply_is_refused(march: Series) -> None:
    profile = AvailabilityProfile.objects.create(name="theirs")
    profile.sites.add(Site.objects.get(name="site-of-there"))
    (version,) = record_versions(NOW)
    with pytest.raises(InvalidRecomputation, match="theirs-1 does not apply to site-of-here"):
        recompute(of("site-of-here", version=version), NOW)
    profile.delete()
    (removed,) = record_versions(NOW)
    with pytest.raises(InvalidRecomputation, match="theirs-2 has no rules: the profile was removed"):
        recompute(of("site-of-there", version=removed), NOW)
    assert ProfileVersion.objects.filter(profile="theirs").count() == 2


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("availability", *arguments, stdout=out)
    return out.getvalue()


def test_a_window_declared_after_the_fact_recomputes_its_days_with_its_reason(march: Series) -> None:
    out = io.StringIO()
    call_command(
        *("maintenance", "declare", "disks", "--site", "site-of-here", "--from", "2005-03-01T12:00Z"),
        *("--until", "2005-03-02T00:00Z", "--reason", "new disks", "--by", "ada"),
        stdout=out,
    )
    assert out.getvalue().splitlines() == [
        "disks: declared at site-of-here",
        "March 2005, site-of-here: 75.0 % -> 62.5 % (reliability 75.0 % -> 83.3 %)",
    ]
    record = Recomputation.objects.get()
    assert (record.requester, record.reason, record.first, record.last) == (
        *("ada", "new disks"),
        date(2005, 3, 1),
        date(2005, 3, 1),
    )
    month = SiteMonth.objects.of_sites().get(site__name="site-of-here", month=FIRST)
    assert month.reliability == pytest.approx(30 / 36)
    refresh(NOW)
    month.refresh_from_db()
    assert not month.has_late_data
    assert MaintenanceChange.objects.count() == 1


def test_a_window_that_cannot_be_recomputed_is_not_declared(march: Series) -> None:
    with pytest.raises(CommandError, match="expected at most 400 days"):
        call_command(
            *("maintenance", "declare", "disks", "--site", "site-of-here", "--from", "2003-03-01T12:00Z"),
            *("--until", "2005-03-02T00:00Z", "--reason", "new disks"),
        )
    assert not MaintenanceWindow.objects.exists()


def test_the_command_prints_each_day_and_the_total(march: Series) -> None:
    lines = printed("site-of-here", "--month", "2005-03").splitlines()
    assert lines[0] == f"site-of-here, profile default-1, final since {NOW:%Y-%m-%d}"
    assert len(lines) == 2 + 31 + 1 + 1
    assert lines[2].split() == ["2005-03-01", "75.0", "%", "75.0", "%", "18", "h", "6", "h", "-", "-"]
    assert lines[-2].split()[:3] == ["total", "75.0", "%"]
    assert lines[-1].split()[0] == "circle"


def test_the_command_prints_json_and_csv(march: Series) -> None:
    document = json.loads(printed("site-of-here", "--month", "2005-03", "--json"))
    assert document["days"][0] | {"reliability": None} == {
        "day": "2005-03-01",
        "profile": "default-1",
        "availability": 0.75,
        "reliability": None,
        "up_seconds": 64800,
        "down_seconds": 21600,
        "scheduled_seconds": 0,
        "unknown_seconds": 0,
    }
    assert document["services"]["circle"]["down_seconds"] == document["total"]["down_seconds"] == 43200
    lines = printed("--month", "2005-03", "--csv").splitlines()
    assert lines[0].startswith("site,day,profile,availability")
    assert lines[1] == "site-of-here,2005-03-01,default-1,0.75,0.75,64800,21600,0,0"
    assert len(lines) == 1 + 2 * 31
    assert [site["site"] for site in json.loads(printed("--month", "2005-03", "--json"))] == [
        "site-of-here",
        "site-of-there",
    ]


def test_the_command_lists_all_sites(march: Series) -> None:
    assert [line.split()[0] for line in printed("--month", "2005-03").splitlines()] == [
        "site",
        "site-of-here",
        "site-of-there",
    ]


def test_the_command_recomputes(march: Series) -> None:
    window()
    arguments = (
        "site-of-here",
        "site-of-there",
        "--month",
        "2005-03",
        "--reason",
        "announced",
        "--by",
        "ada",
    )
    assert printed("recompute", *arguments).splitlines() == [
        "March 2005, site-of-here: 75.0 % -> 62.5 % (reliability 75.0 % -> 83.3 %)",
        "2005-03-01, site-of-here: 75.0 % -> 50.0 % (reliability 75.0 % -> 100.0 %)",
        "March 2005, site-of-there: 100.0 % -> 100.0 %",
    ]
    assert Recomputation.objects.get().requester == "ada"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no site 'nowhere'; there are: site-of-here, site-of-there"),
        (["site-of-here", "--month", "March"], "--month: expected a month such as 2026-03, got 'March'"),
        (["site-of-here", "--month", "2026-13"], "--month: expected a month"),
        (["site-of-here", "--month", "9999-01"], "--month: 9999-01 lies in the future"),
        (["site-of-here", "--month", "1999-01"], "no availability is stored for 1999-01"),
        (["site-of-here", "--reason", "x"], "--reason and --profile belong to: availability recompute SITE"),
        (["recompute", "site-of-here", "--month", "2005-03"], "expected a reason"),
        (["recompute", "site-of-here", "--reason", "x", "--profile", "no-1"], "there is no version 'no-1'"),
        (["recompute", "site-of-here", "--reason", "x", "--profile", "no"], "there is no version 'no'"),
    ],
)
def test_an_invalid_argument_is_named(circle: Series, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        printed(*arguments)
