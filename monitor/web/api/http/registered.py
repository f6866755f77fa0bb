"""Operations on what the server is made of, such as probes: a list by name, and one by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monitor.web.api.http.lists import ListOut, Page, Sparse, list_items, show_item
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpResponse
    from ninja import Schema


@dataclass(frozen=True)
class Registered:
    """The plug-ins called *noun*: their *names*, and what is shown of each.

    *unknown* is what *show* raises for a name that is not registered.
    """

    noun: str
    names: Callable[[], Sequence[str]]
    show: Callable[[str], dict[str, Any]]
    unknown: type[LookupError]

    def listed(self, query: Page, envelope: type[ListOut]) -> HttpResponse:
        return list_items(query, self.names(), envelope, key=lambda name: (name,), show=self.show)

    def shown(self, query: Sparse, name: str, schema: type[Schema]) -> HttpResponse:
        try:
            item = self.show(name)
        except self.unknown as error:
            raise Refused(404, f"unknown_{self.noun}", str(error), known=self.names()) from None
        return show_item(query, item, schema)
