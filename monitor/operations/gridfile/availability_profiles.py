"""Availability profiles of a grid file: their definitions, and the checks that need more than one value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from monitor.analysis.availability.profiles import DEFAULT, SELECTORS
from monitor.core.yamlfile.problems import Fault, Path, quoted, suggestion
from monitor.operations.gridfile.availability_entries import (
    AvailabilityProfileEntry,
    SelectionEntry,
    ServiceEntry,
)
from monitor.operations.gridfile.definition import AvailabilityProfileDefinition

_SINGULAR = {
    "suites": "suite",
    "probes": "probe",
    "series": "series",
    "sites": "site",
    "reporters": "reporter",
}


def profile_definition(name: str, profile: AvailabilityProfileEntry) -> AvailabilityProfileDefinition:
    return AvailabilityProfileDefinition(
        name,
        title=profile.title,
        sites=tuple(sorted(set(profile.sites))),
        valid_from=profile.valid_from,
        needs=profile.needs,
        include=_selected(profile.include),
        exclude=_selected(profile.exclude),
        services={service: _service(entry) for service, entry in sorted(profile.services.items())},
    )


def _selected(selection: SelectionEntry | None) -> Mapping[str, Any] | None:
    return (selection.selected or None) if selection else None


def _service(entry: ServiceEntry) -> dict[str, Any]:
    exclude = _selected(entry.exclude)
    return {"needs": entry.needs, **entry.selected, **({"exclude": exclude} if exclude else {})}


def faults(
    profiles: Mapping[str, AvailabilityProfileEntry], names: Mapping[str, Collection[str] | None]
) -> Iterator[Fault]:
    """Yield each fault, with its path in the section.

    *names* has the existing names by ``SELECTORS``; None instead of names disables the check.
    """
    yield from _site_faults(profiles, names["sites"])
    for name, profile in profiles.items():
        if name == DEFAULT:
            yield (name,), f"{quoted(DEFAULT)} is the profile of sites without one; expected another name"
        for key in ("include", "exclude"):
            yield from _selection_faults((name, key), getattr(profile, key), names)
        for service, entry in profile.services.items():
            path = (name, "services", service)
            yield from _selection_faults(path, entry, names)
            yield from _selection_faults((*path, "exclude"), entry.exclude, names)


def _site_faults(
    profiles: Mapping[str, AvailabilityProfileEntry], sites: Collection[str] | None
) -> Iterator[Fault]:
    """Check that the sites exist, and that no two profiles apply to the same site."""
    owners: dict[str, str] = {}
    for name, profile in profiles.items():
        if not profile.sites and "" in owners:
            yield (
                (name,),
                f"it names no sites, as {owners['']} does; expected one profile for all other sites",
            )
        for i, site in enumerate(profile.sites):
            if sites is not None and site not in sites:
                yield (name, "sites", i), f"there is no site {quoted(site)}{suggestion(site, sites)}"
            elif owners.get(site, name) != name:
                yield (name, "sites", i), f"profile {owners[site]} applies to site {quoted(site)} already"
        owners |= {site: name for site in profile.sites or ("",) if site not in owners}


def _selection_faults(
    path: Path, selection: SelectionEntry | None, names: Mapping[str, Collection[str] | None]
) -> Iterator[Fault]:
    for key in SELECTORS if selection else ():
        existing = names[key]
        for i, name in enumerate(getattr(selection, key)):
            if existing is not None and not _exists(key, name, existing):
                message = f"there is no {_SINGULAR[key]} {quoted(name)}{suggestion(name, existing)}"
                yield (*path, key, i), message


def _exists(key: str, name: str, existing: Collection[str]) -> bool:
    if key == "series":
        return name == "*" or any(fnmatchcase(each, name) for each in existing)
    return name in existing
