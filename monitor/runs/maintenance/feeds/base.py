"""The contract of feeds: a feed turns the bytes of a file into announced windows.

A feed is a class named ``Feed`` in a file of its own in this folder. It does not use the depot, and
the current time only as a limit for its own work. It is all or nothing: one invalid entry refuses the file.

Errors::

    FeedError
    |-- UnknownFeed    there is no such format                          permanent
    '-- InvalidFeed    the file is refused, with its line and reason    permanent
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Protocol

MAX_BYTES = 16 * 1024 * 1024
MAX_WINDOWS = 20_000  # of one feed
_TITLE_CHARACTERS, _URL_CHARACTERS, _UID_CHARACTERS = 200, 500, 300


class FeedError(Exception):
    """Root of the errors of feeds."""


class UnknownFeed(FeedError, LookupError):
    pass


class InvalidFeed(FeedError):
    """The file is refused. *line* is the number of the line, 0 if the reason concerns the whole file."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.reason, self.line = reason, line


@dataclass(frozen=True)
class FeedHorizon:
    """The period whose windows are imported: those that are open at some time in [*starts_at*, *ends_at*)."""

    starts_at: datetime
    ends_at: datetime

    def overlaps(self, starts_at: datetime, ends_at: datetime) -> bool:
        return starts_at < self.ends_at and ends_at > self.starts_at


@dataclass(frozen=True)
class AnnouncedWindow:
    """One maintenance window of a feed.

    Attributes:
        uid: identifies the window in its feed; each occurrence of a recurring event has its own.
        line: where the entry begins in the file.
        sites: names that may be sites, as they are written in the feed.
        hosts: the host names under maintenance; empty: the whole site.
    """

    uid: str
    title: str
    starts_at: datetime
    ends_at: datetime
    line: int
    sites: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    url: str = ""


@dataclass(frozen=True)
class FeedContent:
    """The windows of a feed, sorted by start, and the number of entries left out, by reason."""

    windows: tuple[AnnouncedWindow, ...]
    left_out: Counter[str] = field(default_factory=Counter)


class MaintenanceFeed(Protocol):
    """Reads one format of announced maintenance."""

    summary: ClassVar[str]  # the format in one line, for the help

    def parse(self, data: bytes, horizon: FeedHorizon) -> FeedContent:
        """Return the windows of *data* in *horizon*.

        Raises:
            InvalidFeed: the data are malformed, or announce too much.
        """


def check_size(data: bytes) -> None:
    """Raise InvalidFeed for an empty and for a huge file."""
    if not data.strip():
        raise InvalidFeed("the file is empty")
    if len(data) > MAX_BYTES:
        raise InvalidFeed(f"the file is larger than {MAX_BYTES:,} bytes")


def check_window(window: AnnouncedWindow) -> AnnouncedWindow:
    """Return *window* with its texts cut to what the depot stores.

    Raises:
        InvalidFeed: the identifier is missing or too long, or the window does not end after its start.
    """
    if not window.uid:
        raise InvalidFeed("the entry has no identifier", window.line)
    if len(window.uid) > _UID_CHARACTERS:
        raise InvalidFeed(f"the identifier is longer than {_UID_CHARACTERS} characters", window.line)
    if window.ends_at <= window.starts_at:
        raise InvalidFeed(
            f"the end {window.ends_at.isoformat()} is not after the start {window.starts_at.isoformat()}",
            window.line,
        )
    is_link = window.url.startswith(("https://", "http://")) and len(window.url) <= _URL_CHARACTERS
    title = " ".join(window.title.replace("\0", "").split())[:_TITLE_CHARACTERS]
    return replace(window, title=title, url=window.url if is_link else "")


def content_of(
    entries: Iterable[AnnouncedWindow], horizon: FeedHorizon, left_out: Counter[str]
) -> FeedContent:
    """Return the windows of *entries* in *horizon*; entries of one uid are the same window at several hosts.

    Raises:
        InvalidFeed: entries of one uid differ in their times, or there are too many windows.
    """
    merged: dict[str, AnnouncedWindow] = {}
    for entry in entries:
        first = merged.setdefault(entry.uid, entry)
        if (first.starts_at, first.ends_at) != (entry.starts_at, entry.ends_at):
            raise InvalidFeed(f"{entry.uid!r} is in line {first.line} already, with other times", entry.line)
        merged[entry.uid] = replace(first, sites=first.sites | entry.sites, hosts=first.hosts | entry.hosts)
    inside = [window for window in merged.values() if horizon.overlaps(window.starts_at, window.ends_at)]
    if len(inside) > MAX_WINDOWS:
        raise InvalidFeed(f"the feed has more than {MAX_WINDOWS:,} windows")
    counts = left_out + Counter({"outside the imported period": len(merged) - len(inside)})
    return FeedContent(tuple(sorted(inside, key=lambda window: (window.starts_at, window.uid))), counts)
