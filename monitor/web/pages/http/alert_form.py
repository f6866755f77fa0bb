"""The form of an alert rule: its threshold and channels are generated from what the plug-ins declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from monitor.analysis.alerts import channels, conditions, reporter_conditions
from monitor.core.units import coarse_seconds
from monitor.models import Reporter, Series, Site, Suite
from monitor.models.alert import CHANGE_RULES
from monitor.models.site import may_manage_everywhere
from monitor.operations.gridfile.alert_entries import CONDITIONS, AlertRuleEntry, Watches
from monitor.web.pages.http.entry_form import NAME, Entries
from monitor.web.pages.http.form_fields import FormField, Kind, model_fields, offered_names, option_field

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.http import QueryDict

    from monitor.analysis.alerts.conditions.base import AlertCondition
    from monitor.analysis.alerts.reporter_conditions.base import ReporterCondition
    from monitor.core.yamlfile.problems import Path

    User = AbstractBaseUser | AnonymousUser

_WATCHES = "Watches"
USE = "use"  # the field that says whether a channel is notified


@dataclass(frozen=True)
class ConditionChoice:
    """A condition that a new rule may have; *subject* is what it judges."""

    name: str
    subject: str
    label: str
    description: str
    range: str


@dataclass(frozen=True)
class ChannelFields:
    """The kinds of the channels in a form: those of the rule, then one of each kind to add."""

    kinds: Sequence[str]
    present: int

    def fields(self) -> list[FormField]:
        return [each for number in range(len(self.kinds)) for each in self._of(number)]

    def listed(self, notify: Mapping[str, Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[int]]:
        """Return the channels of a submitted form as a rule has them, and the number of each in the form."""
        numbers = [
            number for number in range(len(self.kinds)) if self._is_used(number, notify.get(str(number), {}))
        ]
        listed = [
            {
                "kind": self.kinds[number],
                **{key: value for key, value in notify[str(number)].items() if key != USE},
            }
            for number in numbers
        ]
        return listed, numbers

    def _of(self, number: int) -> list[FormField]:
        kind, is_present = self.kinds[number], number < self.present
        group = f"Channel {number + 1}: {kind}" if is_present else f"Add a channel: {kind}"
        at = ("notify", str(number))
        types = channels.load(kind).option_types
        help_text = "Clear it to remove the channel." if is_present else ""
        use = FormField((*at, USE), f"Notify by {kind}", Kind.CHECK, group=group, help=help_text)
        return [use, *(option_field((*at, name), name, types[name], group) for name in types)]

    def _is_used(self, number: int, options: Mapping[str, Any]) -> bool:
        """Return whether a channel is notified; one that is added is, if any of its options is filled in."""
        is_filled = any(value for key, value in options.items() if key != USE)
        return bool(options.get(USE)) or (number >= self.present and is_filled)


def condition_choices() -> list[ConditionChoice]:
    plug_ins: list[tuple[str, str, type[AlertCondition | ReporterCondition]]] = [
        (name, "series", conditions.load(name)) for name in conditions.names()
    ]
    plug_ins += [(name, "reporters", reporter_conditions.load(name)) for name in reporter_conditions.names()]
    return [
        ConditionChoice(
            name,
            subject,
            plug_in.label,
            plug_in.description,
            " to ".join(threshold_text(each, plug_in.unit) for each in (plug_in.least, plug_in.most)),
        )
        for name, subject, plug_in in plug_ins
    ]


def threshold_text(threshold: int, unit: str) -> str:
    """Format the threshold of a condition: ``1 run``, ``10 min``."""
    if unit == "seconds":
        return coarse_seconds(threshold)
    return f"{threshold:,} {unit.removesuffix('s') if threshold == 1 else unit}"


def channel_fields(notify: Sequence[Mapping[str, Any]], posted: QueryDict | None = None) -> ChannelFields:
    """Return the channels of a form: of a rule that has *notify*, or as they were *posted*."""
    kinds = [str(channel.get("kind", "")) for channel in notify]
    if posted is not None:
        kinds = posted.getlist("channels")
    present = [kind for kind in kinds if kind in channels.names()]
    return ChannelFields([*present, *channels.names()], len(present))


def rule_fields(condition: str, user: User, channel_set: ChannelFields, *, is_new: bool) -> list[FormField]:
    """Return the fields of a rule with *condition*; a site admin chooses among its own sites."""
    keys = list(model_fields(AlertRuleEntry, {}, omit={"watches", "notify", *CONDITIONS}))
    is_about_reporters = condition in reporter_conditions.names()
    plug_in = reporter_conditions.load(condition) if is_about_reporters else conditions.load(condition)
    threshold = FormField(
        (condition,),
        "Threshold",
        Kind.NUMBER,
        group="Condition",
        help=plug_in.description,
        unit=plug_in.unit,
        is_required=True,
        is_whole=True,
        minimum=plug_in.least,
        maximum=plug_in.most,
        empty=str(getattr(plug_in, "default", "")),
    )
    return [
        *([NAME] if is_new else []),
        *(each for each in keys if each.path != ("repeat_seconds",)),
        threshold,
        *_watches(user, is_about_reporters=is_about_reporters),
        *(replace(each, group="Messages") for each in keys if each.path == ("repeat_seconds",)),
        *channel_set.fields(),
    ]


def as_form(entry: Mapping[str, Any]) -> Entries:
    """Return *entry* as the form has it: channels by number, each with whether it is used."""
    notify = {str(number): {USE: True, **each} for number, each in enumerate(entry.get("notify", ()))}
    return {**entry, "notify": notify}


def as_entry(entry: Entries, channel_set: ChannelFields) -> Entries:
    """Return the *entry* of a form as a grid file has it; without a condition, it is a fault."""
    listed, _ = channel_set.listed(entry.get("notify", {}))
    return {**entry, "notify": listed}


def place(path: Path, entry: Entries, channel_set: ChannelFields) -> Path:
    """Return the place in the form of the value at *path* of the entry."""
    if path[:1] == ("notify",) and len(path) > 1 and isinstance(path[1], int):
        _, numbers = channel_set.listed(entry.get("notify", {}))
        inner = path[2:] if len(path) > 2 and path[2] != "kind" else (USE,)
        return ("notify", str(numbers[path[1]]), *inner)
    return path


def _watches(user: User, *, is_about_reporters: bool) -> list[FormField]:
    omit = {"suites", "series", "probes"} if is_about_reporters else set()
    sites = Site.objects.visible_to(user)
    if not may_manage_everywhere(user, CHANGE_RULES):
        omit = {"everything", "suites", "series", "probes", "reporters"}
        sites = Site.objects.manageable_by(user, CHANGE_RULES)
    series = Series.objects.visible_to(user)
    rows = {
        "suites": Suite.objects.visible_to(user),
        "sites": sites,
        "series": series,
        "reporters": Reporter.objects.manageable_or_visible_to(user),
    }
    names = {key: offered_names(named) for key, named in rows.items() if key not in omit}
    if "probes" not in omit:
        names["probes"] = list(series.order_by("probe").values_list("probe", flat=True).distinct())
    groups = dict.fromkeys(Watches.model_fields, _WATCHES)
    return list(model_fields(Watches, names, omit=omit, groups=groups, below=("watches",)))
