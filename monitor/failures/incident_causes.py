"""Decide which causes make series fail now. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

AT = "at"  # the kind of a place: the site at which runs failed
FAILED_IN_A_ROW = 2  # a single failure is no incident


class IncidentCause(NamedTuple):
    """What makes series fail: a part of the grid at fault, whatever the texts; else a signature at a site."""

    kind: str
    name: str
    signature: int | None


@dataclass(frozen=True)
class LatestFailure:
    """A series whose latest results failed, since the slot *since*; the last by *signature* at *site*."""

    series: int
    since: datetime
    latest_at: datetime
    signature: int | None
    site: str


@dataclass(frozen=True)
class ActiveCause:
    """The *failures* by one cause; *signature* is the most frequent one."""

    cause: IncidentCause
    signature: int | None
    failures: Collection[LatestFailure]

    @property
    def since(self) -> datetime:
        return min(failure.since for failure in self.failures)


def active_causes(
    failures: Iterable[LatestFailure], at_fault: Mapping[int, tuple[str, str]]
) -> list[ActiveCause]:
    """Return the causes of *failures*; *at_fault* has the kind and name of the part at fault by series."""
    by_cause: dict[IncidentCause, list[LatestFailure]] = defaultdict(list)
    for failure in failures:
        if failure.series in at_fault:
            cause = IncidentCause(*at_fault[failure.series], None)
        else:
            cause = IncidentCause(AT if failure.site else "", failure.site, failure.signature)
        by_cause[cause].append(failure)
    return [
        ActiveCause(cause, Counter(each.signature for each in of_cause).most_common(1)[0][0], of_cause)
        for cause, of_cause in by_cause.items()
    ]
