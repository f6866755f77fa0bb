"""Find or create the series of imported runs, with their suite, site and resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction

from monitor.models import Binding, RawReport, Reporter, Resource, Series, Site, Suite
from monitor.models.reporter import HOME
from monitor.models.run import State
from monitor.models.series import IMPORTED
from monitor.runs.imports import formats
from monitor.runs.imports.formats.base import MalformedRecord

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.runs.imports.formats.base import ImportedRun
    from probes.base import Value

ROLE = "target"
NAME_CHARACTERS = 100
SITE_CHARACTERS = 50
# Valid in a grid file, and by RFC 2606 a host that never exists: imported series are never run.
UNREACHABLE = {"kind": "ssh", "host": "unreachable.invalid"}


class ImportRefused(Exception):
    """The runs cannot be stored in their series, suite or site; the message says why."""


@dataclass(frozen=True)
class Target:
    """The place where the runs of one import are stored.

    Attributes:
        kind: the kind of the importer.
        series: the prefix of the names of all series.
        measures: a value of ``Series.kind`` that overrides the kind that the importer gives.

    Raises:
        ImportRefused: a name is invalid.
    """

    kind: str
    series: str
    suite: str = "imported"
    site: str = ""
    measures: str = ""

    def __post_init__(self) -> None:
        _check_name("--series", self.series, NAME_CHARACTERS)
        _check_name("--suite", self.suite, SITE_CHARACTERS)
        if self.site:
            _check_name("--site", self.site, SITE_CHARACTERS)

    @property
    def probe(self) -> str:
        return f"{IMPORTED}{self.kind}"

    def name_of(self, run: ImportedRun) -> str:
        return f"{self.series}-{run.series}" if run.series else self.series

    def check_name(self, run: ImportedRun) -> MalformedRecord | None:
        """Return the error in the name of the run's series; None if the name is valid."""
        name = self.name_of(run)
        if len(name) <= NAME_CHARACTERS:
            return None
        expected = f"a name of at most {NAME_CHARACTERS} characters, including --series"
        return MalformedRecord(run.where, "series", expected, name)


@dataclass
class Destination:
    """A series to which this import adds runs.

    Attributes:
        newest: the slot of the newest passed run that this import has added.
        parameters: the parameters of this run.
    """

    series: Series
    bindings: Mapping[str, list[str]]
    newest: datetime | None = None
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def add(self, run: ImportedRun) -> None:
        if run.outcome == State.PASSED and (self.newest is None or run.slot >= self.newest):
            self.newest, self.parameters = run.slot, run.parameters


def find_or_create(target: Target, run: ImportedRun) -> Destination:
    """Return the series of *run*; create the series and its suite, site and resource if they are missing.

    Raises:
        ImportRefused: a series of this name has another probe, or its resource belongs to another site.
    """
    try:
        return _find_or_create(target, run)
    except IntegrityError:  # another process created it meanwhile
        return _find_or_create(target, run)


def refuse_name_conflicts(target: Target, names: Iterable[str]) -> None:
    """Raise ImportRefused if a series with one of *names* exists and has another probe."""
    for series in Series.objects.filter(name__in=list(names)).exclude(probe=target.probe)[:1]:
        raise ImportRefused(
            f"the series {series.name} exists already with the probe {series.probe}: choose another --series"
        )


def update_parameters(destination: Destination) -> None:
    """Set the parameters of the series to those of its newest passed run.

    Without the update, the current configuration of the series would differ from its last segment.
    """
    series = destination.series
    if destination.newest is None or destination.parameters == series.parameters:
        return
    newest = series.runs.filter(state=State.PASSED).order_by("-slot").first()
    report = RawReport.objects.of(newest) if newest else None
    if report is not None:
        Series.objects.filter(pk=series.pk).update(parameters=dict(report.parsed().parameters))


@transaction.atomic
def _find_or_create(target: Target, run: ImportedRun) -> Destination:
    name = target.name_of(run)
    refuse_name_conflicts(target, [name])
    series = Series.objects.filter(name=name).first()
    if series is None:
        return _create(target, run, name)
    resources = list(Binding.objects.filter(series=series).values_list("resource__name", flat=True))
    return Destination(series, {ROLE: resources} if resources else {})


def _create(target: Target, run: ImportedRun, name: str) -> Destination:
    suite, _ = Suite.objects.get_or_create(name=target.suite)
    home, _ = Reporter.objects.get_or_create(name=HOME)
    series = Series.objects.create(
        name=name,
        suite=suite,
        reporter=home,
        probe=target.probe,
        kind=target.measures or formats.load(target.kind).measures,
        parameters=dict(run.parameters),
        enabled=False,
    )
    resource = _resource(target, run)
    if resource is None:
        return Destination(series, {})
    Binding.objects.create(series=series, role=ROLE, position=0, resource=resource)
    return Destination(series, {ROLE: [resource.name]})


def _resource(target: Target, run: ImportedRun) -> Resource | None:
    """Return the measured resource; None if neither the data nor the options name a resource or a site."""
    name = run.resource or target.site or run.site
    if not name:
        return None
    site_name = target.site or run.site or run.resource
    resource = Resource.objects.select_related("site").filter(name=name).first()
    if resource is None:
        _check_name("site", site_name, SITE_CHARACTERS)
        _check_name("resource", name, SITE_CHARACTERS)
        site, _ = Site.objects.get_or_create(name=site_name)
        return Resource.objects.create(
            name=name,
            site=site,
            scratch="/nonexistent",
            shell=UNREACHABLE,
            transfer={"kind": "ssh"},
            batch={"kind": "fork"},
        )
    if target.site and resource.site.name != target.site:
        raise ImportRefused(
            f"the resource {name} belongs to the site {resource.site.name}, not to {target.site}"
        )
    return resource


def _check_name(label: str, name: str, characters: int) -> None:
    try:
        validate_slug(name)
    except ValidationError:
        raise ImportRefused(f"{label}: expected letters, digits, - and _, got {name!r}") from None
    if len(name) > characters:
        raise ImportRefused(f"{label}: expected at most {characters} characters, got {len(name)}: {name}")
