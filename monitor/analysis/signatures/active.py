"""The signatures in use: those that gridcast ships, and one's own of the depot."""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import lru_cache
from operator import attrgetter

from monitor.analysis.signatures.classifier import InvalidPattern, compile_pattern
from monitor.analysis.signatures.shipped import shipped
from monitor.analysis.signatures.signature import COUNTS_AGAINST_SITE, Signature
from monitor.models import FailureSignature, OwnSignature
from monitor.models.failure_signature import UNKNOWN, Category, Origin, Severity

logger = logging.getLogger(__name__)
_UNKNOWN = Signature(
    name=UNKNOWN,
    title="Unknown",
    category=Category.UNKNOWN,
    severity=Severity.MAJOR,
    counts_against_site=True,
    patterns=(),
    help="No signature matches the text. Read it, and add a signature for it.",
)


def active_signatures() -> tuple[Signature, ...]:
    """Return the shipped signatures and those of the depot, of which each replaces a shipped one of its name.

    The depot is read at every call: every process uses a change at once. A row that cannot be used any more
    is left out and logged, so that it does not stop the others.
    """
    own = {row.name: signature_of(row) for row in OwnSignature.objects.all()}
    usable = {name: each for name, each in own.items() if all(map(_is_usable, each.patterns))}
    if unusable := own.keys() - usable.keys():
        logger.error("own signatures with invalid patterns are not used: %s", ", ".join(sorted(unusable)))
    return (*(each for each in shipped() if each.name not in usable), *usable.values())


def signature_of(row: OwnSignature) -> Signature:
    category, counts = Category(row.category), row.counts_against_site
    return Signature(
        name=row.name,
        title=row.title,
        category=category,
        severity=Severity(row.severity),
        counts_against_site=COUNTS_AGAINST_SITE[category] if counts is None else counts,
        patterns=tuple(row.patterns),
        help=row.help,
        stages=frozenset(row.stages),
        tools=frozenset(row.tools),
        precedence=row.precedence,
    )


@lru_cache(maxsize=1000)
def _is_usable(pattern: str) -> bool:
    try:
        compile_pattern(pattern)
    except InvalidPattern:
        return False
    return True


def store(signatures: Collection[Signature]) -> None:
    """Write the rows that runs refer to; rows that are not among *signatures* are marked as withdrawn."""
    origins = dict(OwnSignature.objects.values_list("name", "origin"))
    rows = [
        FailureSignature(
            name=each.name,
            title=each.title,
            category=each.category,
            severity=each.severity,
            counts_against_site=each.counts_against_site,
            help=each.help,
            origin=origins.get(each.name, Origin.SHIPPED),
        )
        for each in sorted((*signatures, _UNKNOWN), key=attrgetter("name"))  # concurrent calls lock in order
    ]
    fields = ["title", "category", "severity", "counts_against_site", "help", "origin"]
    FailureSignature.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["name"], update_fields=fields
    )
    names = [row.name for row in rows]
    others = FailureSignature.objects.exclude(name__in=names).exclude(origin=Origin.WITHDRAWN)
    others.update(origin=Origin.WITHDRAWN)
