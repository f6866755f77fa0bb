"""Storage areas side by side: what they are good for, figures of merit, and who sees them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.test import Client
from django.utils import timezone

from monitor.analysis.storage.areas import series_verdicts, storage_areas
from monitor.analysis.storage.compute import refresh_verdicts
from monitor.analysis.storage.merit import efficiencies, figures_of_merit, lifetime_years
from monitor.analysis.storage.uses import measured_uses
from monitor.models import Resource, Suite
from tests.monitor.analysis.storage import measured
from tests.monitor.web.pages import builders

HOUR = timedelta(hours=1)

# Published: a DASH supernode and the Sun F5100: GB, price, IOPS, then IOPS per dollar and dollars per GB.
PUBLISHED = [(1024.0, 19_896.0, 562_365.0, 28.0, 19.43), (480.0, 43_498.0, 397_000.0, 9.0, 90.62)]


@pytest.fixture
def areas(db: None) -> dict[str, Resource]:
    """Two areas with a history of Disk: the RAID was half as fast in its newest run."""
    now = timezone.now()
    resources = {name: builders.site(name) for name in ("raid", "flash")}
    for name, rates, last in (("raid", measured.DISKS, 0.5), ("flash", measured.FLASH, 1.0)):
        series = measured.storage_series(f"{name}-disk", "disk", resources[name])
        measured.disk_history(series, rates, now - HOUR, last=last)
    Resource.objects.filter(name="flash-login").update(storage=measured.STORAGE)
    refresh_verdicts(now, within_seconds=60.0)
    return resources


@pytest.mark.usefixtures("areas")
def test_each_area_says_what_it_is_good_for_and_what_is_unusual() -> None:
    flash, raid = storage_areas(builders.user(is_superuser=True))
    assert [area.resource.name for area in (flash, raid)] == ["flash-login", "raid-login"]
    assert {use.name for use in flash.good_for} == set(measured.FLASH)
    assert (raid.good_for, raid.concerns) == ([], ["slower than usual"])
    assert raid.by_use["random_read"].share == pytest.approx(900 / 40e3, rel=0.05)
    figures = {figure.name: figure.value for figure in flash.figures}
    assert figures["price_per_gb"] == pytest.approx(500 / 64)
    assert figures["read_iops_per_price"] == pytest.approx(80.0, rel=0.02)
    assert figures["lifetime_years"] == pytest.approx(1.0, rel=0.05)
    assert flash.efficiencies[0].share == pytest.approx(40e3 / (2 * 39_756.0), rel=0.02)


@pytest.mark.usefixtures("areas")
def test_areas_of_suites_that_a_user_may_not_see_are_hidden(client: Client) -> None:
    Suite.objects.get(name="main").viewers.add(Group.objects.create(name="others"))
    assert storage_areas(AnonymousUser()) == []
    reader = builders.user("other")
    assert storage_areas(reader) == []
    assert series_verdicts(reader, Resource.objects.get(name="raid-login")) == []


@pytest.mark.django_db
def test_an_area_of_the_grid_file_is_listed_before_it_is_measured() -> None:
    builders.site("new")
    Resource.objects.update(storage={"medium": "disk"})
    (area,) = storage_areas(builders.user(is_superuser=True))
    assert (area.medium, area.uses, area.figures, area.newest) == ("disk", [], [], None)


@pytest.mark.parametrize(("capacity", "price", "iops", "iops_per_dollar", "dollars_per_gb"), PUBLISHED)
def test_published_figures_of_merit_follow_from_capacity_price_and_rate(
    capacity: float, price: float, iops: float, iops_per_dollar: float, dollars_per_gb: float
) -> None:
    figures = figures_of_merit({"capacity_gb": capacity, "price": price}, {"random_read": iops})
    values = {figure.name: figure.value for figure in figures}
    assert values["read_iops_per_price"] == pytest.approx(iops_per_dollar, rel=0.05)
    assert values["price_per_gb"] == pytest.approx(dollars_per_gb, rel=0.001)


def test_a_lifetime_needs_cycles_capacity_and_a_rate() -> None:
    storage = {"endurance_cycles": 100_000.0, "capacity_gb": 64.0}
    assert lifetime_years(storage, {"sequential_write": 203e6}) == pytest.approx(1.0, abs=0.005)
    assert lifetime_years(storage, {}) is None
    assert lifetime_years({"capacity_gb": 64.0}, {"sequential_write": 203e6}) is None


def test_efficiency_takes_the_measured_rate_of_a_part_before_that_of_the_grid_file() -> None:
    storage = {"parts": {"count": 16, "resource": "ssd", "read_operations_per_second": 39_756.0}}
    rates = {"random_read": 87_563.0}
    (stated,) = efficiencies(storage, rates, {})
    assert stated.part == ""
    assert stated.share == pytest.approx(0.138, abs=0.001)
    (found,) = efficiencies(storage, rates, {"random_read": 40_000.0})
    assert found.part == "ssd"
    assert found.share == pytest.approx(0.137, abs=0.001)
    assert efficiencies({}, rates, {"random_read": 1.0}) == []


@pytest.mark.parametrize(
    ("probe", "parameters", "uses"),
    [
        ("import-fio", {"pattern": "randread"}, ["random_read", "random_write"]),
        ("import-ior", {"ordering": "sequential"}, ["sequential_read", "sequential_write"]),
        ("import-elbencho", {"random": "true"}, ["random_read", "random_write", "metadata"]),
        ("import-io500", {"phase": "mdtest-easy-write"}, ["metadata"]),
        ("import-io500", {"phase": "find"}, []),
        ("import-mdtest", {}, ["metadata"]),
        ("lookups", {}, ["lookup", "scan"]),
        ("circle", {}, []),
    ],
)
def test_imported_results_measure_uses_too(probe: str, parameters: dict[str, str], uses: list[str]) -> None:
    assert [use.use for use in measured_uses(probe, parameters, dict)] == uses
