"""The series that imported runs go to, with their suite, site and resource: found, or made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction

from monitor.imports import formats
from monitor.imports.formats.base import Malformed
from monitor.models import Binding, RawReport, Reporter, Resource, Series, Site, Suite
from monitor.models.reporter import HOME
from monitor.models.run import State
from monitor.models.series import IMPORTED

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.imports.formats.base import Measured
    from probes.base import Value

ROLE = "target"
NAME_CHARACTERS = 100
SITE_CHARACTERS = 50
# Valid in a grid file, and by RFC 2606 a host that there never is: nothing reaches what was only imported.
UNREACHABLE = {"kind": "ssh", "host": "unreachable.invalid"}


class NotImported(Exception):
    """What is imported cannot go where it should; the message says why."""


@dataclass(frozen=True)
class Target:
    """Where the runs of one import go. *series* is the beginning of the names of all of them; what they tell
    of is what the data usually do, unless *measures* says it."""

    kind: str
    series: str
    suite: str = "imported"
    site: str = ""
    measures: str = ""  # as ``Series.kind``

    def __post_init__(self) -> None:
        """Raise NotImported for a name that nothing can have."""
        _check("--series", self.series, NAME_CHARACTERS)
        _check("--suite", self.suite, SITE_CHARACTERS)
        if self.site:
            _check("--site", self.site, SITE_CHARACTERS)

    @property
    def probe(self) -> str:
        return f"{IMPORTED}{self.kind}"

    def name_of(self, run: Measured) -> str:
        return f"{self.series}-{run.series}" if run.series else self.series

    def wrong_name(self, run: Measured) -> Malformed | None:
        """What is wrong with the name of its series, if anything is."""
        name = self.name_of(run)
        if len(name) <= NAME_CHARACTERS:
            return None
        expected = f"a name of at most {NAME_CHARACTERS} characters, with --series in front"
        return Malformed(run.where, "series", expected, name)


@dataclass
class Destination:
    """A series, and what the newest run that went to it in this import measured."""

    series: Series
    bindings: Mapping[str, list[str]]
    newest: datetime | None = None
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def note(self, run: Measured) -> None:
        if run.outcome == State.PASSED and (self.newest is None or run.slot >= self.newest):
            self.newest, self.parameters = run.slot, run.parameters


def destination(target: Target, run: Measured) -> Destination:
    """The series of *run*; it is made, with all it needs, where it is missing.

    Raises:
        NotImported: there is such a series, but not of this kind; or its resource is elsewhere.
    """
    try:
        return _found_or_made(target, run)
    except IntegrityError:  # somebody else made it just now
        return _found_or_made(target, run)


def refuse_taken(target: Target, names: Iterable[str]) -> None:
    """Raise NotImported where there is a series of one of *names*, but not of this kind."""
    for found in Series.objects.filter(name__in=list(names)).exclude(probe=target.probe)[:1]:
        raise NotImported(
            f"there is a series {found.name} already, of {found.probe}: choose another --series"
        )


@transaction.atomic
def _found_or_made(target: Target, run: Measured) -> Destination:
    name = target.name_of(run)
    refuse_taken(target, [name])
    found = Series.objects.filter(name=name).first()
    if found is None:
        return _made(target, run, name)
    bound = list(Binding.objects.filter(series=found).values_list("resource__name", flat=True))
    return Destination(found, {ROLE: bound} if bound else {})


def _made(target: Target, run: Measured, name: str) -> Destination:
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


def _resource(target: Target, run: Measured) -> Resource | None:
    """What was measured; None where neither the data nor who imports them say it."""
    name = run.resource or target.site or run.site
    if not name:
        return None
    at = target.site or run.site or run.resource
    found = Resource.objects.select_related("site").filter(name=name).first()
    if found is None:
        _check("site", at, SITE_CHARACTERS)
        _check("resource", name, SITE_CHARACTERS)
        site, _ = Site.objects.get_or_create(name=at)
        return Resource.objects.create(
            name=name,
            site=site,
            scratch="/nonexistent",
            shell=UNREACHABLE,
            transfer={"kind": "ssh"},
            batch={"kind": "fork"},
        )
    if target.site and found.site.name != target.site:
        raise NotImported(f"the resource {name} is at the site {found.site.name}, not at {target.site}")
    return found


def settle(one: Destination) -> None:
    """Let the series say what its newest passed run measured: its next run would measure the same."""
    if one.newest is None or one.parameters == one.series.parameters:
        return
    newest = one.series.runs.filter(state=State.PASSED).order_by("-slot").first()
    report = RawReport.objects.of(newest) if newest else None
    if report is not None:
        Series.objects.filter(pk=one.series.pk).update(parameters=dict(report.parsed().parameters))


def _check(what: str, name: str, characters: int) -> None:
    try:
        validate_slug(name)
    except ValidationError:
        raise NotImported(f"{what}: expected letters, digits, - and _, got {name!r}") from None
    if len(name) > characters:
        raise NotImported(f"{what}: expected at most {characters} characters, got {len(name)}: {name}")
