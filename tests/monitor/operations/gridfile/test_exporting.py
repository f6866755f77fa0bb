"""Exports: equivalent to the grid, sorted, and written atomically."""

from __future__ import annotations

import io
import string
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.webhooks.define import WebhookDefinition
from monitor.core.yamlfile.reading import read
from monitor.models import Site
from monitor.models.reporter import HOME
from monitor.operations.gridfile import depot, exporting
from monitor.operations.gridfile.definition import (
    AlertDefinition,
    AvailabilityProfileDefinition,
    GridDefinition,
    MaintenanceDefinition,
    ReporterDefinition,
    ResourceDefinition,
    SeriesDefinition,
    SignatureDefinition,
    SiteDefinition,
    SuiteDefinition,
)
from monitor.operations.gridfile.loading import DepotNames, parse
from tests.monitor.operations.gridfile.conftest import DATA, GridCommand

WORDS = [
    "",
    "no",
    "null",
    "~",
    "1",
    "1e3",
    "-0.5",
    ".inf",
    "2005-03-01",
    "true",
    "- a",
    "a: b",
    "#",
    "*",
    "{x}",
]
texts = st.sampled_from(WORDS) | st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=30
)
names = st.sampled_from(["no", "on", "2005", "null", "1e3", "-", "0"]) | st.text(
    string.ascii_letters + string.digits + "-_", min_size=1, max_size=20
)
some_moment = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
moments = st.none() | some_moment


def by_name(definitions: list[Any]) -> dict[str, Any]:
    return {definition.name: definition for definition in definitions}


STORAGES: list[dict[str, Any]] = [
    {},
    {"medium": "flash", "capacity_gb": 64.0, "price": 500.0, "power_watts": 2.4, "endurance_cycles": 1e5},
    {"parts": {"count": 16, "read_operations_per_second": 39_756.0}},
]


@st.composite
def windows(draw: st.DrawFn, name: str, sites: list[str]) -> MaintenanceDefinition:
    """A single maintenance window, or a scheduled one."""
    starts_at: datetime = draw(some_moment)
    ends_at: datetime = starts_at + draw(st.timedeltas(timedelta(seconds=1), timedelta(days=1000)))
    affected = tuple(sorted(draw(st.sets(st.sampled_from(sites)))))
    if draw(st.booleans()):
        return MaintenanceDefinition(name, draw(texts), affected, starts_at, ends_at)
    return MaintenanceDefinition(
        name,
        draw(texts),
        affected,
        draw(st.sampled_from([None, starts_at])),
        draw(st.sampled_from([None, ends_at])),
        draw(st.sampled_from(["0 8 * * tue", "*/30 1-3 1 * *", "0 0 1 jan,jul *"])),
        draw(st.sampled_from(["UTC", "Europe/Berlin"])),
        draw(st.integers(1, 1800)),
    )


@st.composite
def rules(draw: st.DrawFn, name: str, existing: dict[str, list[str]]) -> AlertDefinition:
    """A rule that watches everything, or some of the *existing* names."""
    named = {noun: draw(st.sets(st.sampled_from(names))) for noun, names in existing.items() if names}
    watches = {noun: tuple(sorted(names)) for noun, names in named.items() if names}
    everything: bool = draw(st.booleans())
    conditions = [("failures_in_row", 1), ("failures_in_row", 100), ("silent_seconds", 7200)]
    if not watches.keys() & {"suites", "series"}:
        conditions.append(("lag_seconds", 600))
    condition, threshold = draw(st.sampled_from(conditions))
    return AlertDefinition(
        name,
        draw(texts),
        draw(st.booleans()),
        {"everything": True} if everything or not watches else watches,
        condition,
        threshold,
        notify=draw(st.sampled_from([(), ({"kind": "log"}, {"kind": "email", "to": ["ada@example.org"]})])),
        repeat_seconds=draw(st.sampled_from([None, 3600])),
        severity=draw(st.sampled_from(["minor", "major", "critical"])),
    )


profile_names = st.lists(names.filter(lambda name: name != "default"), max_size=1)
selections = st.sampled_from([None, {"probes": ["circle"]}, {"probes": ["login", "noop"], "series": ["*"]}])


@st.composite
def profiles(draw: st.DrawFn, name: str, suites: list[str]) -> AvailabilityProfileDefinition:
    """A profile of all sites, with services by *suites*."""
    services = draw(st.dictionaries(names, st.sampled_from(suites), max_size=2))
    return AvailabilityProfileDefinition(
        name,
        draw(texts),
        (),
        draw(st.none() | st.dates()),
        draw(st.sampled_from(["all", "any"])),
        draw(selections),
        draw(selections),
        {service: {"needs": "all", "suites": [suite]} for service, suite in sorted(services.items())},
    )


@st.composite
def signatures(draw: st.DrawFn, name: str) -> SignatureDefinition:
    return SignatureDefinition(
        name,
        draw(texts.filter(bool)),
        draw(st.sampled_from(["storage", "unknown"])),
        draw(st.sampled_from(["minor", "critical"])),
        tuple(
            draw(st.lists(st.sampled_from(["no", "1", r"(?:^|:)\s*a \"b\" '#' \d+$", "é{2}"]), min_size=1))
        ),
        draw(texts),
        draw(st.sampled_from([None, True, False])),
        tuple(draw(st.lists(names, max_size=2))),
        (),
        draw(st.integers(-100, 100)),
    )


@st.composite
def webhooks(draw: st.DrawFn, name: str, suites: list[str], sites: list[str]) -> WebhookDefinition:
    return WebhookDefinition(
        name,
        url=draw(st.sampled_from(["https://hooks.example.org/", "http://a:8080/x?y=1#no"])),
        events=tuple(sorted(draw(st.sets(st.sampled_from(["run.ended", "site.down"]), min_size=1)))),
        secret_variable=draw(st.sampled_from(["", "GRIDCAST_WEBHOOK_NO"])),
        suites=tuple(sorted(draw(st.sets(st.sampled_from(suites))))),
        sites=tuple(sorted(draw(st.sets(st.sampled_from(sites))))) if sites else (),
        enabled=draw(st.booleans()),
    )


retentions = st.sampled_from([(), (7,), (None, 90), (1, 7, 90), (400, 30, 30, 36_500)])


@st.composite
def grids(draw: st.DrawFn) -> GridDefinition:
    """A grid with arbitrary names and titles, at least two resources, and series."""
    sites = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    resources = draw(st.lists(names, min_size=2, max_size=4, unique=True))
    suites = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    series = draw(st.lists(names, max_size=3, unique=True))
    reporters = draw(st.lists(names.filter(lambda name: name != HOME), max_size=2, unique=True))
    workers = [name for name in draw(st.sets(names)) if name not in reporters]
    work = draw(st.lists(names, max_size=3, unique=True))
    alerts = draw(st.lists(names, max_size=2, unique=True))
    existing = {"sites": sites, "suites": suites, "series": series, "reporters": ["home"]}
    shell = {"kind": "ssh", "host": "login.example.org"}
    return GridDefinition(
        by_name(
            [
                SiteDefinition(
                    name,
                    draw(texts),
                    notes=draw(texts),
                    contacts=[{"name": draw(texts), "email": draw(texts)}],
                )
                for name in sites
            ]
        ),
        by_name(
            [
                ResourceDefinition(
                    name,
                    draw(st.sampled_from(sites)),
                    "/" + draw(texts),
                    shell,
                    {"kind": "ssh"},
                    {"kind": "slurm", "queue": draw(names.filter(lambda name: name[0] != "-"))},
                    draw(texts),
                    draw(st.sampled_from(STORAGES)),
                )
                for name in resources
            ]
        ),
        by_name(
            [
                ReporterDefinition(name, draw(st.sampled_from(sites)), draw(st.integers(1, 9)))
                for name in reporters
            ]
            + [ReporterDefinition(name) for name in workers if name != HOME]
        ),
        by_name(
            [
                SuiteDefinition(name, draw(texts), tuple(sorted({draw(names)})), *draw(retentions))
                for name in suites
            ]
        ),
        by_name(
            [
                SeriesDefinition(
                    name,
                    "nagios",
                    {"target": (draw(st.sampled_from(resources)),)},
                    {"command": draw(texts)},
                    draw(st.sampled_from(["", "* * * * *", "@hourly", "H H(1-5) * * 1-5"])),
                    enabled=draw(st.booleans()),
                    limit_seconds=draw(st.floats(0.001, 1e7)),
                    suite=draw(st.sampled_from(suites)),
                    timezone=draw(st.sampled_from(["UTC", "Europe/Berlin"])),
                    starts_at=draw(moments),
                    reporter=draw(names.filter(lambda name: name not in reporters)),
                )
                for name in series
            ]
        ),
        by_name([draw(windows(name, sites)) for name in work]),
        by_name([draw(rules(name, existing)) for name in alerts]),
        by_name([draw(profiles(name, suites)) for name in draw(profile_names)]),
        by_name([draw(signatures(name)) for name in draw(st.sets(st.sampled_from(["no", "1e3", "a-b"])))]),
        by_name([draw(webhooks(name, suites, sites)) for name in draw(st.sets(names, max_size=2))]),
    )


@given(grids())
def test_any_grid_survives_export_and_parsing(grid: GridDefinition) -> None:
    text = exporting.to_yaml(grid)
    assert parse(text.encode(), "grid.yaml", DepotNames()) == grid


@given(texts)
def test_any_text_survives_export_and_reading(text: str) -> None:
    written = exporting.to_yaml(GridDefinition(sites={"a": SiteDefinition("a", text)}))
    root, problems = read(written.encode(), "grid.yaml", expected="a grid")
    assert not problems
    assert root.plain()["sites"]["a"].get("title", "") == text


def test_an_exported_file_gives_an_empty_plan(grid: GridCommand, operators: Group, tmp_path: Path) -> None:
    grid("apply", DATA / "whole.yaml")
    assert grid("export", tmp_path / "out.yaml") == (0, "")
    assert grid("plan", "--prune", "--exit-code", tmp_path / "out.yaml")[0] == 0


def test_exports_are_identical_before_and_after_applying_one(
    grid: GridCommand, operators: Group, tmp_path: Path
) -> None:
    grid("apply", DATA / "whole.yaml")
    _, first = grid("export", "-")
    (tmp_path / "out.yaml").write_text(first, encoding="utf-8")
    before = depot.read()
    grid("apply", tmp_path / "out.yaml")
    assert grid("export", "-")[1] == first
    assert depot.read() == before


def test_an_export_is_sorted_and_omits_defaults(grid: GridCommand, operators: Group) -> None:
    grid("apply", DATA / "whole.yaml")
    _, text = grid("export", "-")
    assert text.startswith(
        "version: 1\nsites:\n  anl: {title: Argonne}\n  sdsc: {}\nresources:\n  login-anl:\n"
    )
    assert (
        "  disk-4096:\n"
        "    suite: main\n"
        "    probe: disk\n"
        "    bindings:\n"
        "      target: [login-anl]\n"
        "    parameters: {file_bytes: 4096}\n"
        "  disk-8192:\n"
    ) in text
    assert "starts_at: '2026-01-01T00:00:00Z'" in text


@pytest.mark.django_db
def test_a_failed_export_leaves_no_file(grid: GridCommand, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="No such file or directory"):
        grid("export", tmp_path / "noaffected" / "grid.yaml")
    (tmp_path / "grid.yaml").mkdir()
    with pytest.raises(Exception, match="Is a directory"):
        grid("export", tmp_path / "grid.yaml")
    assert [file.name for file in tmp_path.iterdir()] == ["grid.yaml"]


@pytest.mark.django_db
def test_an_export_keeps_the_permissions_of_the_file(grid: GridCommand, tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text("old", encoding="utf-8")
    (tmp_path / "grid.yaml").chmod(0o640)
    grid("export", tmp_path / "grid.yaml")
    assert (tmp_path / "grid.yaml").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "grid.yaml").read_text(encoding="utf-8") == "version: 1\n"


@pytest.mark.django_db
def test_a_name_that_is_invalid_in_files_is_exported_with_an_error(grid: GridCommand, tmp_path: Path) -> None:
    Site.objects.create(name="san diego")
    status, output = grid("export", tmp_path / "grid.yaml")
    assert status == 1
    expected = "expected a name of letters, digits, - and _"
    assert f'grid.yaml:3:3: site san diego: {expected}, got "san diego"' in output
    assert "san diego" in (tmp_path / "grid.yaml").read_text(encoding="utf-8")


@pytest.mark.django_db
def test_a_file_is_read_from_standard_input(grid: GridCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"version: 1\nsites:\n  anl: {titel: x}\n"))
    )
    assert grid("validate", "-")[1].startswith('<stdin>:3:9: site anl, key "titel"')
