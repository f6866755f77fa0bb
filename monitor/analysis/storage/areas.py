"""Storage areas side by side: what each is good for, its health, its figures of merit, its verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from forecasting.sweeps.rate_history import RateTrend
from monitor.analysis.storage.merit import Efficiency, Figure, efficiencies, figures_of_merit
from monitor.analysis.storage.uses import USES, Use, probes
from monitor.models import Binding, Resource, StorageVerdict

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet

    User = AbstractBaseUser | AnonymousUser

GOOD_SHARE = 0.8  # of the best area's rate
CONCERNS = {
    "slower": "slower than usual",
    "variable": "variable",
    "declining": "declining",
    "filling": "slower as it fills",
}


@dataclass(frozen=True)
class AreaUse:
    """The rate of one use of an area, from *series*.

    *share* is the ratio to the best of all areas that the user sees; None without another area.
    """

    use: Use
    series: str
    value: float  # median
    history: Mapping[str, Any]
    settings: Mapping[str, str]
    share: float | None = None

    @property
    def is_good(self) -> bool:
        return self.share is not None and self.share >= GOOD_SHARE

    @property
    def concerns(self) -> list[str]:
        """Return what is unusual about the rate: keys of ``CONCERNS``."""
        states = [self.history["state"]] if self.history["state"] in CONCERNS else []
        return states + [
            concern
            for key, concern in (("by_time", "declining"), ("by_fullness", "filling"))
            if (trend := self.history[key]) and RateTrend(**trend).declines
        ]


@dataclass(frozen=True)
class StorageArea:
    """A resource with its own scratch, and what its series say about it.

    *storage* is its entry in the grid file. *uses* has the best evidence for each use, *further* what other
    series say. *newest* is the slot of the newest run that counts.
    """

    resource: Resource
    storage: Mapping[str, Any]
    uses: Sequence[AreaUse] = ()
    further: Sequence[AreaUse] = ()
    newest: datetime | None = None
    figures: Sequence[Figure] = ()
    efficiencies: Sequence[Efficiency] = ()

    @property
    def medium(self) -> str:
        return str(self.storage.get("medium", ""))

    @property
    def rates(self) -> list[AreaUse]:
        """Return all rates, those of one use together."""
        return sorted((*self.uses, *self.further), key=lambda each: USES.index(each.use))

    @property
    def by_use(self) -> dict[str, AreaUse]:
        return {use.use.name: use for use in self.uses}

    @property
    def good_for(self) -> list[Use]:
        return [use.use for use in self.uses if use.is_good]

    @property
    def concerns(self) -> list[str]:
        """Return what is unusual, the most urgent first, in words."""
        found = {concern for use in (*self.uses, *self.further) for concern in use.concerns}
        return [words for concern, words in CONCERNS.items() if concern in found]

    @property
    def is_judged(self) -> bool:
        """Return whether a rate has enough values to be compared with its own history."""
        return bool(self.concerns) or any(use.history["state"] != "few" for use in self.rates)

    @property
    def health(self) -> str:
        if not self.uses:
            return "not measured"
        return ", ".join(self.concerns) or ("as usual" if self.is_judged else "too few values")


@dataclass(frozen=True)
class SeriesVerdict:
    """What one series says about the area: *content* as in ``StorageVerdict``."""

    series: str
    probe: str
    computed_at: datetime
    content: Mapping[str, Any] = field(default_factory=dict)


def storage_areas(user: User) -> list[StorageArea]:
    """Return the storage areas that *user* may see, by name.

    These are resources with storage in the grid file, and resources that a storage probe has measured.
    """
    return areas_of(StorageVerdict.objects.visible_to(user), Resource.objects.visible_to(user))


def areas_of(verdicts: QuerySet[StorageVerdict], resources: QuerySet[Resource]) -> list[StorageArea]:
    """Return the areas among *resources* by name, with what *verdicts* say about them."""
    uses = _uses_of_series(verdicts)
    at = defaultdict(list)
    bindings = Binding.objects.filter(series__in=uses)
    for series, resource in bindings.values_list("series_id", "resource_id"):
        at[resource].append(series)
    rows = resources.filter(~Q(storage={}) | Q(pk__in=list(at))).select_related("site")
    areas = [_area(resource, [uses[series] for series in at[resource.pk]]) for resource in rows]
    return _beside_each_other(sorted(areas, key=lambda area: area.resource.sort_name))


def series_verdicts(user: User, resource: Resource) -> list[SeriesVerdict]:
    """Return the verdicts of the series at *resource* that *user* may see."""
    return verdicts_at(StorageVerdict.objects.visible_to(user), resource)


def verdicts_at(verdicts: QuerySet[StorageVerdict], resource: Resource) -> list[SeriesVerdict]:
    """Return those of *verdicts* that are about *resource*, by the name of the series."""
    bound = Binding.objects.filter(resource=resource).values("series")
    rows = verdicts.filter(series__in=bound).select_related("series").order_by("series__name")
    return [SeriesVerdict(row.series.name, row.series.probe, row.computed_at, row.content) for row in rows]


@dataclass(frozen=True)
class _SeriesUses:
    series: str
    probe: str
    newest: datetime
    uses: Mapping[str, Any]


def _uses_of_series(verdicts: QuerySet[StorageVerdict]) -> dict[int, _SeriesUses]:
    """Return the rates of all series by key; analyses of sweeps, which are large, are not read."""
    rows = verdicts.values_list(
        "series_id", "series__name", "series__probe", "newest", KeyTransform("uses", "content")
    )
    return {key: _SeriesUses(name, probe, newest, uses or {}) for key, name, probe, newest, uses in rows}


def _area(resource: Resource, series: Iterable[_SeriesUses]) -> StorageArea:
    order = probes()
    best_first = sorted(series, key=lambda each: (order.index(each.probe), each.series))
    uses, further = [], []
    for use in USES:
        found = [
            AreaUse(use, each.series, content["history"]["median"], content["history"], content["settings"])
            for each in best_first
            if (content := each.uses.get(use.name))
        ]
        uses.extend(found[:1])
        further.extend(found[1:])
    newest = max((each.newest for each in best_first), default=None)
    return StorageArea(resource, resource.storage, uses, further, newest)


def _beside_each_other(areas: Sequence[StorageArea]) -> list[StorageArea]:
    """Return *areas* with the share of each rate in the best, and with what follows from other areas."""
    rates = {area.resource.name: {use.use.name: use.value for use in area.uses} for area in areas}
    values: dict[str, list[float]] = defaultdict(list)
    for of_area in rates.values():
        for name, value in of_area.items():
            values[name].append(value)
    return [
        StorageArea(
            area.resource,
            area.storage,
            [replace(use, share=_share(use.value, values[use.use.name])) for use in area.uses],
            area.further,
            area.newest,
            figures_of_merit(area.storage, rates[area.resource.name]),
            efficiencies(
                area.storage,
                rates[area.resource.name],
                rates.get(area.storage.get("parts", {}).get("resource", ""), {}),
            ),
        )
        for area in areas
    ]


def _share(value: float, values: Sequence[float]) -> float | None:
    return value / max(values) if len(values) > 1 else None
