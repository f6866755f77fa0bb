"""Answers of list operations: a page of a list, and the cursor of the next page.

A list operation declares its query, a ``Page`` with the filters of the list, and its answer, a ``ListOut``
with one more field, the noun::

    class SiteList(ListOut):
        sites: list[SiteOut]

    @router.get("/sites", response=SiteList, operation_id="list_sites", summary="List sites")
    def list_sites(request: HttpRequest, query: Query[Page]) -> HttpResponse:
        return list_rows(query, Site.objects.visible_to(request.user), SiteList, order=["sort_name"])

``order`` names columns that are unique together and never null; a page begins behind the last row of the page
before (keyset), so no page costs more than the first. ``list_items`` does the same for a sorted sequence.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import partial, reduce
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import msgspec
from django.core.signing import BadSignature, Signer
from django.db.models import Model, Q
from django.http import HttpResponse
from ninja import Schema
from pydantic import BaseModel, Field

from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.db.models import QuerySet

USUAL_LIMIT, MOST_LIMIT = 100, 1000
MOST_CHARACTERS = 2000  # of a cursor, and of the names in *fields*
# With *fields*, an answer has not all fields that its schema requires: it is of another media type.
SPARSE_JSON = "application/vnd.gridcast.fields+json"

Item = TypeVar("Item")
Row = TypeVar("Row", bound=Model)


class Sparse(BaseModel):
    """Query parameter of operations that answer with some of the fields only."""

    fields: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""


class Page(Sparse):
    """Query parameters of every list operation; a subclass adds the filters of its list."""

    limit: Annotated[int, Field(ge=1, le=MOST_LIMIT)] = USUAL_LIMIT
    cursor: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""


class ListOut(Schema):
    """A page of a list."""

    next: str | None


def list_rows(
    query: Page,
    rows: QuerySet[Row],
    envelope: type[ListOut],
    *,
    order: Sequence[str],
    show: Callable[[Row], Any] | None = None,
) -> HttpResponse:
    """Answer with the page of *rows*, sorted by *order*, that *query* asks for.

    *show* returns the item of a row, a schema or its fields; by default the row's attributes are read.
    """
    salt = f"{envelope.__name__}:{','.join(order)}"
    if query.cursor:
        rows = rows.filter(_behind(order, _read_cursor(query.cursor, salt)))
    page = list(rows.order_by(*order)[: query.limit + 1])
    return _answer(query, page, envelope, partial(_key_of_row, order), salt, show)


def list_items(
    query: Page,
    items: Iterable[Item],
    envelope: type[ListOut],
    *,
    key: Callable[[Item], tuple[Any, ...]],
    show: Callable[[Item], Any] | None = None,
) -> HttpResponse:
    """Answer with the page that *query* asks for of *items*, sorted by *key*, which is unique."""
    salt = f"{envelope.__name__}:key"
    items = sorted(items, key=key)
    if query.cursor:
        last = _read_cursor(query.cursor, salt)
        items = (item for item in items if key(item) > last)
    return _answer(query, list(islice(items, query.limit + 1)), envelope, key, salt, show)


def list_named(
    query: Page, named: Callable[[str, int], Sequence[Any]], envelope: type[ListOut], *, key: str
) -> HttpResponse:
    """Answer with a page of items that *named* reads: so many, sorted by their field *key*, behind a name."""
    salt = f"{envelope.__name__}:{key}"
    after = _read_cursor(query.cursor, salt)[0] if query.cursor else ""
    return _answer(query, named(after, query.limit + 1), envelope, lambda item: (item[key],), salt, None)


def show_item(query: Sparse, item: Any, schema: type[Schema]) -> HttpResponse:
    """Answer with one *item*, with the fields that *query* asks for."""
    body = _fields_of(item, schema, None, _wanted(query.fields, schema))
    return _json(body, is_sparse=bool(query.fields))


def _answer(
    query: Page,
    page: Sequence[Item],
    envelope: type[ListOut],
    key: Callable[[Item], tuple[Any, ...]],
    salt: str,
    show: Callable[[Item], Any] | None,
) -> HttpResponse:
    """Answer with *page*, which has an item more than asked for if another page follows."""
    noun, schema = _contents(envelope)
    wanted = _wanted(query.fields, schema)
    listed = page[: query.limit]
    following = _cursor(key(listed[-1]), salt) if len(page) > query.limit else None
    items = [_fields_of(item, schema, show, wanted) for item in listed]
    return _json({noun: items, "next": following}, is_sparse=bool(wanted))


def _contents(envelope: type[ListOut]) -> tuple[str, type[Schema]]:
    """Return the noun of the list and the schema of its items."""
    ((noun, field),) = ((name, field) for name, field in envelope.model_fields.items() if name != "next")
    return noun, get_args(field.annotation)[0]


def _wanted(fields: str, schema: type[Schema]) -> set[str] | None:
    """Return the names in *fields*; None means all. Raises Refused if *schema* lacks one of them."""
    if not fields:
        return None
    names = fields.split(",")
    unknown = [name for name in names if name not in schema.model_fields]
    if unknown or len({*names}) < len(names):
        problem = f"there is no field {unknown[0][:100]!r}" if unknown else "a field is named twice"
        raise Refused(422, "invalid", f"fields: {problem}", known=[*schema.model_fields])
    return {*names}


def _fields_of(
    item: Any, schema: type[Schema], show: Callable[[Any], Any] | None, wanted: set[str] | None
) -> dict[str, Any]:
    shown = show(item) if show else item
    if isinstance(shown, Mapping):
        return {name: value for name, value in shown.items() if wanted is None or name in wanted}
    model = shown if isinstance(shown, schema) else schema.from_orm(shown)
    return model.model_dump(mode="json", include=wanted)


def _json(body: Mapping[str, Any], *, is_sparse: bool) -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(body), content_type=SPARSE_JSON if is_sparse else "application/json"
    )


def _behind(order: Sequence[str], last: Sequence[Any]) -> Q:
    """Return the condition of the rows behind the row with the values *last* in the columns *order*.

    The first column is also bounded by itself: a database reads such a range from an index.
    """
    columns = [(name.lstrip("-"), "lt" if name.startswith("-") else "gt") for name in order]
    (first, way), start = columns[0], last[0]
    steps = (
        Q(**dict(zip((name for name, _ in columns[:depth]), last, strict=False)), **{f"{name}__{way}": value})
        for depth, ((name, way), value) in enumerate(zip(columns, last, strict=True))
    )
    return Q(**{f"{first}__{way}e": start}) & reduce(Q.__or__, steps)


def _key_of_row(order: Sequence[str], row: Any) -> tuple[Any, ...]:
    """Return the values of the columns *order* of *row*; ``series__name`` is an attribute of its series."""
    return tuple(reduce(getattr, name.lstrip("-").split("__"), row) for name in order)


# Cursors are signed, so a value that is read from one has the type of its column.
_KINDS: Mapping[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "time": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "uuid": (uuid.UUID, str, uuid.UUID),
}


def _cursor(values: Sequence[Any], salt: str) -> str:
    return Signer(salt=salt).sign_object([_packed(value) for value in values])


def _packed(value: Any) -> Any:
    for kind, (python_type, pack, _) in _KINDS.items():
        if isinstance(value, python_type):
            return {kind: pack(value)}
    return value


def _read_cursor(cursor: str, salt: str) -> tuple[Any, ...]:
    try:
        values = Signer(salt=salt).unsign_object(cursor)
    except (BadSignature, ValueError, UnicodeError):
        raise Refused(
            422, "invalid", "cursor: expected the value of next of an earlier answer of this list"
        ) from None
    return tuple(_unpacked(value) for value in values)


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, packed),) = value.items()
    return _KINDS[kind][2](packed)
