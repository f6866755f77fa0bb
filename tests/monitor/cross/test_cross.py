"""Every kind of row meets every page, every reading operation and every user.

By day a sample, another each day: ``GRIDCAST_CROSS_SEED``, which a failure prints, draws it. Whole at night,
in 24 parts.
"""

from __future__ import annotations

import os
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.db.models import BooleanField
from pytest_django.plugin import DjangoDbBlocker

from monitor.analysis.alerts import reporter_conditions
from monitor.models import AlertRule, Incident
from tests.by_night import by_night
from tests.conftest import empty_tables
from tests.monitor.cross import crowded, judge, statements
from tests.monitor.cross.crossing import Meeting, crossed
from tests.monitor.cross.crowded import CrowdedDepot, examples_of, varied_models
from tests.monitor.cross.left_out import NEVER_IS, NEVER_NULL, NEVER_SET, REFUSED_BY
from tests.monitor.cross.statements import wrong_without_statements
from tests.monitor.cross.visits import ROWS, USUAL, Visit, admin_visits, all_visits, beginning
from tests.monitor.depot.access.world import Identity
from tests.monitor.web.pages.http.test_parts import noted, planted

SEED = int(os.environ.get("GRIDCAST_CROSS_SEED") or datetime.now(UTC).toordinal())
SHARES = 24  # of the night
FAILED_PART = "a part that could not be computed"

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def depot(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[CrowdedDepot]:
    """One depot for all tests; each undoes what it changes."""
    with django_db_blocker.unblock():
        yield crowded.build(random.Random(SEED))
        empty_tables()


@pytest.fixture
def draw() -> random.Random:
    print(f"GRIDCAST_CROSS_SEED={SEED}")  # pytest shows it with a failure
    return random.Random(SEED)


def by_route(visits: Sequence[Visit]) -> dict[str, list[Visit]]:
    grouped: dict[str, list[Visit]] = defaultdict(list)
    for visit in visits:
        grouped[visit.route].append(visit)
    return grouped


def pages_of(depot: CrowdedDepot) -> list[list[Visit]]:
    """Return the visits of each page."""
    return [visits for visits in by_route(all_visits(depot)).values() if not visits[0].is_operation]


def users_of(depot: CrowdedDepot, visit: Visit) -> list[Identity]:
    """Return the identities that may visit: of a page, those with a session, or with none."""
    return [each for each in depot.identities if visit.is_operation or not each.is_program]


def as_administrator(depot: CrowdedDepot, *routes: str) -> list[Meeting]:
    return [Meeting(visit, depot.administrator) for visit in all_visits(depot) if visit.route in routes]


def test_of_each_page_and_operation_a_row(depot: CrowdedDepot, draw: random.Random) -> None:
    """As an administrator, who sees every row; and one as any user."""
    meetings = []
    for visits in by_route(all_visits(depot)).values():
        meetings.append(Meeting(draw.choice(visits), depot.administrator))
        meetings.append(Meeting(draw.choice(visits), draw.choice(users_of(depot, visits[0]))))
    found = crossed(meetings, draw, further=0)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("pages", "rows"), [(2, 1), by_night(1000, 12)])
def test_each_part_may_fail(depot: CrowdedDepot, draw: random.Random, pages: int, rows: int) -> None:
    """Whatever part of a page raises, the page is shown, with the sentence in its place.

    Some rows have parts that others have not.
    """
    wrong, client, shown = [], depot.administrator.client, pages_of(depot)
    for visits in draw.sample(shown, min(pages, len(shown))):
        tried: set[tuple[str, str]] = set()
        for path in (visit.path for visit in draw.sample(visits, min(rows, len(visits)))):
            with noted() as seen:
                whole = client.get(path)
            further = [each for each in dict.fromkeys(seen) if each not in tried]
            for page, part in further if whole.status_code == 200 else ():
                tried.add((page, part))
                with planted(page, part):
                    answer = client.get(path)
                if answer.status_code != 200 or judge.FAILED_PART not in answer.content.decode():
                    wrong.append(f"{path} without {part}: {answer.status_code}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("pages", [3, by_night(1000)])
def test_each_statement_may_fail(depot: CrowdedDepot, draw: random.Random, pages: int) -> None:
    """Whatever statement of a page the database refuses, the page is shown without the part that made it."""
    client, shown = depot.administrator.client, pages_of(depot)
    client.raise_request_exception = False
    found: list[str] = []
    for visits in draw.sample(shown, min(pages, len(shown))):
        path = draw.choice(visits).path
        if judge.is_page(client.get(path)):
            found += wrong_without_statements(client, path)
    assert not found, "\n".join(found)


def test_a_statement_outside_of_parts_is_found(depot: CrowdedDepot, monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement outside of parts is permitted: the ones about the object and the permissions are found."""
    monkeypatch.setattr(statements, "MOST_OUTSIDE", 0)
    (found,) = wrong_without_statements(depot.administrator.client, "/settings/suites/edit/main/")
    assert "statements outside of parts" in found
    assert "monitor_suite" in found


PARAMETERS = (
    "page", "rows", "before", "after", "month", "at", "from", "to", "range", "q", "text", "site", "suite",
    "order", "segment", "metric", "lag", "level", "log", "by", "signature", "state", "probe", "condition",
    "view", "seen",
)  # fmt: skip
ODD = (
    "0", "-1", "9" * 25, "\0", "\u0663", "1e309", "-inf", "(" * 300, "9999-12-31T23:59", "9999-12", "0001-01",
    "2200-12-31", "//example.org", "\U0001f600",
)  # fmt: skip


@pytest.mark.parametrize("drawn", [1, by_night(30)])
def test_no_value_in_an_address_fails_a_page(depot: CrowdedDepot, draw: random.Random, drawn: int) -> None:
    """Of each list the page 0, of each page *drawn* odd values of parameters of any page."""
    meetings = []
    every = [(name, value) for name in PARAMETERS for value in ODD]
    for route, visits in by_route(all_visits(depot)).items():
        visit = draw.choice(visits)
        if route.startswith("GET ") or "?" in visit.path:
            continue
        for name, value in [("page", "0")] * visit.is_list + draw.sample(every, drawn):
            odd = replace(visit, path=f"{visit.path}?{urlencode({name: value})}")
            meetings.append(Meeting(odd, depot.administrator))
    found = crossed(meetings, draw, further=0)
    assert not found, "\n".join(found)


@pytest.mark.nightly
@pytest.mark.parametrize("share", range(SHARES))
def test_everything(depot: CrowdedDepot, draw: random.Random, share: int) -> None:
    visits = [*all_visits(depot), *admin_visits()]
    every = [Meeting(visit, identity) for visit in visits for identity in users_of(depot, visit)]
    found = crossed(every[share::SHARES], draw, further=1)
    assert not found, "\n".join(found)


def test_every_kind_has_a_row(depot: CrowdedDepot) -> None:
    """Of each choice, true and false, null and not null: what is missing is no kind that was crossed."""
    missing = [model.__name__ for model in varied_models() if not model._base_manager.exists()]
    for model in varied_models():
        rows = model._base_manager.order_by()
        for column in model._meta.concrete_fields:
            name = f"{model.__name__}.{column.name}"
            values: set[Any] = set()
            if column.choices:
                values = set(rows.values_list(column.attname, flat=True).distinct())
            missing += [f"{name} {value}" for value, _ in column.flatchoices if value not in values]
            if isinstance(column, BooleanField):
                missing += [
                    f"{name} {value}"
                    for value in (True, False)
                    if f"{name} {value}" not in NEVER_IS and not rows.filter(**{column.name: value}).exists()
                ]
            for is_null, but in ((True, NEVER_NULL), (False, NEVER_SET)):
                if (
                    column.null
                    and name not in but
                    and not rows.filter(**{f"{column.name}__isnull": is_null}).exists()
                ):
                    missing.append(f"{name} null: {is_null}")
    assert not missing, "\n".join(missing)


def test_no_kind_is_left_out_because_the_database_refuses_it(depot: CrowdedDepot) -> None:
    """But for constraints that forbid the kind itself; a rule or a series that it needs is there."""
    refused = {(model, constraint) for (model, _, _), constraint in depot.variants.forbidden.items()}
    assert refused == set(REFUSED_BY)


def test_each_parameter_of_a_route_names_what_the_depot_has(depot: CrowdedDepot) -> None:
    """A route that a new parameter joins names rows of it, or says why it has one value."""
    named = {begin: {name for row in rows() for name in row} for begin, rows in ROWS.items()}
    assert not [begin for begin, names in named.items() if not names], "no row"
    missing = {
        (route, parameter)
        for route in {visit.route for visit in all_visits(depot)}
        for parameter in re.findall(r"<(?:\w+:)?(\w+)>|{(\w+)}", route)
        for parameter in filter(None, parameter)
        if parameter not in named.get(beginning(route, named), ())
    }
    assert missing == set(USUAL)


def test_a_planted_null_is_found(depot: CrowdedDepot, draw: random.Random) -> None:
    """The column permits null from now on: the cross makes such a row by itself, and pages cannot show it."""
    column = Incident._meta.get_field("opened_at")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE monitor_incident ALTER COLUMN opened_at DROP NOT NULL")
    column.null = True
    try:
        depot.variants.make(next(examples_of(Incident)))
    finally:
        column.null = False
    found = crossed(as_administrator(depot, "", "GET /incidents"), draw, further=0)
    assert any("/api/v1/incidents as" in each for each in found), found
    assert any(each.startswith("/ as") and FAILED_PART in each for each in found), found
    assert "counted as failed: overview incidents" in found


def test_a_planted_raise_is_found(depot: CrowdedDepot, draw: random.Random) -> None:
    with planted("incidents", "resolved"):
        found = crossed(as_administrator(depot, "", "incidents/"), draw, further=0)
    assert len(found) == 2, found
    assert FAILED_PART in found[0]
    assert found[1] == "counted as failed: incidents resolved"


def test_a_planted_kind_is_found(depot: CrowdedDepot, draw: random.Random, tmp_path: Path) -> None:
    """A new file of a condition, without the label that the form of rules shows."""
    source = Path(reporter_conditions.__file__).with_name("lag_seconds.py").read_text(encoding="utf-8")
    lines = [line for line in source.splitlines() if not line.startswith("    label =")]
    (tmp_path / "planted_seconds.py").write_text("\n".join(lines), encoding="utf-8")
    registry = reporter_conditions._registry
    reporter_conditions.__path__.append(str(tmp_path))
    vars(registry).pop("_names", None)
    try:
        depot.variants.make(next(examples_of(AlertRule)))
        assert AlertRule.objects.filter(condition="planted_seconds").exists()
        found = crossed(as_administrator(depot, "settings/alerts/new/"), draw, further=0)
    finally:
        reporter_conditions.__path__.remove(str(tmp_path))
        vars(registry).pop("_names", None)
    assert any("'label'" in each for each in found), found
