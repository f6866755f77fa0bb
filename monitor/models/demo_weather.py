"""The weather of the demo's grid: which one its runs met, and since when."""

from __future__ import annotations

from datetime import datetime

from django.db import models


class DemoWeatherQuerySet(models.QuerySet["DemoWeather"]):
    def record(self, profile: str, seed: int, scale: float, now: datetime, *, edition: int) -> DemoWeather:
        """Return the newest weather if it is this one; otherwise record that this one begins *now*."""
        newest = self.first()
        this = (profile, str(seed), scale, edition)
        if newest and (newest.profile, newest.seed, newest.scale, newest.edition) == this:
            return newest
        return self.create(profile=profile, seed=str(seed), scale=scale, edition=edition, since=now)

    def between(self, start: datetime, end: datetime) -> list[DemoWeather]:
        """Return the weathers that runs from *start* to *end* met, oldest first."""
        begun = list(self.filter(since__lte=end).order_by("since", "pk"))
        earlier = sum(weather.since <= start for weather in begun)
        return begun[max(earlier - 1, 0) :]


class DemoWeather(models.Model):
    """The weather of the demo's grid from *since* until the next one.

    *profile* is its name, *seed* its number as text, of any size; *scale* is the number of grid seconds per
    real second. *edition* is that of the program that drew it: the same profile and seed had other runtimes
    in another edition.
    """

    profile = models.CharField(max_length=60)
    seed = models.TextField()
    scale = models.FloatField()
    edition = models.PositiveSmallIntegerField(default=1)
    since = models.DateTimeField()

    objects = DemoWeatherQuerySet.as_manager()

    class Meta:
        ordering = ["-since", "-pk"]
        verbose_name_plural = "weather of the demo"

    def __str__(self) -> str:
        return f"{self.profile}, seed {self.seed}, since {self.since:%Y-%m-%d %H:%M:%S}"
