"""Pages of long lists: the number of the page in a query string."""

from __future__ import annotations

import re


def page_number(text: str) -> int:
    """Return *text* as the number of a page; 1 if *text* is not a number."""
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else 1
