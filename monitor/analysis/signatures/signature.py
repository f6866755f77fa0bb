"""A signature: the regular expressions of one cause of failures, and what is known about the cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monitor.models.failure_signature import Category, Severity

# Users' mistakes, their credentials and faults of a probe say nothing about the site.
COUNTS_AGAINST_SITE = {
    category: category not in (Category.USER, Category.CREDENTIAL, Category.PROBE) for category in Category
}


@dataclass(frozen=True)
class Signature:
    """One cause of failures.

    Attributes:
        name: its identity, in lower case with dashes.
        title: what a page calls it.
        counts_against_site: whether such a failure lowers the adjusted success rate of the site.
        patterns: regular expressions in the syntax of RE2; one of them has to match. Letters match in either
            case, ``^`` and ``$`` at every line.
        help: what usually removes the cause.
        stages: stages of a run to which it applies; empty for all.
        tools: kinds of shells, transfers and batch systems to which it applies; empty for all.
        precedence: of several signatures that match, the highest wins.
    """

    name: str
    title: str
    category: Category
    severity: Severity
    counts_against_site: bool
    patterns: tuple[str, ...]
    help: str
    stages: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    precedence: int = 0

    @classmethod
    def of(cls, name: str, entry: Mapping[str, Any]) -> Signature:
        """Return the signature of a valid *entry* of a file; ``loading`` checks entries and names."""
        category, counts = Category(entry["category"]), entry.get("counts_against_site")
        return cls(
            name=name,
            title=entry["title"],
            category=category,
            severity=Severity(entry["severity"]),
            counts_against_site=COUNTS_AGAINST_SITE[category] if counts is None else counts,
            patterns=tuple(entry["patterns"]),
            help=entry.get("help", ""),
            stages=frozenset(entry.get("stages", ())),
            tools=frozenset(entry.get("tools", ())),
            precedence=entry.get("precedence", 0),
        )
