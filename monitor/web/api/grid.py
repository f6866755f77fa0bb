"""Entries of the grid one at a time, as in a grid file: read, defined, tried and deleted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from django.http import HttpResponse
from ninja import Path, Query, Router, Schema
from pydantic import AfterValidator, Field, StringConstraints

from monitor.core.yamlfile.problems import describe_key
from monitor.models import AlertRule, Resource, Series, Site, Suite
from monitor.models.alert import CHANGE_RULES
from monitor.models.site import may_manage_everywhere, may_manage_somewhere
from monitor.models.token import MANAGE
from monitor.operations.gridfile import entries
from monitor.operations.gridfile.entries import EntryChanged, EntryError, EntryInUse
from monitor.operations.gridfile.planning import Change, describe
from monitor.operations.gridfile.problems import NOUNS
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_in_scope
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest

    from monitor.core.yamlfile.problems import Fault
    from monitor.operations.gridfile.definition import Definition

router = Router(tags=["grid"])

MOST_FAULTS = 10  # in one answer
_VERSION_CHARACTERS = 16
EntryName = Annotated[str, StringConstraints(pattern=r"^[-a-zA-Z0-9_]+$", max_length=100)]
Operation = Callable[..., HttpResponse]
Version = Annotated[str, StringConstraints(max_length=_VERSION_CHARACTERS)]


def _storable(entry: dict[str, Any]) -> dict[str, Any]:
    """Return *entry*; raise ValueError if it has a number that is not finite, or a lone surrogate."""
    try:
        json.dumps(entry, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise ValueError("expected texts of Unicode characters, got a lone surrogate") from None
    return entry


class GridEntryOut(Schema):
    """An entry of the grid, with all defaults. *version* changes whenever the entry does."""

    name: str
    version: str = Field(description="What to send to change this state only.", examples=["9b1f2c3d4e5f6071"])
    entry: dict[str, Any] = Field(
        description="The keys of the section of a grid file (docs/grid-file-reference.md).",
        examples=[{"title": "Main suite"}],
    )


class GridEntryIn(Body):
    """An entry as in a grid file. Keys that are left out have their defaults."""

    entry: Annotated[dict[str, Any], AfterValidator(_storable)] = Field(
        description="The keys of the section of a grid file (docs/grid-file-reference.md).",
        examples=[{"title": "Main suite"}],
    )
    version: Version | None = Field(
        None,
        description="The version that you saw; another one is not replaced. Empty: the entry has to be new.",
        examples=[None],
    )
    is_dry_run: bool = Field(
        False, description="Whether to check the entry and tell the changes only.", examples=[False]
    )


class GridEntryChanged(GridEntryOut):
    """An entry as it is now, or would be, and what changed."""

    changes: list[str] = Field(description="The keys that changed.", examples=[["title: unset -> Main"]])


class RemovalQuery(Schema):
    """*version*: the version that you saw; another one is not deleted."""

    version: Version | None = Field(None, description="The version that you saw.", examples=[None])


@dataclass(frozen=True)
class Section:
    """A section of the grid file whose entries are defined here, and the rights that this needs.

    *name* and *example* are those of the documentation; *loss* says what goes with an entry.
    """

    noun: str
    model: type[Model]
    name: str
    example: Mapping[str, Any]
    loss: str = "Another definition must not refer to it."

    @property
    def singular(self) -> str:
        return NOUNS[self.noun]

    def visible(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model.objects.visible_to(request.user)  # type: ignore[attr-defined]
        return rows

    def check_permitted(self, request: HttpRequest, action: str, name: str) -> None:
        """Raise Refused unless the caller may *action* the entry *name*.

        The answer to a caller without the permission does not depend on whether there is such an entry.
        """
        require_in_scope(request, MANAGE)
        if self.noun == "alerts":
            is_permitted = may_manage_somewhere(request.user, CHANGE_RULES)
        else:
            permission = f"monitor.{action}_{self.singular}"
            is_permitted = may_manage_everywhere(request.user, permission)
        exists = self.model.objects.filter(name=name).exists()  # type: ignore[attr-defined]
        if is_permitted and exists and not self.visible(request).filter(name=name).exists():
            raise _unknown(self, name)
        if not is_permitted or (exists and not self.is_permitted(request, name)):
            raise Refused(403, "not_allowed", f"your roles or your token do not permit this {self.singular}")

    def is_permitted(self, request: HttpRequest, name: str) -> bool:
        rows = self.visible(request)
        if self.noun == "alerts":
            rows = AlertRule.objects.manageable_by(request.user)
        return bool(rows.filter(name=name).exists())


SECTIONS = (
    Section("sites", Site, "ncsa", {"title": "CACR, Pasadena", "latitude": 34.14, "longitude": -118.13}),
    Section(
        "resources",
        Resource,
        "ncsa-login",
        {
            "site": "ncsa",
            "scratch": "/scratch/gridcast",
            "shell": {"kind": "ssh", "host": "login.example.org"},
            "transfer": {"kind": "ssh"},
        },
    ),
    Section("suites", Suite, "main", {"title": "Nightly", "keep_samples_days": 400}),
    Section(
        "series",
        Series,
        "circle-main",
        {
            "suite": "main",
            "probe": "circle",
            "bindings": {"ring": ["ncsa-login", "sdsc-login"]},
            "schedule": "H * * * *",
        },
        "All that it measured is deleted, too; with `enabled: false` it starts no more runs and keeps it. A"
        " series with many runs is deleted in the background: 202, and `Location` shows how far it is.",
    ),
    Section(
        "alerts",
        AlertRule,
        "main-failures",
        {"failures_in_row": 3, "watches": {"suites": ["main"]}, "notify": [{"kind": "log"}]},
        "Its alerts are deleted, too; with `enabled: false` they stay.",
    ),
)


def _show(section: Section) -> Operation:
    def show(request: HttpRequest, name: EntryName, query: Query[Sparse]) -> HttpResponse:
        definition = _found(section, name)
        return show_item(query, _shown(section, name, definition, request.user), GridEntryOut)

    show.__doc__ = (
        "Only users who may change the entry may read it, because it may contain addresses. Operators and the"
        " author of an alert rule get the whole URLs of its channels, other users only their origins."
    )
    return show


def _define(section: Section) -> Operation:
    def define(request: HttpRequest, name: EntryName, order: GridEntryIn) -> HttpResponse:
        before: Definition | None = subject_of(request)
        _check_version(section, name, before, order.version)
        checked = entries.check(section.noun, name, order.entry, request.user)
        if checked.foreign:
            raise Refused(403, "not_allowed", _texts(checked.foreign))
        if checked.definition is None:
            raise _invalid(checked.faults)
        readable = entries.readable(before, request.user)
        change = Change(section.noun, readable, checked.definition)
        if not order.is_dry_run:
            _save(section, before, checked.definition, request)
        answer = GridEntryChanged(
            **_shown(section, name, checked.definition, None),
            changes=[describe(each) for each in change.values()],
        )
        status = 201 if before is None and not order.is_dry_run else 200
        return created(answer, status=status, location=f"/grid/{section.noun}/{name}")

    define.__doc__ = "201 if it is new. With *is_dry_run*, it is checked and nothing is stored."
    return define


def _delete(section: Section) -> Operation:
    def delete(request: HttpRequest, name: EntryName, query: Query[RemovalQuery]) -> HttpResponse:
        before = _found(section, name)
        _check_version(section, name, before, query.version)
        try:
            seen, who = entries.seen_entry(section.noun, before), request.user.get_username()
            is_gone = entries.remove(section.noun, name, seen, who=who)
        except EntryInUse as error:
            raise Refused(409, "in_use", str(error)) from None
        except EntryChanged as error:
            raise Refused(409, "changed", str(error)) from None
        if not is_gone:
            return HttpResponse(status=202, headers={"Location": f"/api/v1/series/{name}/deletion"})
        return HttpResponse(status=204)

    delete.__doc__ = section.loss
    return delete


def _permitted(section: Section, action: str) -> Callable[..., None]:
    def check(request: HttpRequest, name: str) -> None:
        section.check_permitted(request, action, name)

    return check


def _definable(section: Section) -> Callable[..., Definition | None]:
    def find(request: HttpRequest, name: str) -> Definition | None:
        before = entries.find(section.noun, name)
        section.check_permitted(request, "add" if before is None else "change", name)
        return before

    return find


def _save(section: Section, before: Definition | None, definition: Definition, request: HttpRequest) -> None:
    try:
        entries.save(
            section.noun,
            entries.seen_entry(section.noun, before),
            definition,
            author=request.user,
            is_permitted=lambda: section.is_permitted(request, definition.name),
        )
    except EntryChanged as error:
        raise Refused(409, "changed", str(error)) from None
    except EntryError as error:
        raise Refused(403, "not_allowed", str(error)) from None


def _found(section: Section, name: str) -> Definition:
    definition = entries.find(section.noun, name)
    if definition is None:
        raise _unknown(section, name)
    return definition


def _unknown(section: Section, name: str) -> Refused:
    return Refused(404, _code(section), f"there is no {section.singular} {name!r} that you may see")


def _code(section: Section) -> str:
    return f"unknown_{section.singular.replace(' ', '_')}"


def _invalid(faults: Sequence[Fault]) -> Refused:
    if not faults:
        return Refused(422, "invalid", "entry: for and mesh are for files; define each series by itself")
    return Refused(422, "invalid", _texts(faults))


def _texts(faults: Sequence[Fault]) -> str:
    texts = [f"{describe_key(path)}: {message}" if path else message for path, message in faults]
    more = f"; and {len(texts) - MOST_FAULTS} more" if len(texts) > MOST_FAULTS else ""
    return "; ".join(texts[:MOST_FAULTS]) + more


def _check_version(section: Section, name: str, before: Definition | None, seen: str | None) -> None:
    """Raise Refused if the caller saw another state of the entry than *before*."""
    present = "" if before is None else _shown(section, name, before, None)["version"]
    if seen is not None and seen != present:
        raise Refused(409, "changed", f"{section.singular} {name} is another one than you saw")


def _shown(
    section: Section, name: str, definition: Definition, reader: AbstractBaseUser | AnonymousUser | None
) -> dict[str, Any]:
    """Return the answer about *definition* for *reader*; None: for the user who sent it."""
    entry = dict(entries.as_entry(section.noun, definition) or {})
    text = json.dumps(entry, sort_keys=True).encode()
    version = hashlib.sha256(text).hexdigest()[:_VERSION_CHARACTERS]
    if reader is not None:
        entry = dict(entries.as_entry(section.noun, entries.readable(definition, reader)) or {})
    return {"name": name, "version": version, "entry": entry}


def _with_example(operation: Operation, section: Section) -> Operation:
    """Return *operation*, whose parameter ``name`` has the example of *section*."""
    known = Path(..., examples=[section.name])  # type: ignore[type-arg]
    operation.__annotations__["name"] = Annotated[EntryName, known]
    return operation


def _register(section: Section) -> None:
    path, key = f"/grid/{section.noun}/{{name}}", section.singular.replace(" ", "_")
    unknown = {404: [_code(section)]}
    router.get(
        path,
        response=GridEntryOut,
        operation_id=f"show_{key}_entry",
        openapi_extra=declare(scope=MANAGE, errors=unknown, subject=_permitted(section, "change")),
        summary=f"Show a {section.singular} as an entry of a grid file",
    )(_with_example(_show(section), section))
    router.put(
        path,
        response={200: GridEntryChanged, 201: GridEntryChanged},
        operation_id=f"define_{key}",
        openapi_extra=declare(
            scope=MANAGE,
            errors={**unknown, 409: ["changed"]},
            subject=_definable(section),
            example={"entry": dict(section.example), "is_dry_run": True},
        ),
        summary=f"Create or replace a {section.singular}",
    )(_with_example(_define(section), section))
    router.delete(
        path,
        response={202: None, 204: None} if key == "series" else {204: None},
        operation_id=f"delete_{key}",
        openapi_extra=declare(
            scope=MANAGE,
            errors={**unknown, 409: ["changed", "in_use"]},
            subject=_permitted(section, "delete"),
        ),
        summary=f"Delete a {section.singular}",
    )(_with_example(_delete(section), section))


for _section in SECTIONS:
    _register(_section)
