"""Profiles of availability: which series count, and how they and the services they test combine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

Needs = Literal["all", "any"]
SELECTORS = ("suites", "probes", "series", "sites", "reporters")
DEFAULT = "default"  # the profile of sites that no other one applies to


@dataclass(frozen=True)
class CountedSeries:
    """What a profile may select a series by."""

    key: int
    name: str
    suite: str
    probe: str
    reporter: str
    sites: frozenset[str]


@dataclass(frozen=True)
class SeriesSelection:
    """Series that match each key that has values; ``series`` are names with ``*`` and ``?``."""

    suites: frozenset[str] = frozenset()
    probes: frozenset[str] = frozenset()
    series: frozenset[str] = frozenset()
    sites: frozenset[str] = frozenset()
    reporters: frozenset[str] = frozenset()

    def covers(self, series: CountedSeries) -> bool:
        return (
            (not self.suites or series.suite in self.suites)
            and (not self.probes or series.probe in self.probes)
            and (not self.reporters or series.reporter in self.reporters)
            and (not self.sites or not self.sites.isdisjoint(series.sites))
            and (not self.series or any(fnmatchcase(series.name, pattern) for pattern in self.series))
        )


@dataclass(frozen=True)
class ServiceRule:
    """A service: the series that test it, and whether all of them have to pass, or any."""

    needs: Needs
    include: SeriesSelection
    exclude: SeriesSelection | None = None


@dataclass(frozen=True)
class ProfileRules:
    """How the availability of a site is computed.

    Attributes:
        needs: whether a site needs all of its services, or any.
        include, exclude: the series that count; None excludes none.
        services: by name; without any, each probe is a service of which any series has to pass.
    """

    needs: Needs = "all"
    include: SeriesSelection = SeriesSelection()
    exclude: SeriesSelection | None = None
    services: Mapping[str, ServiceRule] = field(default_factory=dict)


@dataclass(frozen=True)
class TestedService:
    """A service with the keys of the series that test it."""

    name: str
    needs: Needs
    series: Sequence[int]


def services_of(rules: ProfileRules, series: Iterable[CountedSeries]) -> list[TestedService]:
    """Return the services that *series* test by *rules*, sorted by name; one without series is left out."""
    counted = [
        each
        for each in series
        if rules.include.covers(each) and not (rules.exclude and rules.exclude.covers(each))
    ]
    if not rules.services:
        by_probe: dict[str, list[int]] = {}
        for each in counted:
            by_probe.setdefault(each.probe, []).append(each.key)
        return [TestedService(probe, "any", keys) for probe, keys in sorted(by_probe.items())]
    services = []
    for name, rule in sorted(rules.services.items()):
        keys = [
            each.key
            for each in counted
            if rule.include.covers(each) and not (rule.exclude and rule.exclude.covers(each))
        ]
        if keys:
            services.append(TestedService(name, rule.needs, keys))
    return services


def rules_of(document: Mapping[str, Any]) -> ProfileRules:
    """Return the rules that *document* has, in the form of an entry of a grid file."""
    return ProfileRules(
        needs=document.get("needs", "all"),
        include=_selection(document.get("include") or {}),
        exclude=_selection(document["exclude"]) if document.get("exclude") else None,
        services={name: _service(entry) for name, entry in (document.get("services") or {}).items()},
    )


def _service(entry: Mapping[str, Any]) -> ServiceRule:
    exclude = entry.get("exclude")
    return ServiceRule(entry.get("needs", "any"), _selection(entry), _selection(exclude) if exclude else None)


def _selection(entry: Mapping[str, Any]) -> SeriesSelection:
    return SeriesSelection(**{key: frozenset(entry.get(key, ())) for key in SELECTORS})
