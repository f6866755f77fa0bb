"""A field of a form that filters a page; the component ``filter_form`` shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe


@dataclass(frozen=True)
class FilterField:
    """A field of a filter form: *options*, pairs of value and label, or a text with *suggestions*.

    *empty* says in an empty text what it selects.
    """

    name: str
    label: str
    value: str = ""
    options: Sequence[tuple[str, str]] = ()
    suggestions: Sequence[str] = ()
    empty: str = "all"

    @property
    def suggested(self) -> SafeString:
        """The options of *suggestions*: escaped at once, because there may be a thousand of them."""
        if not self.suggestions:
            return SafeString("")
        joined = escape("\x00".join(self.suggestions)).replace("\x00", "</option><option>")
        return mark_safe(f"<option>{joined}</option>")  # noqa: S308
