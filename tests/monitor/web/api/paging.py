"""Read a list of the API page by page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client


def all_pages(
    client: Client, url: str, noun: str, *, between: Callable[[], object] = lambda: None, **query: str
) -> list[dict[str, Any]]:
    """Return the items of all pages of two; *between* is called after each page."""
    items: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = client.get(url, {"limit": "2", "cursor": cursor, **query})
        assert answer.status_code == 200, answer.content
        body = answer.json()
        assert set(body) == {noun, "next"}
        assert len(body[noun]) <= 2
        items += body[noun]
        cursor = body["next"]
        between()
    return items


def code(answer: Any) -> tuple[int, str]:
    """Return the status and the code of a problem."""
    assert answer["content-type"] == "application/problem+json", answer.content
    assert answer.json()["detail"]
    return answer.status_code, answer.json()["code"]
