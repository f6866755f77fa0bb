"""Give each failed run its signature, and judge history again when the signatures have changed."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import lru_cache

from django.db import transaction
from django.db.models import F

from monitor.compression import unpack
from monitor.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.failures import classify_sql
from monitor.failures.classifier import Classifier, FailureText
from monitor.failures.classify_sql import FailedRun
from monitor.failures.shipped import shipped
from monitor.failures.signature import Signature
from monitor.models import Binding, FailureSignature, JudgedHistory
from monitor.models.failure_signature import UNKNOWN, Category, Severity
from monitor.models.run import State
from reporters import report as wire

logger = logging.getLogger(__name__)
BATCH = 1000  # runs per transaction
_AHEAD = timedelta(days=1)  # slots may lie ahead of now by minutes
_MOST_BATCHES = 20  # per call; the next call goes on

_UNKNOWN = Signature(
    name=UNKNOWN,
    title="Unknown",
    category=Category.UNKNOWN,
    severity=Severity.MAJOR,
    counts_against_site=True,
    patterns=(),
    help="No signature matches the text. Read it, and add a signature for it.",
)


def classify_runs(now: datetime, signatures: Sequence[Signature] | None = None) -> int:
    """Classify failed runs that have no signature; return how many runs got another signature.

    If *signatures* (default: the shipped ones) differ from those of the last call, all failed runs up to
    *now* are judged again, newest first. Each batch is a transaction: what a killed process has not
    judged, the next call judges. A concurrent call does nothing.
    """
    signatures = shipped() if signatures is None else signatures
    changed = 0
    for _ in range(_MOST_BATCHES):
        with transaction.atomic():
            if not try_lock_until_commit(AdvisoryLock.FAILURES):
                return changed
            history = _history(tuple(signatures), now)
            runs = classify_sql.unclassified(BATCH)
            if not runs and history.rejudge_before is not None:
                runs = classify_sql.before(history.rejudge_before, BATCH)
                history.rejudge_before = runs[-1].slot if runs else None
                history.save()
            changed += _judge(runs, signatures)
        if not runs:
            break
    return changed


def _history(signatures: tuple[Signature, ...], now: datetime) -> JudgedHistory:
    """Return how far history has been judged by *signatures*; if they are new, store them."""
    digest = _digest(signatures)
    history = JudgedHistory.objects.first()
    if history is None or history.digest != digest:
        _store(signatures)
        is_first = history is None
        history = history or JudgedHistory()
        history.digest, history.rejudge_before = digest, None if is_first else now + _AHEAD
        history.save()
        if not is_first:
            logger.info("the signatures have changed: failed runs are judged again")
    return history


@lru_cache(maxsize=2)
def _digest(signatures: tuple[Signature, ...]) -> str:
    content = [asdict(each) for each in signatures]
    return hashlib.sha256(json.dumps(content, default=sorted).encode()).hexdigest()


def _store(signatures: Collection[Signature]) -> None:
    rows = [
        FailureSignature(
            name=each.name,
            title=each.title,
            category=each.category,
            severity=each.severity,
            counts_against_site=each.counts_against_site,
            help=each.help,
        )
        for each in (*signatures, _UNKNOWN)
    ]
    fields = ["title", "category", "severity", "counts_against_site", "help"]
    FailureSignature.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["name"], update_fields=fields
    )


def _judge(runs: Sequence[FailedRun], signatures: Sequence[Signature]) -> int:
    classifier, keys = _classifier(tuple(signatures)), _keys()
    tools = _tools({run.series_id for run in runs})
    names = []
    for run in runs:
        signature = classifier.classify(_text(run, tools[run.series_id]))
        names.append(UNKNOWN if signature is None else signature.name)
    return classify_sql.write(runs, [keys[name] for name in names])


@lru_cache(maxsize=2)
def _classifier(signatures: tuple[Signature, ...]) -> Classifier:
    return Classifier(signatures)


def _keys() -> Mapping[str, int]:
    return dict(FailureSignature.objects.values_list("name", "pk"))


def _tools(series: Collection[int]) -> Mapping[int, frozenset[str]]:
    """Return the kinds of shells, transfers and batch systems of the resources of each series."""
    kinds: dict[int, set[str]] = defaultdict(set)
    rows = Binding.objects.filter(series__in=series).values_list(
        "series_id", F("resource__shell__kind"), F("resource__transfer__kind"), F("resource__batch__kind")
    )
    for key, *of_resource in rows:
        kinds[key].update(kind for kind in of_resource if kind)
    return defaultdict(frozenset, {key: frozenset(names) for key, names in kinds.items()})


def _text(run: FailedRun, tools: frozenset[str]) -> FailureText:
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
