"""The navigation: sections by question, and the entries that pages declare.

A page declares its entries beside its URLs::

    entries = [NavigationEntry("Failures", "Signatures", "signatures", pages=("signature-edit",))]

``SECTIONS`` has the labels in order. A label that no page declares is not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib.auth.models import PermissionsMixin
from django.urls import NoReverseMatch, reverse

from monitor.models.role import reads_measurements

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    Permission = Callable[[AbstractBaseUser | AnonymousUser], bool]


@dataclass(frozen=True)
class NavigationSection:
    """A section of the main navigation with the labels of its entries, in order."""

    label: str
    entries: tuple[str, ...]


SECTIONS = (
    NavigationSection("Status", ("Overview", "Incidents", "Alerts", "Map", "Public status")),
    NavigationSection("Sites", ("Sites", "Storage")),
    NavigationSection("Series", ("Series", "Compare")),
    NavigationSection("Failures", ("Runs", "Causes", "By series, site and path", "Signatures", "Calendar")),
    NavigationSection("Forecasts", ("Ask and rank", "Accuracy")),
    NavigationSection(
        "Operations",
        (
            "Maintenance and pauses",
            "Schedule",
            "Reporters",
            "Alert rules and channels",
            "Webhooks",
            "Settings",
            "Users and roles",
            "Audit",
        ),
    ),
    NavigationSection("Reports", ("Monthly", "Weekly", "Availability", "Recomputations")),
)
ACCOUNT = NavigationSection("Account", ("Account", "Tokens", "Notifications"))
TOOLS = NavigationSection("Tools", ("API", "Help"))
SEARCH = "search"  # the name of the URL that the search field asks, with the text as ``q``


@dataclass(frozen=True)
class NavigationEntry:
    """A page in the navigation.

    Attributes:
        section: the label of its section.
        label: one of the labels of this section.
        url: the name of its URL, which takes no arguments.
        pages: the names of the URLs of further pages that belong to it, such as those of single objects.
        permits: whether a user may open the page.
    """

    section: str
    label: str
    url: str
    pages: tuple[str, ...] = ()
    permits: Permission = reads_measurements


@dataclass(frozen=True)
class NavigationLink:
    """An entry as a page shows it; *current*: ``page`` if it is this page, ``true`` if it leads to it."""

    label: str
    url: str
    current: str = ""


@dataclass(frozen=True)
class ShownSection:
    """A section as a page shows it. *current*: as in ``NavigationLink``."""

    label: str
    url: str
    links: Sequence[NavigationLink]
    current: str = ""


@dataclass(frozen=True)
class Navigation:
    """The navigation of one page for one user.

    Attributes:
        open_section: the section of this page; None if it has none.
        search_url: the address of the search; empty if there is none.
    """

    sections: Sequence[ShownSection]
    account: ShownSection | None
    tools: ShownSection | None
    open_section: ShownSection | None
    search_url: str


def with_permission(name: str) -> Permission:
    """Return whether a user has the permission *name*, as a function of the user."""
    return lambda user: isinstance(user, PermissionsMixin) and user.has_perm(name)


def navigation(
    entries: Sequence[NavigationEntry], user: AbstractBaseUser | AnonymousUser, url_name: str | None
) -> Navigation:
    """Return the navigation that *user* sees on the page called *url_name*."""
    permitted = [entry for entry in entries if entry.permits(user)]
    sections = [shown for each in SECTIONS if (shown := _shown(each, permitted, url_name))]
    account, tools = (_shown(each, permitted, url_name) for each in (ACCOUNT, TOOLS))
    return Navigation(
        sections,
        account,
        tools,
        next((each for each in sections if each.current), None),
        _search_url() if reads_measurements(user) else "",
    )


def _shown(
    section: NavigationSection, entries: Sequence[NavigationEntry], url_name: str | None
) -> ShownSection | None:
    """Return *section* with those of *entries* that belong to it, in its order; None if there are none."""
    own = sorted(
        (entry for entry in entries if entry.section == section.label),
        key=lambda entry: section.entries.index(entry.label),
    )
    links = [NavigationLink(entry.label, reverse(entry.url), _current(entry, url_name)) for entry in own]
    if not links:
        return None
    current = next((link.current for link in links if link.current), "")
    return ShownSection(section.label, links[0].url, links, "true" if current else "")


def _current(entry: NavigationEntry, url_name: str | None) -> str:
    if entry.url == url_name:
        return "page"
    return "true" if url_name in entry.pages else ""


def _search_url() -> str:
    try:
        return reverse(SEARCH)
    except NoReverseMatch:
        return ""
