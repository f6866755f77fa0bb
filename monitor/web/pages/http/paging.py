"""Pages of long lists: the number of the page in a query string."""

from __future__ import annotations

import re


def page_number(text: str) -> int:
    """Return *text* as the number of a page, from 1 on; 1 if *text* is none."""
    return max(int(text), 1) if re.fullmatch("[0-9]{1,6}", text) else 1
