"""The form of a series: generated from the probe's declaration and from the keys of the grid file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import probes
from monitor.depot.series.planned_changes import MeasuredConfiguration, segment_effect
from monitor.models import Reporter, Resource, Series, Suite
from monitor.models.series import REPORTED_PROBE, STARTS_RUNS
from monitor.operations.gridfile.definition import SeriesDefinition
from monitor.operations.gridfile.format import SeriesEntry
from monitor.web.pages.http.entry_form import NAME, Entries, rows_field
from monitor.web.pages.http.form_fields import FormField, model_fields, offered_names, parameter_field
from probes.base import Probe, ProbeError

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.operations.gridfile.planning import Change

    User = AbstractBaseUser | AnonymousUser

_RESOURCES, _PARAMETERS, _SCHEDULE, _RUNS = "Resources", "Parameters", "Schedule", "Runs"
_GROUPS = {
    **dict.fromkeys(("schedule", "timezone", "starts_at", "ends_at"), _SCHEDULE),
    **dict.fromkeys(("leader", "follows", "delay_seconds", "jitter_seconds"), _SCHEDULE),
    **dict.fromkeys(("retry_schedule", "retry_passes", "exclusive", "exclusive_wait_seconds"), _RUNS),
    **dict.fromkeys(("max_load1", "warm_up_runs", "limit_seconds"), _RUNS),
}
_OWN_FIELDS = {"probe", "kind", "bindings", "parameters", "for", "mesh"}
_OF_REPORTERS = {*STARTS_RUNS, "delay_seconds", "retry_passes", "exclusive_wait_seconds"}
_ANY_ROLE = "host"  # of a series that is reported from outside, whose roles have any names


def series_fields(
    probe: str, user: User, entry: Mapping[str, Any], bound: Mapping[str, int], *, is_new: bool
) -> list[FormField]:
    """Return the fields of a series of *probe*; *bound* is how many resources each role has in the form."""
    plug_in = loaded(probe)
    names = {
        "suite": offered_names(Suite.objects.visible_to(user)),
        "reporter": offered_names(Reporter.objects.manageable_or_visible_to(user)),
        "leader": offered_names(Series.objects.visible_to(user).filter(leader=None).exclude(schedule="")),
    }
    omit = _OWN_FIELDS | (_OF_REPORTERS if probe == REPORTED_PROBE else set())
    keys = list(model_fields(SeriesEntry, names, omit=omit, groups=_GROUPS))
    resources = offered_names(Resource.objects.visible_to(user))
    return [
        *([NAME] if is_new else []),
        *(each for each in keys if not each.group),
        *_roles(plug_in, entry.get("bindings") or {}, bound, resources),
        *_parameters(plug_in),
        *(each for each in keys if each.group),
    ]


def completed(entry: Entries, probe: str, kept: Mapping[str, Any], fields: Sequence[FormField]) -> Entries:
    """Return *entry* with its probe, and with what *kept*, the present entry, has of keys without a field."""
    shown = {each.path[0] for each in fields}
    others = {key: value for key, value in kept.items() if key not in shown and value is not None}
    if kept.get("probe") != probe:  # parameters of another probe
        others.pop("parameters", None)
    return {"bindings": {}, **others, **entry, "probe": probe}


def effects(change: Change) -> list[str]:
    """Return what *change* of a series means for its history and its runs, to be read before it is saved."""
    before, after = change.before, change.after
    if not isinstance(before, SeriesDefinition) or not isinstance(after, SeriesDefinition):
        return []
    texts = [segment_effect(after.name, _measured(before), _measured(after))]
    if before.enabled and not after.enabled:
        texts.append("No further runs start, runs that have not started are dropped, and open alerts end.")
    if (before.schedule, before.timezone) != (after.schedule, after.timezone):
        texts.append("Slots that have not started are planned again by the new schedule.")
    if before.suite != after.suite:
        texts.append(f"Viewers and retention of the suite {after.suite} apply, also to what was measured.")
    if before.reporter != after.reporter:
        texts.append(f"The reporter {after.reporter} runs it from now on.")
    return [text for text in texts if text]


def loaded(probe: str) -> type[Probe] | None:
    """Return the class of *probe*; None if it is reported from outside, imported, or not installed."""
    try:
        return probes.load(probe)
    except ProbeError:
        return None


def _roles(
    plug_in: type[Probe] | None,
    bindings: Mapping[str, Sequence[str]],
    bound: Mapping[str, int],
    resources: Sequence[str],
) -> Iterator[FormField]:
    """Yield a field for each role: a resource in each place, in order."""
    roles = dict.fromkeys(bindings or [_ANY_ROLE]) if plug_in is None else dict(plug_in.roles)
    for name, role in roles.items():
        current = max(len(bindings.get(name, ())), bound.get(name, 0))
        yield rows_field(
            ("bindings", name),
            name.replace("_", " ").capitalize(),
            resources,
            current,
            group=_RESOURCES,
            help=f"{role.description.capitalize()}." if role else "",
            minimum=role.minimum if role else None,
            maximum=role.maximum if role else None,
            is_required=bool(role and role.minimum),
        )


def _parameters(plug_in: type[Probe] | None) -> Iterator[FormField]:
    for name, parameter in (plug_in.parameters if plug_in else {}).items():
        yield parameter_field(name, parameter, _PARAMETERS)


def _measured(series: SeriesDefinition) -> MeasuredConfiguration:
    return MeasuredConfiguration(series.probe, series.parameters, series.bindings)
