"""Propose signatures for runs of unknown cause, and preview what a signature would name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.analysis.signatures.active import signature_of
from monitor.analysis.signatures.classifier import Classifier
from monitor.analysis.signatures.failure_texts import text_groups
from monitor.analysis.signatures.proposals import MOST_EXAMPLES, Proposal, propose
from monitor.analysis.signatures.signature import Signature
from monitor.models import FailureSignature, OwnSignature, Run
from monitor.models.failure_signature import UNKNOWN

if TYPE_CHECKING:
    from monitor.models.run import RunQuerySet

PERIOD = timedelta(days=90)
MOST_TEXTS = 1000  # different ones of unknown cause, and as many of other causes
_MOST_SHOWN = 400  # characters of an example


@dataclass(frozen=True)
class Preview:
    """What a signature would match among the failed runs of ``PERIOD``.

    Attributes:
        unknown, series: how many runs of unknown cause, of how many series.
        all_unknown: how many runs of unknown cause there are.
        named: how many runs that other signatures name now, by the name of these signatures.
        examples: some of the texts of unknown cause that it matches.
    """

    unknown: int
    series: int
    all_unknown: int
    named: Sequence[tuple[str, int]]
    examples: Sequence[str]

    @property
    def named_runs(self) -> int:
        return sum(runs for _, runs in self.named)


def proposals(visible: RunQuerySet, now: datetime) -> list[Proposal]:
    """Return the proposals for the runs among *visible* whose cause is unknown.

    A proposal matches no text of any run with another cause, visible or not. Texts that an own signature
    matches are not unknown: their runs are judged again in the background.
    """
    own = Classifier([signature_of(row) for row in OwnSignature.objects.all()])
    groups = text_groups(_recent(visible, now).filter(signature__name=UNKNOWN), MOST_TEXTS)
    unknown = [each for each in groups if not own.matching(each.failure)]
    if not unknown:
        return []
    named = text_groups(_named(now), MOST_TEXTS)
    taken = FailureSignature.objects.values_list("name", flat=True)
    return propose(unknown, [each.failure for each in named], set(taken))


def preview(visible: RunQuerySet, signature: Signature, now: datetime) -> Preview:
    """Return what *signature* would match.

    Runs of unknown cause are those of *visible*; runs that other signatures name are counted whether they
    are visible or not. Its own runs, if it is in use, count as unknown.
    """
    own = {UNKNOWN, signature.name}
    classifier = Classifier([signature])
    unknown = text_groups(_recent(visible, now).filter(signature__name__in=own), MOST_TEXTS)
    matched = [each for each in unknown if classifier.matching(each.failure)]
    named: Counter[int | None] = Counter()
    for each in text_groups(_named(now).exclude(signature__name=signature.name), MOST_TEXTS):
        if classifier.matching(each.failure):
            named[each.signature] += each.runs
    names = FailureSignature.objects.in_bulk([key for key in named if key is not None])
    return Preview(
        unknown=sum(each.runs for each in matched),
        series=len(frozenset[int]().union(*(each.series for each in matched))),
        all_unknown=sum(each.runs for each in unknown),
        named=[(names[key].name, runs) for key, runs in named.most_common() if key is not None],
        examples=[each.message[:_MOST_SHOWN] for each in matched[:MOST_EXAMPLES]],
    )


def _recent(runs: RunQuerySet, now: datetime) -> RunQuerySet:
    return runs.filter(slot__gt=now - PERIOD)


def _named(now: datetime) -> RunQuerySet:
    return _recent(Run.objects.all(), now).exclude(signature=None).exclude(signature__name=UNKNOWN)
