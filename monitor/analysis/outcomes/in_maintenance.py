"""Tell which failed runs have their slot in planned maintenance of a site of their series."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import (
    BooleanField,
    Case,
    Exists,
    Expression,
    F,
    Func,
    OuterRef,
    Q,
    TextField,
    Value,
    When,
)

from monitor.models import Binding
from monitor.models.run import WITH_SIGNATURE
from monitor.runs.maintenance.windows import planned_windows

if TYPE_CHECKING:
    from monitor.runs.maintenance.times import OpenWindow

Period = tuple[datetime, datetime]  # from its start until just before its end


def failed_in_maintenance(since: datetime, until: datetime) -> Case:
    """Return the expression of runs with slots from *since* to *until* that tells whether each is one.

    The sites of a series are those of its present bindings. Windows that overlap or meet are joined: for each
    site of a failed run, its periods are looked up by the name of the site, and the slot is searched in them.
    """
    everywhere, by_site = joined_periods(planned_windows(since, until))
    in_window = Q(_slot_within(F("slot"), Value(_text(everywhere))))
    if by_site:
        texts = {site: _text(periods) for site, periods in by_site.items()}
        periods = Func(
            Value(json.dumps(texts)),
            F("resource__site__name"),
            template="(%(expressions)s)",
            arg_joiner="::jsonb ->> ",
            output_field=TextField(),
        )
        bound = Binding.objects.filter(series=OuterRef("series")).order_by()
        in_window |= Q(Exists(bound.filter(_slot_within(OuterRef("slot"), periods))))
    return Case(
        When(Q(state__in=WITH_SIGNATURE) & in_window, then=Value(value=True)),
        default=Value(value=False),
        output_field=BooleanField(),
    )


def joined_periods(windows: Iterable[OpenWindow]) -> tuple[list[Period], Mapping[str, list[Period]]]:
    """Return the periods of *windows* that are everywhere, and those of each site, joined and in order."""
    by_site: dict[str, list[Period]] = defaultdict(list)
    for window in windows:
        for site in window.sites or ("",):
            by_site[site].append((window.starts_at, window.ends_at))
    everywhere = _join(by_site.pop("", []))
    return everywhere, {site: _join(periods) for site, periods in by_site.items()}


def _join(periods: Iterable[Period]) -> list[Period]:
    joined: list[Period] = []
    for start, end in sorted(periods):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _text(periods: Iterable[Period]) -> str:
    """Return *periods* as PostgreSQL writes a multirange."""
    return "{" + ",".join(f"[{start.isoformat()},{end.isoformat()})" for start, end in periods) + "}"


def _slot_within(slot: F, periods: Expression) -> Func:
    return Func(
        slot,
        periods,
        template="(%(expressions)s::tstzmultirange)",
        arg_joiner=" <@ ",
        output_field=BooleanField(),
    )
