"""The form of a maintenance window: once, weekly, or by a cron expression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, tzinfo
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import slugify

from monitor.models import MaintenanceWindow
from monitor.models.hold import MAX_REASON_CHARACTERS
from monitor.runs.ledger.weekly_schedules import WEEKDAYS, parse_weekly, weekly_cron
from monitor.runs.maintenance.announcements import Announcement
from monitor.runs.maintenance.times import MAX_DURATION_SECONDS, WindowTimes, time_errors
from monitor.web.charts.time_range import InvalidRange, page_time

if TYPE_CHECKING:
    from monitor.models import Site

ONCE, WEEKLY, CRON = "once", "weekly", "cron"
REPEATS = ((ONCE, "Once"), (WEEKLY, "Weekly"), (CRON, "By a cron expression"))
MOST_BOXES = 100  # of more sites, names are typed
_HOUR = 3600
# Fields of the form by those of the times; the bounds of a schedule have fields of their own.
_PLACES = {"duration_seconds": "hours", "timezone": "zone"}
_BOUNDS = {"starts_at": "not_before", "ends_at": "not_after"}
_STORED = {place: name for name, place in _BOUNDS.items()}


class MaintenanceForm(forms.Form):
    """*sites* are those that the user may choose; an empty choice is every site, if *may_be_everywhere*.

    *window* is the one that changes; None: a new one.
    """

    title = forms.CharField(max_length=200, required=False)
    name = forms.SlugField(max_length=50, required=False)
    repeats = forms.ChoiceField(choices=REPEATS, widget=forms.RadioSelect, initial=ONCE)
    starts_at = forms.CharField(label="From", required=False, max_length=40)
    ends_at = forms.CharField(label="Until", required=False, max_length=40)
    not_before = forms.CharField(label="No window before", required=False, max_length=40)
    not_after = forms.CharField(label="No window after", required=False, max_length=40)
    days = forms.MultipleChoiceField(
        choices=[(day, day.capitalize()) for day in WEEKDAYS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    at = forms.TimeField(label="Time of day", required=False, input_formats=["%H:%M", "%H:%M:%S"])
    schedule = forms.CharField(label="Cron expression", required=False, max_length=200)
    zone = forms.CharField(label="Time zone", required=False, max_length=50)
    hours = forms.FloatField(
        label="Duration (hours)", required=False, min_value=0, max_value=MAX_DURATION_SECONDS / _HOUR
    )
    reason = forms.CharField(max_length=MAX_REASON_CHARACTERS)

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        sites: Sequence[Site],
        may_be_everywhere: bool,
        clock: tzinfo,
        initial: Mapping[str, Any],
        window: MaintenanceWindow | None = None,
    ) -> None:
        super().__init__(data, initial={**initial})
        self._sites, self._may_be_everywhere, self._clock = sites, may_be_everywhere, clock
        self._window = window
        self.has_boxes = len(sites) <= MOST_BOXES
        self.fields["sites"] = (
            forms.MultipleChoiceField(
                choices=[(site.name, site.name) for site in sites],
                required=False,
                widget=forms.CheckboxSelectMultiple,
            )
            if self.has_boxes
            else forms.CharField(required=False, widget=forms.Textarea({"rows": 4}))
        )

    @property
    def announcement(self) -> Announcement:
        """What the valid form announces."""
        return Announcement(
            self.cleaned_data["title"].strip(), self.cleaned_data["sites"], self.cleaned_data["times"]
        )

    def clean_sites(self) -> list[Site]:
        raw = self.cleaned_data["sites"]
        names = set(raw if isinstance(raw, list) else raw.split())
        chosen = [site for site in self._sites if site.name in names]
        if unknown := sorted(names - {site.name for site in chosen}):
            raise ValidationError(f"There is no site {unknown[0]!r} that you may choose.")
        if not chosen and not self._may_be_everywhere:
            raise ValidationError("Choose at least one site.")
        return chosen

    def clean_starts_at(self) -> datetime | None:
        return self._time("starts_at")

    def clean_ends_at(self) -> datetime | None:
        return self._time("ends_at")

    def clean_not_before(self) -> datetime | None:
        return self._time("not_before")

    def clean_not_after(self) -> datetime | None:
        return self._time("not_after")

    def clean(self) -> dict[str, Any]:
        cleaned = {**(super().clean() or {}), **self.cleaned_data}
        if not self.errors:
            cleaned["times"] = times = self._times(cleaned)
            for place, message in self._time_errors(times, cleaned):
                self.add_error(place, message)
            cleaned["name"] = cleaned["name"] or self._free_name(cleaned)
        return cleaned

    def _times(self, cleaned: Mapping[str, Any]) -> WindowTimes:
        if cleaned["repeats"] == ONCE:
            return WindowTimes(cleaned["starts_at"], cleaned["ends_at"])
        is_weekly = cleaned["repeats"] == WEEKLY and cleaned["days"] and cleaned["at"]
        schedule = weekly_cron(cleaned["days"], cleaned["at"]) if is_weekly else cleaned["schedule"]
        seconds = None if cleaned["hours"] is None else round(cleaned["hours"] * _HOUR)
        bounds = cleaned["not_before"], cleaned["not_after"]
        return WindowTimes(*bounds, schedule, cleaned["zone"] or "UTC", seconds)

    def _time_errors(self, times: WindowTimes, cleaned: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the field and the message of each error of *times*."""
        missing = {
            WEEKLY: (("days", "Choose at least one day."), ("at", "Give the time of day.")),
            CRON: (("schedule", "Give a cron expression, such as 0 8 * * TUE."),),
            ONCE: (("starts_at", "Give the start."), ("ends_at", "Give the end.")),
        }[cleaned["repeats"]]
        absent = [(place, message) for place, message in missing if not cleaned[place]]
        if cleaned["repeats"] != ONCE and times.duration_seconds is None:
            absent.append(("hours", "Give the duration."))
        yield from absent
        if absent:
            return
        places = _PLACES if cleaned["repeats"] == ONCE else {**_PLACES, **_BOUNDS}
        for field, message in time_errors(times):
            place = places.get(field, field)
            if place == "schedule" and cleaned["repeats"] == WEEKLY:
                place = "days"
            yield place, f"{message[:1].upper()}{message[1:]}."

    def _time(self, name: str) -> datetime | None:
        """Return the time in the field *name*; that of the window if the field shows it, to the second."""
        text = self.cleaned_data[name].strip()
        stored: datetime | None = getattr(self._window, _STORED.get(name, name), None)
        if stored is not None and text == local_text(stored, self._clock):
            return stored
        try:
            return page_time(name, text, self._clock)
        except InvalidRange as error:
            raise ValidationError(str(error)) from error

    def _free_name(self, cleaned: Mapping[str, Any]) -> str:
        """Return a name made of the title, or else the reason, that no window has."""
        stem = slugify(cleaned["title"] or cleaned["reason"])[:40].strip("-") or "maintenance"
        taken = set(MaintenanceWindow.objects.filter(name__startswith=stem).values_list("name", flat=True))
        numbered = (f"{stem}-{number}" for number in range(2, len(taken) + 3))
        return next(name for name in (stem, *numbered) if name not in taken)


def initial_values(window: MaintenanceWindow, clock: tzinfo) -> dict[str, Any]:
    """Return what the form of *window* shows, with times in the zone of *clock*."""
    weekly = parse_weekly(window.schedule)
    seconds = window.duration_seconds
    bounds = dict(_BOUNDS) if window.schedule else {name: name for name in _BOUNDS}
    return {
        **{place: local_text(getattr(window, name), clock) for name, place in bounds.items()},
        "title": window.title,
        "sites": [site.name for site in window.sites.all()],
        "repeats": WEEKLY if weekly else CRON if window.schedule else ONCE,
        "days": list(weekly.days) if weekly else [],
        "at": weekly.at if weekly else time(8),
        "schedule": window.schedule,
        "zone": window.timezone,
        "hours": None if seconds is None else float(f"{seconds / _HOUR:.6g}"),
    }


def local_text(at: datetime | None, clock: tzinfo = UTC) -> str:
    """Return *at* as the value of an input of local time."""
    return f"{at.astimezone(clock):%Y-%m-%dT%H:%M}" if at else ""
