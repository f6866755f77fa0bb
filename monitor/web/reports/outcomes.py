"""Count the runs of series by outcome and their failures by cause, for the error histograms of the study."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Max, Min, Value

from monitor.analysis.outcomes.counts import RunGroup, SuccessRates, success_rates
from monitor.analysis.outcomes.in_maintenance import failed_in_maintenance
from monitor.models import FailureSignature, Run
from monitor.models.failure_signature import Category
from monitor.models.run import JUDGED, State

if TYPE_CHECKING:
    from monitor.models import Series
    from monitor.models.run import RunQuerySet


@dataclass(frozen=True)
class CauseTotal:
    """The number of *runs* that failed by one cause; *name* is empty for those not classified yet."""

    name: str
    title: str
    category: str
    runs: int


@dataclass(frozen=True)
class ErrorCounts:
    """The failures of a *probe*, the most frequent cause first, and the success rates of its runs."""

    probe: str
    rates: SuccessRates
    causes: Sequence[CauseTotal]

    def by_category(self) -> dict[str, int]:
        """Return the number of failures by category, the most frequent first."""
        counts: Counter[str] = Counter()
        for cause in self.causes:
            counts[cause.category] += cause.runs
        return dict(counts.most_common())


@dataclass(frozen=True)
class Outcomes:
    """The runs of series that passed or failed, in all segments.

    *rates* are by series, *errors* by probe; *first* and *last* are the slots of the first and the last run.
    """

    rates: Mapping[str, SuccessRates]
    errors: Mapping[str, ErrorCounts]
    first: datetime
    last: datetime


def outcomes(series: Collection[Series], since: datetime | None, now: datetime) -> Outcomes | None:
    """Return the outcomes of the runs of *series* from *since* to *now*; None if there are none."""
    runs = judged_runs(series, since, now)
    ends = runs.aggregate(first=Min("slot"), last=Max("slot"))
    if ends["first"] is None:
        return None
    planned = failed_in_maintenance(ends["first"], ends["last"] + timedelta.resolution)
    annotated = runs.annotate(in_maintenance=planned, place=Value(""))
    rows = annotated.values_list("series__name", "place", "state", "signature", "in_maintenance")
    groups = [RunGroup(*row) for row in rows.annotate(runs=Count("*"))]
    signatures = FailureSignature.objects.in_bulk({group.signature for group in groups if group.signature})
    by_series, by_probe = _grouped(groups, {member.name: member.probe for member in series})
    excused = {key: not signature.counts_against_site for key, signature in signatures.items()}
    return Outcomes(
        rates={name: success_rates(own, excused) for name, own in by_series.items()},
        errors={
            probe: ErrorCounts(probe, success_rates(own, excused), causes(own, signatures))
            for probe, own in by_probe.items()
        },
        first=ends["first"],
        last=ends["last"],
    )


def judged_runs(series: Collection[Series], since: datetime | None, now: datetime) -> RunQuerySet:
    """Return the runs of *series* from *since* to *now* that passed or failed, in no order."""
    runs = Run.objects.filter(series__in=series, slot__lte=now, state__in=JUDGED).order_by()
    return runs if since is None else runs.filter(slot__gte=since)


def _grouped(
    groups: Iterable[RunGroup], probe_of: Mapping[str, str]
) -> tuple[Mapping[str, list[RunGroup]], Mapping[str, list[RunGroup]]]:
    by_series: dict[str, list[RunGroup]] = defaultdict(list)
    by_probe: dict[str, list[RunGroup]] = defaultdict(list)
    for group in groups:
        by_series[group.of].append(group)
        by_probe[probe_of[group.of]].append(group)
    return by_series, by_probe


def causes(groups: Iterable[RunGroup], signatures: Mapping[int, FailureSignature]) -> list[CauseTotal]:
    """Return the causes of the failed runs in *groups*, the most frequent first. Pure."""
    counts: Counter[int | None] = Counter()
    for group in groups:
        if group.state != State.PASSED:
            counts[group.signature] += group.runs
    totals = []
    for key, runs in counts.items():
        if key is None:
            totals.append(CauseTotal("", "Not classified yet", Category.UNKNOWN, runs))
            continue
        signature = signatures[key]
        totals.append(CauseTotal(signature.name, _printable(signature.title), signature.category, runs))
    return sorted(totals, key=lambda cause: (-cause.runs, cause.name))


def _printable(title: str) -> str:
    """Replace control characters, which HTML and the text of a PDF cannot have."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in title
    )
