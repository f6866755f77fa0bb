"""What failed runs say: the text of each, and the texts of many, each once."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Aggregate, Count, F, Max, Min, UUIDField
from django.db.models.functions import Left

from monitor.analysis.signatures import classify_sql
from monitor.analysis.signatures.classifier import MOST_CHARACTERS, FailureText
from monitor.analysis.signatures.classify_sql import FailedRun
from monitor.analysis.signatures.text_group import TextGroup
from monitor.core.compression import unpack
from monitor.models import Binding
from monitor.models.run import WITH_SIGNATURE, State
from reporters import report as wire

if TYPE_CHECKING:
    from monitor.models.run import RunQuerySet

logger = logging.getLogger(__name__)
_COMPARED_CHARACTERS = 1000  # of the ledger's reason: runs with the same beginning have the same text
_PLACE = re.compile(r"^(?:warm-up \d+ of \d+: )?[\w-]+(?: at \S+)? (?:failed|broke|ran out of time): ")


class _LatestRun(Aggregate):
    """The id of the run with the latest slot."""

    template = "(array_agg(%(expressions)s DESC))[1]"
    arg_joiner = " ORDER BY "
    output_field = UUIDField()


def text_groups(runs: RunQuerySet, most: int) -> list[TextGroup]:
    """Return the texts of the failed runs among *runs*, each once, at most *most*, the latest first."""
    failed = runs.filter(state__in=WITH_SIGNATURE).order_by()
    grouped = failed.values("signature", "stage", text=Left("reason", _COMPARED_CHARACTERS)).annotate(
        run=_LatestRun(F("id"), F("slot")),
        runs=Count("*"),
        series_keys=ArrayAgg("series", distinct=True),
        first=Min("slot"),
        latest=Max("slot"),
    )
    rows = list(grouped.order_by("-latest", "run")[:most])
    failures = _texts({row["run"]: row["latest"] for row in rows})
    return [_group(row, failures[row["run"]]) for row in rows if row["run"] in failures]


def _group(row: Mapping[str, Any], failure: FailureText) -> TextGroup:
    bounded = replace(
        failure, message=failure.message[:MOST_CHARACTERS], stderr_tail=failure.stderr_tail[-MOST_CHARACTERS:]
    )
    return TextGroup(
        failure=bounded,
        message=_PLACE.sub("", bounded.message, count=1),
        signature=row["signature"],
        runs=row["runs"],
        series=frozenset(row["series_keys"]),
        first=row["first"],
        latest=row["latest"],
    )


def _texts(slots: Mapping[UUID, datetime]) -> dict[UUID, FailureText]:
    """Return the text of each run; *slots* has its slot by its id."""
    runs = classify_sql.by_id(slots)
    tools = tools_of({run.series_id for run in runs})
    return {run.id: text_of(run, tools[run.series_id]) for run in runs}


def tools_of(series: Collection[int]) -> Mapping[int, frozenset[str]]:
    """Return the kinds of shells, transfers and batch systems of the resources of each series."""
    kinds: dict[int, set[str]] = defaultdict(set)
    rows = Binding.objects.filter(series__in=series).values_list(
        "series_id", F("resource__shell__kind"), F("resource__transfer__kind"), F("resource__batch__kind")
    )
    for key, *of_resource in rows:
        kinds[key].update(kind for kind in of_resource if kind)
    return defaultdict(frozenset, {key: frozenset(names) for key, names in kinds.items()})


def text_of(run: FailedRun, tools: frozenset[str]) -> FailureText:
    """Return what the report of *run* says; without a readable report, what the ledger keeps of it.

    The ledger's reason for a broken run names the stage that broke; its report has only the exception.
    """
    if run.packing is not None and run.packed is not None and run.state != State.BROKEN:
        try:
            failure = wire.from_json(unpack(run.packing, run.packed)).failure
        except (wire.ReportError, ValueError) as error:
            logger.warning("cannot read the report of run %s: %s", run.id, error)
        else:
            if failure is not None:
                return FailureText(
                    failure.message, failure.stage, failure.exit_status, failure.stderr_tail, tools
                )
    return FailureText(run.reason, run.stage, tools=tools)
