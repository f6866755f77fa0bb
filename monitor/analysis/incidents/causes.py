"""Decide which causes make series fail now. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

AT = "at"  # the kind of a place: the site at which runs failed
FAILED_IN_A_ROW = 2  # a single failure is no incident, unless an alert was opened by it
HELD_RUNS = 3  # a series moves to another cause after so many failed runs in a row by this cause


class IncidentCause(NamedTuple):
    """What makes series fail: a part of the grid at fault, whatever the texts; else a signature at a site."""

    kind: str
    name: str
    signature: int | None


@dataclass(frozen=True)
class LatestFailure:
    """A series whose latest results failed, since the slot *since*; the last by *signature* at *site*.

    *earlier* has the signatures and sites of the failed runs in a row before it, newest first.
    """

    series: int
    since: datetime
    latest_at: datetime
    signature: int | None
    site: str
    earlier: Sequence[tuple[int | None, str]] = ()


@dataclass(frozen=True)
class ActiveCause:
    """The *failures* by one cause."""

    cause: IncidentCause
    failures: Collection[LatestFailure]

    @property
    def signature(self) -> int | None:
        """The signature of the cause; of a part at fault, the most frequent one."""
        if self.cause.kind in ("", AT):
            return self.cause.signature
        return Counter(failure.signature for failure in self.failures).most_common(1)[0][0]

    @property
    def since(self) -> datetime:
        return min(failure.since for failure in self.failures)


def active_causes(
    failures: Iterable[LatestFailure],
    at_fault: Mapping[int, Sequence[tuple[str, str]]],
    current: Mapping[int, IncidentCause],
) -> list[ActiveCause]:
    """Return the causes of *failures*.

    By series, *at_fault* has the kinds and names of the parts at fault, the latest last, and *current* the
    cause of the open incident.
    """
    by_cause: dict[IncidentCause, list[LatestFailure]] = defaultdict(list)
    for failure in failures:
        parts = at_fault.get(failure.series, ())
        by_cause[cause_of(failure, parts, current.get(failure.series))].append(failure)
    return [ActiveCause(cause, of_cause) for cause, of_cause in by_cause.items()]


def cause_of(
    failure: LatestFailure, at_fault: Sequence[tuple[str, str]], current: IncidentCause | None
) -> IncidentCause:
    """Return the cause of *failure*: a part at fault, else the signature and the site of its latest run.

    A series stays with its *current* cause while its failures alternate between several: as long as one of
    the parts *at_fault* is the current one, or no part is, and fewer than ``HELD_RUNS`` failed runs in a row
    had the same other cause.
    """
    if at_fault:
        parts = [IncidentCause(kind, name, None) for kind, name in at_fault]
        return current if current in parts else parts[-1]
    latest = _by_text(failure.signature, failure.site)
    if current is None:
        return latest
    causes = [latest, *(_by_text(signature, site) for signature, site in failure.earlier)][:HELD_RUNS]
    return latest if causes == [latest] * HELD_RUNS else current


def _by_text(signature: int | None, site: str) -> IncidentCause:
    return IncidentCause(AT if site else "", site, signature)
