"""Checks that need more than one value, such as references and the parameters of probes.

Every check yields all faults with their paths in the file, and raises nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import probes
from monitor.analysis.signatures.loading import SignatureEntry
from monitor.analysis.signatures.shipped import shipped_names
from monitor.core.yamlfile.problems import Fault, Path, quoted, suggestion
from monitor.core.yamlfile.validation import NAME
from monitor.models.alert import DEFAULT_PREFIX
from monitor.models.reporter import HOME
from monitor.models.series import IMPORTED, REPORTED_PROBE, STARTS_RUNS
from monitor.operations.gridfile import (
    access,
    agents,
    alerting,
    availability_profiles,
    expansion,
    webhook_entries,
)
from monitor.operations.gridfile.definition import (
    DEFAULT_SERIES,
    GridDefinition,
    MaintenanceDefinition,
    ReporterDefinition,
    ResourceDefinition,
    SeriesDefinition,
    SignatureDefinition,
    SiteDefinition,
    SuiteDefinition,
)
from monitor.operations.gridfile.format import WORD, GridFile, MaintenanceEntry
from monitor.runs.imports import formats
from monitor.runs.maintenance import times as maintenance_times
from monitor.runs.maintenance.changes import DECLARED
from probes.base import InvalidParameters, Probe
from reporters.schedule import InvalidSchedule, find_zone, parse_schedule

ExpandedSeries = dict[str, tuple[str, SeriesDefinition]]  # name -> name of its entry in the file, series

MAX_NAME_CHARACTERS = 100  # length of the column


@dataclass(frozen=True)
class KnownNames:
    """The names that a file may refer to, because the file or the depot defines them.

    None instead of names disables the check. *has_all_series* is false if invalid series were left out.
    """

    sites: Collection[str] | None
    resources: Collection[str] | None
    suites: Collection[str] | None
    reporters: Mapping[str, str | None] | None  # with the site of an agent
    groups: Collection[str] | None
    windows: Mapping[str, str]  # maintenance of feeds and declarations, with their sources
    has_all_series: bool = True  # False if invalid series were left out
    series: Collection[str] = ()  # of the depot, in addition to those of the file
    deleting: Collection[str] = ()  # series whose deletion is under way
    default_rules: Collection[str] = ()  # alert rules that the service made, and that may be changed


def check(file: GridFile, names: KnownNames) -> tuple[GridDefinition, list[Fault]]:
    """Return the grid that *file* describes, and its faults; if there are faults, the grid is incomplete."""
    expanded, faults = _expand_all(file)
    grid = _defined(file, expanded)
    faults.extend(_check_suites(file, names))
    faults.extend(
        (("series", name), "it is being deleted: use another name, or wait until it is gone")
        for name in grid.series
        if name in names.deleting
    )
    for resource in grid.resources.values():
        faults.extend(_check_resource(resource, names))
    for reporter in grid.reporters.values():
        faults.extend(_check_reporter(reporter, names))
    faults.extend(_check_all_series(expanded, file.series, names))
    places = {name: reporter.site for name, reporter in grid.reporters.items()}
    faults.extend(agents.faults(expanded, grid.resources, {**(names.reporters or {}), **places}))
    for name, entry in file.maintenance.items():
        faults.extend(_check_maintenance(("maintenance", name), entry, names))
    has_series_faults = any(path[0] == "series" for path, _ in faults)
    all_series = {*expanded, *names.series} if names.has_all_series and not has_series_faults else None
    faults.extend(_check_alerts(file, names, all_series))
    faults.extend(_check_profiles(file, names, all_series))
    faults.extend(_check_signatures(file))
    faults.extend(_check_webhooks(file, names))
    return grid, faults


def _defined(file: GridFile, expanded: ExpandedSeries) -> GridDefinition:
    return GridDefinition(
        sites={name: SiteDefinition(name, **entry.model_dump()) for name, entry in file.sites.items()},
        resources={
            name: ResourceDefinition(
                name,
                **{
                    **entry.model_dump(),
                    "storage": entry.storage.model_dump(exclude_defaults=True) if entry.storage else {},
                },
            )
            for name, entry in file.resources.items()
        },
        reporters={
            name: ReporterDefinition(name, **entry.model_dump()) for name, entry in file.reporters.items()
        },
        suites={
            name: SuiteDefinition(
                name, **{**entry.model_dump(), "viewers": tuple(sorted(set(entry.viewers)))}
            )
            for name, entry in file.suites.items()
        },
        series={name: definition for name, (_, definition) in expanded.items()},
        maintenance={
            name: MaintenanceDefinition(
                name, **{**entry.model_dump(), "sites": tuple(sorted(set(entry.sites)))}
            )
            for name, entry in file.maintenance.items()
        },
        alerts={name: alerting.rule_definition(name, rule) for name, rule in file.alerts.items()},
        availability_profiles={
            name: availability_profiles.profile_definition(name, profile)
            for name, profile in file.availability_profiles.items()
        },
        signatures={name: _signature_definition(name, entry) for name, entry in file.signatures.items()},
        webhooks={
            name: webhook_entries.webhook_definition(name, entry) for name, entry in file.webhooks.items()
        },
    )


def _signature_definition(name: str, entry: SignatureEntry) -> SignatureDefinition:
    values = entry.model_dump(mode="json")
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return SignatureDefinition(name, **{**values, **lists})


def _expand_all(file: GridFile) -> tuple[ExpandedSeries, list[Fault]]:
    """Expand all macros; return the series, and the faults of macros.

    The series are pairs (name of the entry in the file, series), by name of the series.
    """
    total = sum(expansion.count(series) for series in file.series.values())
    if total > expansion.MAX_SERIES:
        message = f"{total:,} series after expansion; expected at most {expansion.MAX_SERIES:,}"
        return {}, [(("series",), message)]
    expanded: ExpandedSeries = {}
    faults: list[Fault] = []
    for template, entry in file.series.items():
        try:
            for series in expansion.expand(template, entry):
                if series.name in expanded:
                    message = _duplicate_name(series.name, template, expanded[series.name][0])
                    faults.append((("series", template), message))
                    break
                expanded[series.name] = (template, series)
        except expansion.InvalidMacro as error:
            faults.append((("series", template, *error.path), str(error)))
    return expanded, faults


def _duplicate_name(name: str, template: str, other: str) -> str:
    if template != other:
        return f"its name {quoted(name)} is also generated by series {other}"
    expected = "expected every placeholder in the name, and no value twice in a list"
    return f"its name {quoted(name)} is generated more than once; {expected}"


def _check_all_series(
    expanded: ExpandedSeries, templates: Collection[str], names: KnownNames
) -> Iterator[Fault]:
    """Check every series; of several faults at the same path of a macro, yield only the first.

    *expanded* are the series of the file with all macros expanded; *templates* are the names of its entries.
    """
    seen: set[Path] = set()
    for template, series in expanded.values():
        known = {*expanded, *templates, *names.series}
        for path, message in (*_check_series(series, names), *_check_leader(series, expanded, known)):
            if (template, *path) not in seen:
                seen.add((template, *path))
                yield ("series", template, *path), message


def _check_suites(file: GridFile, names: KnownNames) -> Iterator[Fault]:
    for name, suite in file.suites.items():
        for i, group in enumerate(suite.viewers):
            if names.groups is not None and group not in names.groups:
                message = f"there is no user group {quoted(group)}{suggestion(group, names.groups)}"
                yield ("suites", name, "viewers", i), message


def _check_resource(resource: ResourceDefinition, names: KnownNames) -> Iterator[Fault]:
    path = ("resources", resource.name)
    yield from _check_reference((*path, "site"), "site", resource.site, names.sites)
    for inner, message in access.faults(resource.as_config()):
        yield (*path, *inner), message
    part = resource.storage.get("parts", {}).get("resource")
    if part is not None:
        place = (*path, "storage", "parts", "resource")
        yield from _check_reference(place, "resource", part, names.resources)
        if part == resource.name:
            yield place, "it is the resource itself; expected one with a single part"


def _check_reporter(reporter: ReporterDefinition, names: KnownNames) -> Iterator[Fault]:
    path = ("reporters", reporter.name)
    if reporter.name == HOME:
        yield path, f"the reporter {HOME} exists without being defined; make serve sets its capacity"
    if reporter.site is not None:
        yield from _check_reference((*path, "site"), "site", reporter.site, names.sites)


def _check_reference(path: Path, noun: str, name: str, names: Collection[str] | None) -> Iterator[Fault]:
    if names is not None and name not in names:
        yield path, f"there is no {noun} {quoted(name)}{suggestion(name, names)}"


def _check_series(series: SeriesDefinition, names: KnownNames) -> Iterator[Fault]:
    yield from _check_name(series.name)
    yield from _check_reference(("suite",), "suite", series.suite, names.suites)
    yield from _check_reference(("reporter",), "reporter", series.reporter, names.reporters)
    yield from _check_schedule(series)
    for role, resources in series.bindings.items():
        for i, resource in enumerate(resources):
            yield from _check_reference(("bindings", role, i), "resource", resource, names.resources)
    if series.probe in _probe_names():
        probe = _probe(series.probe)
        yield from _check_bindings(series.bindings, probe)
        yield from _check_parameters(series.parameters, probe)
    elif series.probe == REPORTED_PROBE:
        yield from _check_reported(series)
    elif series.probe not in _import_probes():
        nearest = suggestion(series.probe, [*_probe_names(), REPORTED_PROBE])
        yield ("probe",), f"there is no probe {quoted(series.probe)}{nearest}"


def _check_reported(series: SeriesDefinition) -> Iterator[Fault]:
    """Check that nothing else is to start runs of *series*, which programs outside of gridcast start."""
    for key in STARTS_RUNS:
        if getattr(series, key) != getattr(DEFAULT_SERIES, key):
            yield (
                (key,),
                f"expected none: programs outside of gridcast start runs of {REPORTED_PROBE}",
            )


def _check_leader(
    series: SeriesDefinition, expanded: ExpandedSeries, known: Collection[str]
) -> Iterator[Fault]:
    """Check that *series* has no leader, or that its leader has a schedule of its own."""
    if series.leader is None:
        if series.follows:
            yield ("follows",), "it has no leader; expected leader as well"
        return
    yield from _check_reference(("leader",), "series", series.leader, known)
    if not series.follows:
        yield ("follows",), "it is missing; expected with or after, because there is a leader"
    if series.schedule:
        yield ("schedule",), "expected either leader or schedule, not both"
    if series.leader in expanded and (further := expanded[series.leader][1].leader) is not None:
        cycle = "a cycle; " if further == series.name else ""
        expected = "expected a series with a schedule of its own"
        yield ("leader",), f"series {series.leader} follows series {further}: {cycle}{expected}"


def _check_name(name: str) -> Iterator[Fault]:
    if not re.fullmatch(WORD, name):
        hint = "; placeholders need for or mesh" if "{" in name else ""
        yield (), f"expected a name of {NAME}, got {quoted(name)}{hint}"
    elif len(name) > MAX_NAME_CHARACTERS:
        expected = f"expected a name of at most {MAX_NAME_CHARACTERS} characters"
        yield (), f"{expected}, got {len(name)}: {quoted(name)}"


def _check_schedule(series: SeriesDefinition) -> Iterator[Fault]:
    for key in ("schedule", "retry_schedule"):
        text = getattr(series, key)
        if text:
            try:
                parse_schedule(text, series.name)
            except InvalidSchedule as error:
                yield (key,), str(error)
    try:
        find_zone(series.timezone)
    except InvalidSchedule as error:
        yield ("timezone",), str(error)
    if series.starts_at and series.ends_at and series.ends_at < series.starts_at:
        yield ("ends_at",), f"{series.ends_at.isoformat()} is before starts_at {series.starts_at.isoformat()}"


def _check_maintenance(path: Path, entry: MaintenanceEntry, names: KnownNames) -> Iterator[Fault]:
    if source := names.windows.get(str(path[-1])):
        origin = "was declared after the fact" if source == DECLARED else f"the feed {source} announced"
        yield (
            path,
            f"its name is that of a window that {origin}; choose another name,"
            " or delete that window in /admin/ (Maintenance windows)",
        )
    for i, site in enumerate(entry.sites):
        yield from _check_reference((*path, "sites", i), "site", site, names.sites)
    times = entry.model_dump(exclude={"title", "sites"})
    for key, message in maintenance_times.time_errors(maintenance_times.WindowTimes(**times)):
        yield (*path, key), message


def _check_alerts(file: GridFile, names: KnownNames, series: Collection[str] | None) -> Iterator[Fault]:
    existing = {
        "suites": names.suites,
        "sites": names.sites,
        "series": series,
        "probes": {*_probe_names(), REPORTED_PROBE, *_import_probes()},
        "reporters": names.reporters,
    }
    for name, rule in file.alerts.items():
        if name.startswith(DEFAULT_PREFIX) and name not in names.default_rules:
            yield ("alerts", name), f"names of own rules do not begin with {quoted(DEFAULT_PREFIX)}"
        for path, message in alerting.faults(rule, existing):
            yield ("alerts", name, *path), message


def _check_profiles(file: GridFile, names: KnownNames, series: Collection[str] | None) -> Iterator[Fault]:
    existing = {
        "suites": names.suites,
        "probes": {*_probe_names(), *_import_probes()},
        "series": series,
        "sites": names.sites,
        "reporters": names.reporters,
    }
    for path, message in availability_profiles.faults(file.availability_profiles, existing):
        yield ("availability_profiles", *path), message


def _check_signatures(file: GridFile) -> Iterator[Fault]:
    for name in sorted(file.signatures.keys() & shipped_names()):
        yield ("signatures", name), "gridcast ships a signature of this name; use another name"


def _check_webhooks(file: GridFile, names: KnownNames) -> Iterator[Fault]:
    existing = {"suites": names.suites, "sites": names.sites}
    for path, message in webhook_entries.faults(file.webhooks, existing):
        yield ("webhooks", *path), message


def _check_bindings(bindings: Mapping[str, Any], probe: type[Probe]) -> Iterator[Fault]:
    for unknown in sorted(bindings.keys() - probe.roles.keys()):
        nearest = suggestion(unknown, probe.roles)
        yield ("bindings", unknown), f"the probe has no role {quoted(unknown)}{nearest}"
    for name, role in probe.roles.items():
        try:
            role.check(name, bindings.get(name, ()))
        except InvalidParameters as error:
            yield ("bindings", name), f"{error} ({role.description})"


def _check_parameters(parameters: Mapping[str, Any], probe: type[Probe]) -> Iterator[Fault]:
    for name, value in parameters.items():
        if name not in probe.parameters:
            nearest = suggestion(name, probe.parameters)
            yield ("parameters", name), f"the probe has no parameter {quoted(name)}{nearest}"
            continue
        try:
            probe.parameters[name].checked(name, value)
        except InvalidParameters as error:
            yield ("parameters", name), str(error)


@cache
def _import_probes() -> set[str]:
    """Return the names that imported series have instead of the name of a probe."""
    return {f"{IMPORTED}{kind}" for kind in formats.names()}


@cache
def _probe_names() -> list[str]:
    return probes.names()


@cache
def _probe(name: str) -> type[Probe]:
    return probes.load(name)
