"""The number of open alerts that every page shows: those that its reader may see."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.utils import timezone

from monitor.analysis.alerts.open_alerts_sql import open_alerts
from monitor.depot.access.roles import Grant, grant
from monitor.models import Alert, AlertRule, Reporter, Series, Site
from monitor.models.role import UserRole
from tests.monitor.web.pages import builders


def alert(rule: AlertRule, **fields: object) -> None:
    now = timezone.now()
    Alert.objects.create(rule=rule, since=now, opened_at=now, text="3 in a row", **fields)


@pytest.fixture
def series(db: None) -> list[Series]:
    """One series in an open and one in a closed suite."""
    places = builders.sites(2)
    series = [
        builders.circle("open", places),
        builders.circle("closed", places, suite=builders.suite("closed")),
    ]
    series[1].suite.viewers.add(Group.objects.create(name="few"))
    return series


@pytest.fixture
def alerts(series: list[Series]) -> None:
    """Of each series one is open, and one is closed or acknowledged; of a reporter at site1 one is open."""
    first, second = (
        AlertRule.objects.create(name=name, condition="failures_in_row", threshold=3) for name in ("a", "b")
    )
    for each in series:
        alert(first, series=each)
    alert(second, series=series[0], closed_at=timezone.now())
    alert(second, series=series[1], acknowledged_at=timezone.now())
    agent = Reporter.objects.create(name="agent", site=Site.objects.get(name="site1"))
    alert(first, reporter=agent)


@pytest.mark.usefixtures("alerts")
@pytest.mark.parametrize(
    ("role", "site", "expected"),
    [
        (UserRole.VIEWER, None, 1),
        (UserRole.SITE_ADMIN, "site1", 2),
        (UserRole.SITE_ADMIN, "site2", 1),
        (UserRole.OPERATOR, None, 3),
    ],
)
def test_a_reader_counts_the_alerts_that_it_may_see(role: UserRole, site: str | None, expected: int) -> None:
    reader = builders.user()
    grant(reader, Grant(role, site))
    visible = Alert.objects.visible_to(reader).open().filter(acknowledged_at=None)
    assert open_alerts(reader) == visible.count() == expected


@pytest.mark.usefixtures("alerts")
def test_a_viewer_of_a_closed_suite_counts_its_alerts() -> None:
    reader = builders.user()
    reader.groups.add(Group.objects.get(name="few"))
    assert open_alerts(reader) == 2


@pytest.mark.usefixtures("alerts")
def test_without_a_login_there_are_none() -> None:
    assert open_alerts(AnonymousUser()) == 0
