"""The changes of a request or command, noted where they are made, for its event in the audit record."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

MOST_CHANGES = 100  # in one event; a grid file may change thousands of series
MOST_CHARACTERS = 2_000  # of a value before or after


@dataclass
class Trail:
    """The changes of one request or command."""

    changes: list[dict[str, Any]] = field(default_factory=list)
    omitted: int = 0

    def as_json(self) -> list[dict[str, Any]]:
        omitted = [{"kind": "more", "name": f"{self.omitted} further changes"}] if self.omitted else []
        return [*self.changes, *omitted]


_trail: ContextVar[Trail | None] = ContextVar("audit_trail", default=None)


@contextlib.contextmanager
def audit_trail() -> Iterator[Trail]:
    """Collect the changes that are noted in the block."""
    opened = Trail()
    token = _trail.set(opened)
    try:
        yield opened
    finally:
        _trail.reset(token)


def note(kind: str, name: str, *, before: object = None, after: object = None) -> None:
    """Note that the object *name* of this *kind* changed; without an open trail, do nothing.

    The values are converted to JSON. They must contain no secret.
    """
    opened = _trail.get()
    if opened is None:
        return
    if len(opened.changes) >= MOST_CHANGES:
        opened.omitted += 1
        return
    opened.changes.append(
        {"kind": kind, "name": name[:200], "before": _value(before), "after": _value(after)}
    )


class _Encoder(DjangoJSONEncoder):
    """Writes what JSON has no form for as text."""

    def default(self, o: object) -> Any:
        try:
            return super().default(o)
        except TypeError:
            return str(o)


def _value(value: object) -> Any:
    text = json.dumps(value, cls=_Encoder).replace("\\u0000", "")
    return json.loads(text) if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
