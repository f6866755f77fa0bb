"""What each name of a parameter or field means: one meaning in every operation.

A name that needs another meaning in one place says so there (``Field(description=...)``); better, it gets
another name. ``tests/monitor/api/test_openapi.py`` refuses a name without a description.
"""

from __future__ import annotations

from collections.abc import Mapping

DESCRIPTIONS: Mapping[str, str] = {
    "cursor": "The `next` of the page before; its other parameters stay the same.",
    "end": "The end of the time window, which is not part of it.",
    "fields": "Names of the fields to answer with, separated by commas; by default all.",
    "limit": "The most items on a page.",
    "next": "The `cursor` of the next page; null on the last page.",
    "site": "The name of a site.",
    "series": "The name of a series.",
    "start": "The start of the time window, which is part of it.",
    "state": "The state of a run.",
    "suite": "The name of a suite.",
}
