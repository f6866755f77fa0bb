"""What takes more than one value to see: names that refer to nothing, parameters that a probe does not take.

Every check yields what it found, with its path in the file; nothing is raised and nothing stops at the first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import probes
from monitor.gridfile import alerting, expansion, ways
from monitor.gridfile.definition import (
    Grid,
    MaintenanceDefinition,
    ResourceDefinition,
    SeriesDefinition,
    SiteDefinition,
    SuiteDefinition,
)
from monitor.gridfile.format import NAME, WORD, GridFile, MaintenanceEntry
from monitor.gridfile.parsing import Found
from monitor.gridfile.problems import Path, nearest, shown
from monitor.imports import formats
from monitor.ledger import maintenance_times
from monitor.models.series import IMPORTED
from probes.base import InvalidParameters, Probe
from reporters import config
from reporters.schedule import InvalidSchedule, find_zone, parse_schedule

MAX_NAME_CHARACTERS = 100  # that the depot keeps


@dataclass(frozen=True)
class Names:
    """What may be referred to, in the file itself and in the depot; None where that is not known."""

    sites: Collection[str] | None
    resources: Collection[str] | None
    suites: Collection[str] | None
    reporters: Collection[str] | None
    groups: Collection[str] | None
    has_all_series: bool = True  # whether none that is written is left out, because it is not sound


def check(file: GridFile, names: Names) -> tuple[Grid, list[Found]]:
    """The grid that *file* describes, and what is wrong with it: then the grid is not whole."""
    sites = {name: SiteDefinition(name, **site.model_dump()) for name, site in file.sites.items()}
    suites = {
        name: SuiteDefinition(name, **{**suite.model_dump(), "viewers": tuple(sorted(set(suite.viewers)))})
        for name, suite in file.suites.items()
    }
    resources = {
        name: ResourceDefinition(name, **resource.model_dump()) for name, resource in file.resources.items()
    }
    maintenance = {
        name: MaintenanceDefinition(name, **{**one.model_dump(), "sites": tuple(sorted(set(one.sites)))})
        for name, one in file.maintenance.items()
    }
    series, found = _expanded(file)
    found.extend(_check_suites(file, names))
    for resource in resources.values():
        found.extend(_check_resource(resource, names))
    seen: set[Path] = set()
    for template, one in series.values():
        for path, message in (*_check_series(one, names), *_check_leader(one, series, file.series)):
            if (template, *path) not in seen:  # of many that a macro made the first is enough
                seen.add((template, *path))
                found.append((("series", template, *path), message))
    for name, work in file.maintenance.items():
        found.extend(_check_maintenance(("maintenance", name), work, names))
    in_series = any(path[0] == "series" for path, _ in found)
    every_series = series if names.has_all_series and not in_series else None
    found.extend(_check_alerts(file, names, every_series))
    alerts = {name: alerting.definition(name, rule) for name, rule in file.alerts.items()}
    every = {name: one for name, (_, one) in series.items()}
    return Grid(sites, resources, suites, every, maintenance, alerts), found


def _expanded(file: GridFile) -> tuple[dict[str, tuple[str, SeriesDefinition]], list[Found]]:
    """Every series by its name, with the one in the file that it was made from."""
    total = sum(expansion.count(series) for series in file.series.values())
    if total > expansion.MAX_SERIES:
        why = f"{total:,} series, written out; at most {expansion.MAX_SERIES:,} are made of a file"
        return {}, [(("series",), why)]
    series: dict[str, tuple[str, SeriesDefinition]] = {}
    found: list[Found] = []
    for template, one in file.series.items():
        try:
            for made in expansion.expand(template, one):
                if made.name in series:
                    found.append(
                        (("series", template), _made_twice(made.name, template, series[made.name][0]))
                    )
                    break
                series[made.name] = (template, made)
        except expansion.CannotExpand as error:
            found.append((("series", template, *error.path), str(error)))
    return series, found


def _made_twice(name: str, template: str, other: str) -> str:
    if template != other:
        return f"its name {shown(name)} is also made by series {other}"
    why = "a name has every placeholder, and a list no value twice"
    return f"its name {shown(name)} is made more than once; {why}"


def _check_suites(file: GridFile, names: Names) -> Iterator[Found]:
    for name, suite in file.suites.items():
        for i, group in enumerate(suite.viewers):
            if names.groups is not None and group not in names.groups:
                message = f"there is no group {shown(group)} of users{nearest(group, names.groups)}"
                yield ("suites", name, "viewers", i), message


def _check_resource(resource: ResourceDefinition, names: Names) -> Iterator[Found]:
    path = ("resources", resource.name)
    yield from _refer((*path, "site"), "site", resource.site, names.sites)
    for inner, message in ways.faults(config.ResourceConfig(**asdict(resource))):
        yield (*path, *inner), message


def _refer(path: Path, noun: str, name: str, known: Collection[str] | None) -> Iterator[Found]:
    if known is not None and name not in known:
        yield path, f"there is no {noun} {shown(name)}{nearest(name, known)}"


def _check_series(series: SeriesDefinition, names: Names) -> Iterator[Found]:
    yield from _check_name(series.name)
    yield from _refer(("suite",), "suite", series.suite, names.suites)
    yield from _refer(("reporter",), "reporter", series.reporter, names.reporters)
    yield from _check_schedule(series)
    for role, resources in series.bindings.items():
        for i, resource in enumerate(resources):
            yield from _refer(("bindings", role, i), "resource", resource, names.resources)
    if series.probe in _probe_names():
        probe = _probe(series.probe)
        yield from _check_bindings(series.bindings, probe)
        yield from _check_parameters(series.parameters, probe)
    elif series.probe not in _imported():
        yield ("probe",), f"{shown(series.probe)} is no probe{nearest(series.probe, _probe_names())}"


def _check_leader(
    one: SeriesDefinition, series: Mapping[str, tuple[str, SeriesDefinition]], templates: Collection[str]
) -> Iterator[Found]:
    """Whether *one* follows another series that leads, or none."""
    if one.leader is None:
        if one.follows:
            yield ("follows",), "it follows nobody; expected a leader as well"
        return
    yield from _refer(("leader",), "series", one.leader, {*series, *templates})
    if not one.follows:
        yield ("follows",), "it is missing; expected with or after, because there is a leader"
    if one.schedule:
        yield ("schedule",), "it has a leader; expected either that or a schedule"
    if one.leader in series and (further := series[one.leader][1].leader) is not None:
        cycle = "a cycle; " if further == one.name else ""
        expected = "expected one with a schedule of its own"
        yield ("leader",), f"series {one.leader} follows {further} itself: {cycle}{expected}"


def _check_name(name: str) -> Iterator[Found]:
    if not re.fullmatch(WORD, name):
        hint = "; placeholders need for or mesh" if "{" in name else ""
        yield (), f"expected a name of {NAME}, got {shown(name)}{hint}"
    elif len(name) > MAX_NAME_CHARACTERS:
        yield (
            (),
            f"its name has {len(name)} characters; at most {MAX_NAME_CHARACTERS} are kept: {shown(name)}",
        )


def _check_schedule(series: SeriesDefinition) -> Iterator[Found]:
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


def _check_maintenance(path: Path, work: MaintenanceEntry, names: Names) -> Iterator[Found]:
    for i, site in enumerate(work.sites):
        yield from _refer((*path, "sites", i), "site", site, names.sites)
    times = work.model_dump(exclude={"title", "sites"})
    for key, message in maintenance_times.time_errors(maintenance_times.WindowTimes(**times)):
        yield (*path, key), message


def _check_alerts(file: GridFile, names: Names, series: Collection[str] | None) -> Iterator[Found]:
    known = {"suites": names.suites, "sites": names.sites, "series": series}
    for name, rule in file.alerts.items():
        for path, message in alerting.faults(rule, known):
            yield ("alerts", name, *path), message


def _check_bindings(bindings: Mapping[str, Any], probe: type[Probe]) -> Iterator[Found]:
    for unknown in sorted(bindings.keys() - probe.roles.keys()):
        yield ("bindings", unknown), f"the probe has no role {shown(unknown)}{nearest(unknown, probe.roles)}"
    for name, role in probe.roles.items():
        try:
            role.check(name, bindings.get(name, ()))
        except InvalidParameters as error:
            yield ("bindings", name), f"{error} ({role.description})"


def _check_parameters(parameters: Mapping[str, Any], probe: type[Probe]) -> Iterator[Found]:
    for name, value in parameters.items():
        if name not in probe.parameters:
            known = nearest(name, probe.parameters)
            yield ("parameters", name), f"the probe has no parameter {shown(name)}{known}"
            continue
        try:
            probe.parameters[name].checked(name, value)
        except InvalidParameters as error:
            yield ("parameters", name), str(error)


@cache
def _imported() -> set[str]:
    """What imported series have in place of a probe."""
    return {f"{IMPORTED}{kind}" for kind in formats.names()}


@cache
def _probe_names() -> list[str]:
    return probes.names()


@cache
def _probe(name: str) -> type[Probe]:
    return probes.load(name)
