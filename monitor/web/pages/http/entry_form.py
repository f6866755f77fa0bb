"""The form of one entry of the grid: shown, checked, reviewed and saved by the pages of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.core import signing

from monitor.operations.gridfile import entries
from monitor.operations.gridfile.entries import EntryChanged, EntryError
from monitor.operations.gridfile.planning import Change, describe
from monitor.operations.gridfile.problems import NOUNS
from monitor.web.pages.http.form_fields import FormField, Kind, Raw
from monitor.web.pages.http.read_form import entry_bytes
from monitor.web.pages.http.updates import digest_of

if TYPE_CHECKING:
    from django.http import HttpRequest
    from pydantic import BaseModel

    from monitor.core.yamlfile.problems import Fault, Path
    from monitor.operations.gridfile.definition import Definition
    from monitor.operations.gridfile.entries import Entry

NAME = FormField(
    ("name",),
    "Name",
    is_required=True,
    characters=100,
    help="Letters, digits, - and _. It cannot be changed later.",
)
_SALT = "gridcast.settings"
SAVE = "save"

Entries = dict[str, Any]


@dataclass(frozen=True)
class ShownField:
    """A field with its value in the form, and the messages about it."""

    field: FormField
    raw: Raw
    problems: Sequence[str]

    @property
    def id(self) -> str:
        return f"field-{self.field.name.replace('.', '-').replace('_', '-')}"

    @property
    def row_values(self) -> Sequence[str]:
        """The values of the choices of a field of rows; at least one of them is empty if there is room."""
        values = self.raw if isinstance(self.raw, list) else []
        most = int(self.field.maximum or self.field.rows)
        return [*values, *[""] * max(min(self.field.rows, most) - len(values), 0)]


@dataclass
class EntryForm:
    """The fields of an entry, what they contain, and the faults of it."""

    noun: str
    fields: Sequence[FormField]
    raw: Mapping[str, Raw]
    seen: str
    is_new: bool
    faults: Sequence[Fault] = ()
    error: str = ""
    differences: Sequence[str] = ()

    @property
    def groups(self) -> Sequence[tuple[str, Sequence[ShownField]]]:
        """The fields under their headings, in order."""
        by_group: dict[str, list[ShownField]] = {}
        for shown in self.shown:
            by_group.setdefault(shown.field.group, []).append(shown)
        return list(by_group.items())

    @property
    def shown(self) -> Sequence[ShownField]:
        places = [self._place(path) for path, _ in self.faults]
        messages = [message.removeprefix(f"{path[-1]}: " if path else "") for path, message in self.faults]
        return [
            ShownField(
                each,
                self.raw.get(each.name, ""),
                [text for text, place in zip(messages, places, strict=True) if place == each.name],
            )
            for each in self.fields
        ]

    @property
    def problems(self) -> Sequence[str]:
        """The messages about no field."""
        return [message for path, message in self.faults if self._place(path) is None]

    @property
    def has_faults(self) -> bool:
        return bool(self.faults or self.error)

    @property
    def singular(self) -> str:
        return NOUNS[self.noun]

    def entry(self) -> Entries:
        """Return the entry that the fields describe, without the keys that are empty."""
        entry: Entries = {}
        for each in self.fields:
            value = None if each == NAME else each.value(self.raw[each.name])
            inner = entry
            for key in each.path[:-1]:
                inner = inner.setdefault(key, {})
            if value is not None:
                inner[each.path[-1]] = value
        return entry

    def _place(self, path: Sequence[str | int]) -> str | None:
        """Return the name of the field of the value at *path*; None if there is no such field."""
        if not path:
            return NAME.name if NAME in self.fields else None
        names = {each.path: each.name for each in self.fields}
        for length in range(len(path), 0, -1):
            if (name := names.get(tuple(map(str, path[:length])))) is not None:
                return name
        return None


@dataclass
class SubmittedForm:
    """What became of a submitted form.

    *change* is what it would change, or has changed if *is_saved*; None: the form has faults.
    """

    form: EntryForm
    change: Change | None = None
    is_saved: bool = False
    reviewed: str = ""
    notes: Sequence[str] = field(default_factory=list)

    @property
    def differences(self) -> Sequence[str]:
        return [] if self.change is None else [describe(each) for each in self.change.values()]


def most_bytes(entry: type[BaseModel]) -> int:
    """Return how large the fields of a form of *entry* are at most, with the entry that it has shown."""
    return 2 * entry_bytes(entry.model_json_schema())


def opened(noun: str, fields: Sequence[FormField], entry: Entry | None, seen: Entry | None) -> EntryForm:
    """Return the form that shows *entry*; *seen* is the ``seen_entry`` that it replaces; None: a new one."""
    raw = {each.name: each.shown(_at(entry or {}, each.path)) for each in fields}
    return EntryForm(noun, fields, raw, _signed(seen), is_new=seen is None)


def submitted(
    request: HttpRequest,
    noun: str,
    name: str,
    fields: Sequence[FormField],
    *,
    complete: Callable[[Entries], Entries] = lambda entry: entry,
    is_permitted: Callable[[str], bool] = lambda _: True,
    must_review: Callable[[Change], Sequence[str]] = lambda _: (),
    place: Callable[[Path, Entries], Path] = lambda path, _: path,
) -> SubmittedForm:
    """Check the submitted form of the entry *name* (empty: a new one); save it if the user asks for that.

    *complete* adds keys of the entry that no field has. *is_permitted* is asked about the saved name, before
    it is committed. What *must_review* returns about a change has to be shown before it is saved. *place* is
    where the form has the value at a path of the entry.
    """
    posted = request.POST
    seen = _seen(posted.get("seen", ""))
    form = EntryForm(
        noun, fields, {each.name: each.read(posted) for each in fields}, posted.get("seen", ""), not name
    )
    name = name or str(form.raw.get(NAME.name, ""))
    described = form.entry()
    entry = complete(described)
    checked = entries.check(noun, name, entry, request.user)
    form.faults = [(place(path, described), message) for path, message in checked.faults]
    definition = checked.definition
    if definition is None:
        return SubmittedForm(form)
    change = Change(noun, entries.readable(entries.find(noun, name), request.user), definition)
    result = SubmittedForm(form, change, reviewed=digest_of(entry), notes=list(must_review(change)))
    needs_review = bool(result.notes) and posted.get("reviewed") != result.reviewed
    if posted.get("verb") == SAVE and not needs_review:
        _save(result, seen, definition, request, is_permitted)
    return result


def _save(
    result: SubmittedForm,
    seen: Entry | None,
    definition: Definition,
    request: HttpRequest,
    is_permitted: Callable[[str], bool],
) -> None:
    form = result.form
    try:
        result.change = entries.save(
            form.noun,
            seen,
            definition,
            author=request.user,
            is_permitted=lambda: is_permitted(definition.name),
        )
    except EntryChanged as error:
        form.error = f"Not saved: {error}. Your input is below; saving again replaces the present values."
        form.differences = [describe(each) for each in error.differences]
        if form.is_new:
            form.error = f"Not saved: {error}. Choose another name."
        else:
            form.seen = _signed(entries.seen_entry(form.noun, entries.find(form.noun, definition.name)))
    except EntryError as error:
        form.error = f"Not saved: {error}."
    else:
        result.is_saved = True


def seen_token(noun: str, name: str) -> str:
    """Return the token of the present entry, for a form that deletes it."""
    return _signed(entries.seen_entry(noun, entries.find(noun, name)))


def remove(request: HttpRequest, noun: str, name: str) -> str:
    """Delete the entry *name* that the form has shown; return the error, empty if it is deleted."""
    try:
        seen = _seen(request.POST.get("seen", ""))
        entries.remove(noun, name, seen, who=request.user.get_username())
    except EntryError as error:
        return f"Not deleted: {error}."
    return ""


def disable(request: HttpRequest, noun: str, name: str) -> str:
    """Disable the entry *name* that the form has shown; return the error, empty if it is disabled."""
    definition, seen = entries.find(noun, name), _seen(request.POST.get("seen", ""))
    if definition is None:
        return f"Not changed: {NOUNS[noun]} {name} was deleted meanwhile."
    disabled = replace(definition, enabled=False)  # type: ignore[arg-type]  # of nouns that can be disabled
    try:
        entries.save(noun, seen, disabled, author=request.user)
    except EntryError as error:
        return f"Not changed: {error}."
    return ""


def _signed(entry: Entry | None) -> str:
    return signing.dumps(entry, salt=_SALT, compress=True)


def _seen(token: str) -> Entry | None:
    """Return the entry of *token*; an entry that equals none if the token is not ours."""
    try:
        entry: Entry | None = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        return {}
    return entry


def _at(entry: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = entry
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def rows_field(
    path: tuple[str, ...], label: str, names: Sequence[str], current: int, **more: Any
) -> FormField:
    """Return a field of choices in order, with room for two more than the *current* ones."""
    options = [(name, name) for name in names]
    least = int(more.get("minimum") or 0)
    most = int(more.get("maximum") or current + 2)
    rows = min(max(least, current + 2), most)
    return FormField(path, label, kind=Kind.ROWS, options=options, rows=rows, **more)
