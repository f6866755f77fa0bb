"""Fields of the forms of settings, generated from what a probe, a plug-in or the grid file declares.

A field reads a submitted form as a value of an entry of a grid file. It converts and does not judge: a text
that is no number stays text, so that the check of grid files says what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.http import QueryDict
from pydantic import BaseModel

from probes.base import Parameter

if TYPE_CHECKING:
    from django.db.models import QuerySet

MOST_OPTIONS = 100  # of a list of checkboxes; longer lists are typed, one name per line
MOST_CHOICES = 500  # of a list to choose one from; of more names, one is typed
_UNITS = {"bytes_per_second": "bytes/s", "seconds": "seconds", "bytes": "bytes", "days": "days"}
_LABELS = {"url": "URL", "to": "Recipients", "max_load1": "Maximum load (1 min)", "timezone": "Time zone"}
_SAID = ("seconds", "days")  # units that a label leaves out, because they stand beside it
_LINK = re.compile(r" \((?:see )?(?:docs/[\w.-]+|`/admin/`)\)")
_YES, _NO = "true", "false"

Raw = str | list[str] | bool
Option = tuple[str, str]  # the value of an option, and its label


class Kind(StrEnum):
    """How a field is shown; the names of the branches of ``parts/field.html``."""

    TEXT = "text"
    NUMBER = "number"
    CHECK = "check"
    CHOICE = "choice"
    CHOICES = "choices"  # checkboxes
    LINES = "lines"  # a text, one value per line
    ROWS = "rows"  # choices in order


@dataclass(frozen=True)
class FormField:
    """A field of a form, for the value at *path* of an entry.

    Attributes:
        options: of choices, the values and their labels.
        empty: the label of the choice of no value, and the hint in an empty text.
        is_boolean: whether a choice is of true and false.
        is_above: whether a number has to be more than *minimum*.
        rows: how many choices a field of rows shows.
    """

    path: tuple[str, ...]
    label: str
    kind: Kind = Kind.TEXT
    group: str = ""
    help: str = ""
    unit: str = ""
    options: Sequence[Option] = ()
    empty: str = ""
    is_required: bool = False
    is_whole: bool = False
    is_boolean: bool = False
    is_above: bool = False
    minimum: float | None = None
    maximum: float | None = None
    characters: int | None = None
    rows: int = 0

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def range(self) -> str:
        """The bounds of a number in words."""
        low = "" if self.minimum is None else _number_text(self.minimum)
        high = "" if self.maximum is None or self.maximum >= 2**63 - 1 else _number_text(self.maximum)
        if self.is_above:
            return f"more than {low}, at most {high}" if high else f"more than {low}"
        if low and high:
            return f"exactly {low}" if low == high else f"{low} to {high}"
        return f"at least {low}" if low else f"at most {high}" if high else ""

    def read(self, posted: QueryDict) -> Raw:
        """Return the value of the field as it was submitted."""
        if self.kind == Kind.CHECK:
            return self.name in posted
        if self.kind in {Kind.CHOICES, Kind.ROWS}:
            return [_clean(text) for text in posted.getlist(self.name) if text]
        return _clean(posted.get(self.name, ""))

    def shown(self, value: Any) -> Raw:
        """Return *value* of an entry as the form shows it."""
        if self.kind == Kind.CHECK:
            return bool(value)
        if self.kind in {Kind.CHOICES, Kind.ROWS}:
            return [str(each) for each in value or ()]
        if self.kind == Kind.LINES:
            return "\n".join(str(each) for each in value or ())
        if isinstance(value, bool):
            return _YES if value else _NO
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return "" if value is None else str(value)

    def value(self, raw: Raw) -> Any:
        """Return the value that *raw* means; None: the entry lacks the key."""
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, list):
            return raw or None
        if self.kind == Kind.LINES:
            return [line.strip() for line in raw.split("\n") if line.strip()] or None
        if self.is_boolean and raw in {_YES, _NO}:
            return raw == _YES
        return (_number(raw, is_whole=self.is_whole) if self.kind == Kind.NUMBER else raw) if raw else None


def _number_text(number: float) -> str:
    return f"{int(number):,}" if float(number).is_integer() else f"{number:,.10g}"


def _clean(text: str) -> str:
    return text.replace("\x00", "").replace("\r\n", "\n").strip()


def _number(text: str, *, is_whole: bool) -> int | float | str:
    """Return *text* as a number, as text if it is none."""
    if re.fullmatch(r"[-+]?[0-9]{1,30}", text):
        return int(text) if is_whole else float(text)
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def model_fields(
    model: type[BaseModel],
    names: Mapping[str, Sequence[str]],
    *,
    omit: Iterable[str] = (),
    groups: Mapping[str, str] | None = None,
    below: tuple[str, ...] = (),
) -> Iterator[FormField]:
    """Yield a field for each key of the entry *model*, but those to *omit*.

    *names* has the existing names that a key refers to; *groups* the headings of keys; *below* is the path of
    the entry in the whole entry.
    """
    schema = model.model_json_schema()
    required = set(schema.get("required", ()))
    for key, value in schema["properties"].items():
        if key in set(omit):
            continue
        base = FormField(
            (*below, key),
            label_of(key),
            group=(groups or {}).get(key, ""),
            help=_LINK.sub("", value.get("description", "")).replace("`", ""),
            unit=unit_of(key),
            is_required=key in required,
        )
        yield _typed(base, value, names.get(key))


def _typed(base: FormField, schema: Mapping[str, Any], names: Sequence[str] | None) -> FormField:
    """Return *base* as its JSON Schema and the *names* that it may have demand."""
    alternatives = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    inner = alternatives[0]
    default = schema.get("default")
    if inner.get("type") == "array":
        return list_field(base, inner.get("items", {}).get("enum") or names)
    if (names is not None and len(names) <= MOST_CHOICES) or "enum" in inner:
        options = [(name, name) for name in names or inner.get("enum", ()) if name]
        empty = "" if base.is_required else str(default or "none")
        return replace(base, kind=Kind.CHOICE, options=options, empty=empty)
    if inner.get("type") == "boolean":
        return replace(base, kind=Kind.CHECK)
    if inner.get("type") in {"integer", "number"}:
        return replace(
            base,
            kind=Kind.NUMBER,
            is_whole=inner["type"] == "integer",
            is_above="exclusiveMinimum" in inner,
            minimum=inner.get("minimum", inner.get("exclusiveMinimum")),
            maximum=inner.get("maximum"),
            empty="" if default is None else f"{default:.10g}",
        )
    example = "2005-03-01T00:00:00Z" if inner.get("format") == "date-time" else ""
    return replace(base, characters=inner.get("maxLength"), empty=str(default or example))


def offered_names(rows: QuerySet[Any]) -> list[str]:
    """Return the names of *rows*; of more than a field offers, enough to tell."""
    return list(rows.order_by("sort_name").values_list("name", flat=True)[: MOST_CHOICES + 1])


def list_field(base: FormField, names: Sequence[str] | None) -> FormField:
    """Return *base* as a list of some of *names*; None: of any text."""
    if names is None or len(names) > MOST_OPTIONS:
        return replace(base, kind=Kind.LINES, empty="one per line")
    return replace(base, kind=Kind.CHOICES, options=[(name, name) for name in names])


def parameter_field(name: str, parameter: Parameter, group: str) -> FormField:
    """Return the field of *parameter* of a probe; an empty field means the default."""
    unit, default, text = unit_of(name), parameter.default, parameter.description
    base = FormField(
        ("parameters", name), label_of(name), group=group, help=f"{text[:1].upper()}{text[1:]}.", unit=unit
    )
    if isinstance(default, bool):
        options = [(_YES, "yes"), (_NO, "no")]
        empty = f"default: {'yes' if default else 'no'}"
        return replace(base, kind=Kind.CHOICE, is_boolean=True, options=options, empty=empty)
    if parameter.choices:
        options = [(choice, choice) for choice in parameter.choices]
        return replace(base, kind=Kind.CHOICE, options=options, empty=f"default: {default}")
    if isinstance(default, int | float):
        bounds = [bound if math.isfinite(bound) else None for bound in (parameter.minimum, parameter.maximum)]
        return replace(
            base,
            kind=Kind.NUMBER,
            is_whole=isinstance(default, int),
            minimum=bounds[0],
            maximum=bounds[1],
            empty=f"{default:.15g}",
        )
    return replace(base, empty=str(default))


OPTION_KINDS = {"str": Kind.TEXT, "int": Kind.NUMBER, "float": Kind.NUMBER, "bool": Kind.CHECK}


def option_field(path: tuple[str, ...], name: str, type_name: str, group: str) -> FormField:
    """Return the field of the option *name*, whose type is written as in ``reporters.options``."""
    first = next(each for each in type_name.split(" | ") if each != "None")
    base = FormField(path, label_of(name), group=group, unit=unit_of(name))
    if first.startswith("Sequence"):
        return replace(base, kind=Kind.LINES, empty="one per line")
    return replace(base, kind=OPTION_KINDS[first], is_whole=first == "int")


def unit_of(key: str) -> str:
    return next((unit for suffix, unit in _UNITS.items() if key == suffix or key.endswith(f"_{suffix}")), "")


def label_of(key: str) -> str:
    """Return *key* in words, without its unit: ``exclusive_wait_seconds`` is *Exclusive wait*."""
    if key in _LABELS:
        return _LABELS[key]
    for suffix in _SAID:
        key = key.removesuffix(f"_{suffix}")
    return key.replace("_", " ").strip().capitalize()
