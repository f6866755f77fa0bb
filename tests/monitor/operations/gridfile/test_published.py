"""Shipped examples are valid; published schema and reference agree with the models."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import models

import probes
from monitor.analysis.forecasts.elsewhere_runs import comparable
from monitor.core.yamlfile.reading import read
from monitor.models import (
    AlertRule,
    AvailabilityProfile,
    MaintenanceWindow,
    OwnSignature,
    Reporter,
    Resource,
    Series,
    Site,
    Suite,
    Webhook,
)
from monitor.operations.gridfile import examples, reference
from monitor.operations.gridfile.alert_entries import CONDITIONS
from monitor.operations.gridfile.checking import MAX_NAME_CHARACTERS
from monitor.operations.gridfile.definition import GridDefinition
from monitor.operations.gridfile.format import MODELS, VERSION
from monitor.operations.gridfile.loading import DepotNames, load
from monitor.testbed.demo import definition
from monitor.testbed.sites.layout import NAMES
from monitor.web.reports.published_numbers import GRIDS, TERAGRID
from probes.common.signature import digest
from reporters.schedule import parse_schedule
from tests.monitor.operations.gridfile.conftest import DATA, GridCommand

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
DOCS = Path(__file__).resolve().parents[4] / "docs"
TABLES: dict[str, type[models.Model]] = {
    "sites": Site,
    "resources": Resource,
    "reporters": Reporter,
    "suites": Suite,
    "series": Series,
    "maintenance": MaintenanceWindow,
    "alerts": AlertRule,
    "availability_profiles": AvailabilityProfile,
    "signatures": OwnSignature,
    "webhooks": Webhook,
}


def example(name: str) -> GridDefinition:
    return load(str(examples.path(name)), DepotNames({"home": None}, []))


@pytest.mark.parametrize("name", examples.names())
@pytest.mark.django_db
def test_every_example_applies_without_changes(grid: GridCommand, name: str) -> None:
    assert grid("apply", examples.path(name))[0] == 0
    assert grid("plan", "--exit-code", examples.path(name))[0] == 0


def test_all_examples_are_shipped() -> None:
    assert examples.names() == ["demo", "geon-2005", "minimal", "storage", "teragrid-2005"]


def test_the_replays_of_the_storage_example_are_of_the_calls_of_its_application() -> None:
    series = example("storage").series
    applications = [each for each in series.values() if each.probe == "madbench"]
    replays = [each for each in series.values() if each.probe == "replay"]
    assert [len(applications), len(replays)] == [2, 2]
    text = replays[0].parameters["signature"]
    traced = json.loads(text)["application"]
    defaults = {name: parameter.default for name, parameter in probes.load("madbench").parameters.items()}
    for application in applications:
        expected = comparable({**defaults, **application.parameters})
        assert (application.probe, expected) == (traced["probe"], traced["parameters"])
    assert {digest(each.parameters["signature"]) for each in replays} == {digest(text)}


def test_the_bindings_of_teragrid_match_its_publication() -> None:
    series = example("teragrid-2005").series
    site = {resource.name: resource.site for resource in example("teragrid-2005").resources.values()}
    assert {
        resource.name: resource.shell["host"] for resource in example("teragrid-2005").resources.values()
    } == {
        "tg-grid1-uc": "tg-grid1.uc.teragrid.org",
        "tg-login1-iu": "tg-login1.iu.teragrid.org",
        "tg-login-ornl": "tg-login.ornl.teragrid.org",
        "lonestar-tacc": "lonestar.tacc.utexas.edu",
        "tg-login-purdue": "tg-login.purdue.teragrid.org",
        "tg-login-ncsa": "tg-login.ncsa.teragrid.org",
        "tg-login-sdsc": "tg-login.sdsc.teragrid.org",
    }
    for name in ("gather", "gather-together"):
        roles = {role: [site[name] for name in bound] for role, bound in series[name].bindings.items()}
        assert roles == {
            "sources": ["anl", "iu", "ornl", "tacc", "purdue"],
            "compute": ["ncsa"],
            "destination": ["sdsc"],
        }
    ring = [site[resource] for resource in series["circle"].bindings["ring"]]
    assert ring == ["iu", "ornl", "purdue", "tacc", "sdsc", "ncsa", "anl"]
    preco = [entry for entry in series.values() if entry.probe == "preco"]
    assert len(preco) == 4
    for entry in preco:
        roles = {role: [site[resource] for resource in bound] for role, bound in entry.bindings.items()}
        assert roles == {"source": ["purdue"], "compute": ["ncsa"], "destination": ["sdsc"]}


def test_the_schedule_of_teragrid_matches_its_publication() -> None:
    series = example("teragrid-2005").series
    assert {name: entry.schedule for name, entry in series.items() if not entry.leader} == {
        "gather": "0 * * * *",
        "circle": "30 * * * *",
        "preco-with-gather": "0 0-23/3 * * *",
        "preco-right-after": "20 1-23/3 * * *",
        "preco-30-minutes-after": "50 2-23/3 * * *",
        "gather-together": "*/30 * * * *",
    }
    together = series["preco-together"]
    assert (together.leader, together.follows, together.delay_seconds) == ("gather-together", "with", 0)
    assert {name for name, entry in series.items() if not entry.enabled} == {
        "gather-together",
        "preco-together",
    }


def test_in_each_hour_of_the_example_one_preco_runs_at_its_distance_from_gather() -> None:
    """Gather took 145.37 to 1,142.66 s, and begins at the hour."""
    series = example("teragrid-2005").series
    midnight = datetime(2005, 8, 1, tzinfo=UTC)
    starts = {
        name: list(
            parse_schedule(series[name].schedule, name).slots(midnight - SECOND, midnight + DAY - SECOND)
        )
        for name in ("preco-with-gather", "preco-right-after", "preco-30-minutes-after")
    }
    gather = TERAGRID.durations["total.seconds"]
    earliest, latest = timedelta(seconds=gather.min or 0), timedelta(seconds=gather.max or 0)
    half, hour = timedelta(minutes=30), timedelta(hours=1)
    assert sorted(start.hour for found in starts.values() for start in found) == list(range(24))
    for name, (least, most) in {
        "preco-with-gather": (timedelta(0), timedelta(0)),
        "preco-right-after": (latest, earliest + half),
        "preco-30-minutes-after": (latest + half, earliest + hour),
    }.items():
        for start in starts[name]:
            assert least <= timedelta(minutes=start.minute) <= most


@pytest.mark.parametrize("name", ["teragrid-2005", "geon-2005"])
def test_the_limits_of_the_examples_have_room_for_the_published_durations(name: str) -> None:
    grid = GRIDS[name.removesuffix("-2005")]
    for entry in example(name).series.values():
        if entry.probe == "gather":
            assert entry.limit_seconds > 1.5 * (grid.durations["total.seconds"].max or 0)
        if entry.probe == "preco":
            total = grid.preco["total.seconds"]
            assert entry.limit_seconds > total.mean + 20 * total.stdev


def test_the_bindings_of_geon_match_its_publication() -> None:
    grid = example("geon-2005")
    site = {resource.name: resource.site for resource in grid.resources.values()}
    gather = {role: [site[name] for name in bound] for role, bound in grid.series["gather"].bindings.items()}
    assert gather == {
        "sources": ["utep", "asu", "sdsc", "uidaho", "rice"],
        "compute": ["arizona"],
        "destination": ["isu"],
    }
    ring = [site[resource] for resource in grid.series["circle"].bindings["ring"]]
    assert ring == ["asu", "sdsc", "uidaho", "rice", "arizona", "isu", "utep"]
    assert {name: series.schedule for name, series in grid.series.items()} == {
        "gather": "0 * * * *",
        "circle": "30 * * * *",
    }
    assert {resource.batch["kind"] for resource in grid.resources.values()} == {"fork"}


def test_the_demo_file_matches_the_definition_of_the_demo() -> None:
    grid = example("demo")
    assert list(grid.resources) == list(NAMES[:7])
    done = {series.name: series for series in definition.series(scheduled=True)}
    bindings = {
        name: {role: tuple(names) for role, names in series.bindings.items()} for name, series in done.items()
    }
    assert grid.series == {name: replace(series, bindings=bindings[name]) for name, series in done.items()}
    assert list(grid.alerts.values()) == definition.alerts()


def test_published_schema_and_reference_match_the_models(grid: GridCommand) -> None:
    assert grid("schema") == (0, (DOCS / "grid.schema.json").read_text(encoding="utf-8"))
    assert grid("reference") == (0, (DOCS / "grid-file-reference.md").read_text(encoding="utf-8"))


def test_the_reference_has_every_key() -> None:
    page = reference.page()
    for model in MODELS.values():
        for name, field in model.model_fields.items():
            assert f"| `{field.alias or name}` |" in page


def test_the_guide_contains_the_minimal_file() -> None:
    guide = (DOCS / "grid-file.md").read_text(encoding="utf-8")
    assert examples.path("minimal").read_text(encoding="utf-8").partition("\n")[2] in guide


def test_the_schema_is_json_and_covers_every_section() -> None:
    schema = json.loads(reference.schema())
    root, _ = read((DATA / "whole.yaml").read_bytes(), "whole.yaml", expected="a grid")
    assert schema["properties"]["version"]["const"] == VERSION
    assert set(root.plain()) == set(schema["properties"])


# Columns that no file can set; references are by name.
NOT_IN_FILES = {
    "id",
    "name",
    "created_at",
    "scheduled_since",
    "expanded_until",
    "judged_as",
    "everything",
    "probes",
}
NOT_IN_FILES |= {"is_default"}  # rules that files do not list
NOT_IN_FILES |= {"paced_until"}  # counted by the server
NOT_IN_FILES |= {"sort_name"}  # computed by the database
NOT_IN_FILES |= {"origin", "version", "changed_at", "changed_by"}  # of signatures: who wrote them
NOT_IN_FILES |= {"source", "uid"}  # of windows that feeds announce; so has their url
NOT_IN_FILES |= {"created_by"}  # of webhooks
NOT_IN_FILES |= {
    "author",
    "author_name",
    "identity",
    "suspended",
}  # of rules and webhooks: the rights
NOT_IN_FILES |= {"condition", "threshold"}  # one key per kind of condition
STORED_ELSEWHERE = {
    "resources": set(),
    "reporters": set(),
    "sites": set(),
    "suites": {"viewers"},
    "series": {"bindings", "for_", "mesh"},
    "maintenance": {"sites"},
    "alerts": {"watches", *CONDITIONS},
    "availability_profiles": {"sites"},
    "signatures": set(),
    "webhooks": {"suites", "sites"},
}


@pytest.mark.parametrize("noun", MODELS)
def test_a_file_can_set_every_configurable_column(noun: str) -> None:
    columns = {column.name for column in TABLES[noun]._meta.concrete_fields} - NOT_IN_FILES
    if noun == "maintenance":
        columns.discard("url")
    assert columns == MODELS[noun].model_fields.keys() - STORED_ELSEWHERE[noun]


@pytest.mark.parametrize("noun", MODELS)
def test_limits_of_the_format_match_the_columns(noun: str) -> None:
    for name, field in MODELS[noun].model_fields.items():
        limits = [limit.max_length for limit in field.metadata if hasattr(limit, "max_length")]
        if limits and name not in {
            "site",
            "patterns",
            "contacts",
        }:  # references must exist anyway; lists are JSON
            column = TABLES[noun]._meta.get_field(name)
            assert limits == [getattr(column, "max_length", None)]
    assert Series._meta.get_field("name").max_length == MAX_NAME_CHARACTERS
