"""Give each failed run its signature, and judge history again when the signatures have changed."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import lru_cache

from django.db import transaction

from monitor.analysis.signatures import classify_sql
from monitor.analysis.signatures.active import active_signatures, store
from monitor.analysis.signatures.classifier import classifier_of
from monitor.analysis.signatures.classify_sql import FailedRun
from monitor.analysis.signatures.failure_texts import text_of, tools_of
from monitor.analysis.signatures.signature import Signature
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import FailureSignature, JudgedHistory
from monitor.models.failure_signature import UNKNOWN

logger = logging.getLogger(__name__)
BATCH = 1000  # runs per transaction
_AHEAD = timedelta(days=1)  # slots may lie ahead of now by minutes
_MOST_BATCHES = 20  # per call; the next call goes on


def classify_runs(now: datetime, signatures: Sequence[Signature] | None = None) -> int:
    """Classify failed runs that have no signature; return how many runs got another signature.

    If *signatures* (default: the shipped ones and one's own) differ from those of the last call, all failed
    runs up to *now* are judged again, newest first. Each batch is a transaction: what a killed process has
    not judged, the next call judges. A concurrent call does nothing.
    """
    changed = 0
    for _ in range(_MOST_BATCHES):
        with transaction.atomic():
            if not try_lock_until_commit(AdvisoryLock.FAILURES):
                return changed
            present = tuple(active_signatures() if signatures is None else signatures)
            history = _history(present, now)
            runs = classify_sql.unclassified(BATCH)
            if not runs and history.rejudge_before is not None:
                runs = classify_sql.before(history.rejudge_before, BATCH)
                history.rejudge_before = runs[-1].slot if runs else None
                history.save()
            changed += _judge(runs, present)
        if not runs:
            break
    return changed


def _history(signatures: tuple[Signature, ...], now: datetime) -> JudgedHistory:
    """Return how far history has been judged by *signatures*; if they are new, store them."""
    digest = _digest(signatures)
    history = JudgedHistory.objects.first()
    if history is None or history.digest != digest:
        store(signatures)
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


def _judge(runs: Sequence[FailedRun], signatures: Sequence[Signature]) -> int:
    classifier, keys = classifier_of(tuple(signatures)), _keys()
    tools = tools_of({run.series_id for run in runs})
    names = []
    for run in runs:
        signature = classifier.classify(text_of(run, tools[run.series_id]))
        names.append(UNKNOWN if signature is None else signature.name)
    return classify_sql.write(runs, [keys[name] for name in names])


def _keys() -> Mapping[str, int]:
    return dict(FailureSignature.objects.values_list("name", "pk"))
