"""Rows of every kind that the schema and the registries permit, made from one example of each model.

The kinds come from the models: each choice, true and false, null and a value where null is permitted, an
empty text where it is, and a row that is gone behind a reference without a constraint. ``values.DOMAINS`` has
the kinds of texts that a registry or an enumeration knows. A kind that a check constraint forbids together
with the other values of the example is tried with each of the other nullable columns changed as well.
"""

from __future__ import annotations

import random
import string
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, connection, models, transaction

from monitor.models import Binding, Run, Series
from tests.monitor.cross.values import DOMAINS, GONE, JOINT, value_of

Changes = Mapping[str, Any]
_UNIQUE, _NOT_NULL, _CHECK = "23505", "23502", "23514"
_TRIES = 8
# The parents that each row of a model has for itself: a run is the newest of its series.
_OWN_PARENTS: Mapping[type[models.Model], Sequence[str]] = {Run: ["series"]}
# The rows that a row of a model cannot do without: copied along.
_CHILDREN: Mapping[type[models.Model], type[models.Model]] = {Series: Binding}


@dataclass
class Variants:
    """Makes the variants of examples.

    Attributes:
        made: the primary keys of the rows, by model.
        forbidden: the kinds that the database refused, by model and column, with the constraint.
        tried: all kinds.
    """

    draw: random.Random
    made: dict[type[models.Model], list[Any]] = field(default_factory=lambda: defaultdict(list))
    forbidden: dict[tuple[str, str, str], str] = field(default_factory=dict)
    tried: set[tuple[str, str, str]] = field(default_factory=set)
    _uniques: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def make(self, example: models.Model) -> None:
        """Insert a row of each kind of the model of *example*; the example itself stays as it is."""
        for changes in kinds(example):
            names = sorted(changes)
            label = (type(example).__name__, "+".join(names), "+".join(str(changes[name]) for name in names))
            self.tried.add(label)
            try:
                made = self._with_companion(example, changes)
            except IntegrityError as error:
                self.forbidden[label] = _constraint(error)
            else:
                self.made[type(example)].append(made.pk)

    def copy(self, example: models.Model, changes: Changes | None = None) -> models.Model:
        """Insert a copy of *example* with *changes*; what must be unique is made so.

        Raises:
            IntegrityError: a constraint forbids it.
        """
        row, fixed = _copied(example, changes or {}), set(changes or {})
        for column in _stored(row):
            if column.is_relation and (column.primary_key or column.name in _OWN_PARENTS.get(type(row), ())):
                setattr(row, column.attname, self._copy_of_parent(row, column).pk)
        for number in range(_TRIES):
            try:
                with transaction.atomic():
                    return self._inserted(row, example)
            except IntegrityError as error:
                is_unique = _sqlstate(error) == _UNIQUE and number < _TRIES - 1
                if not is_unique or not self._make_unique(row, error, fixed):
                    raise
        raise AssertionError("the last try raises")

    def _with_companion(self, example: models.Model, changes: Changes) -> models.Model:
        """Insert the variant, if need be with another nullable column changed as well."""
        try:
            return self.copy(example, changes)
        except IntegrityError as error:
            if _sqlstate(error) != _CHECK:
                raise
            refused = error
        for other in example._meta.concrete_fields:
            if other.null and other.attname not in changes:
                value = None if getattr(example, other.attname) is not None else value_of(other)
                try:
                    return self.copy(example, {**changes, other.attname: value})
                except IntegrityError:
                    continue
        raise refused

    def _inserted(self, row: models.Model, example: models.Model) -> models.Model:
        kept = type(row)._base_manager.filter(pk=row.pk)
        if row._meta.pk.is_relation and kept.exists():  # a trigger has made the row of its parent
            names = [each.attname for each in _stored(row) if not each.primary_key]
            kept.update(**{name: getattr(row, name) for name in names})
        else:
            row.save(force_insert=True)
        for many in row._meta.many_to_many:
            getattr(row, many.name).set(getattr(example, many.name).all())
        child = _CHILDREN.get(type(row))
        if child is not None:
            for each in child._base_manager.filter(**{type(row)._meta.model_name or "": example}):
                _copied(each, {f"{type(row)._meta.model_name}_id": row.pk}).save(force_insert=True)
        return row

    def _make_unique(self, row: models.Model, error: IntegrityError, fixed: set[str]) -> bool:
        """Change a column, but none of *fixed*, of the violated constraint; return whether there is one."""
        columns = {each.column: each for each in _stored(row)}
        names = self._columns_of(error)
        # A copy of a parent is of the same kind as the parent. It is the last resort: it has nothing else.
        free = [
            column
            for name in names
            if (column := columns.get(name)) and (column.is_relation or column.attname not in fixed)
        ]
        for column in sorted(free, key=lambda each: each.is_relation):
            if column.is_relation and getattr(row, column.attname) is not None:
                setattr(row, column.attname, self._copy_of_parent(row, column).pk)
                return True
            changed = _changed(column, getattr(row, column.attname), self.draw)
            if changed is not None:
                setattr(row, column.attname, changed)
                return True
        return False

    def _copy_of_parent(self, row: models.Model, column: Any) -> models.Model:
        parent = self.copy(column.related_model._base_manager.get(pk=getattr(row, column.attname)))
        self.made[type(parent)].append(parent.pk)
        return parent

    def _columns_of(self, error: IntegrityError) -> list[str]:
        table = error.__cause__.diag.table_name  # type: ignore[union-attr]  # that of the partition
        if table not in self._uniques:
            with connection.cursor() as cursor:
                self._uniques[table] = connection.introspection.get_constraints(cursor, table)
        found = self._uniques[table].get(_constraint(error))
        return list(found["columns"]) if found else []


def kinds(example: models.Model) -> Iterator[Changes]:
    """Yield what makes a copy of *example* a row of another kind, one column after the other."""
    model = type(example)
    yield from JOINT[model](example) if model in JOINT else ()
    for column in _stored(example):
        if column.primary_key or (column.is_relation and column.unique):
            if column.null:
                yield {column.attname: None}
            continue
        for value in _values(column, example):
            yield {column.attname: value}


def _values(column: Any, example: models.Model) -> Iterator[Any]:
    present = getattr(example, column.attname)
    if column.choices:
        yield from (value for value, _ in column.flatchoices)
    elif column.get_internal_type() == "BooleanField":
        yield from (True, False)
    elif (type(example).__name__, column.name) in DOMAINS:
        yield from DOMAINS[type(example).__name__, column.name]()
    elif column.null and present is None:
        yield value_of(column)
    if column.null:
        yield None
    elif column.blank and column.empty_strings_allowed and isinstance(present, str) and present:
        yield ""
    if column.is_relation and not column.db_constraint:
        yield GONE["UUIDField" if isinstance(present, uuid.UUID) else "BigIntegerField"]


def _stored(row: models.Model) -> list[Any]:
    return [each for each in row._meta.concrete_fields if not getattr(each, "generated", False)]


def _copied(example: models.Model, changes: Changes) -> models.Model:
    model = type(example)
    values = {each.attname: getattr(example, each.attname) for each in _stored(example)}
    key = model._meta.pk
    if isinstance(key, models.AutoField):
        del values[key.attname]
    elif isinstance(key, models.UUIDField):
        values[key.attname] = uuid.uuid4()
    return model(**{**values, **changes})


def _changed(column: Any, value: Any, draw: random.Random) -> Any:
    """Return another value of *column*; None if there is none that says the same."""
    kind = column.get_internal_type()
    if column.name in ("kind", "condition", "service"):
        return None
    if kind in {"CharField", "SlugField", "TextField"} and not column.choices:
        suffix = "".join(draw.choices(string.ascii_lowercase, k=6))
        return f"{str(value)[: (column.max_length or 100) - 7]}-{suffix}"
    if kind in {"DateTimeField", "DateField"} and value is not None:
        return value - timedelta(days=draw.randrange(1, 28))  # an hour still begins there
    others: Mapping[str, Callable[[], Any]] = {
        "UUIDField": lambda: uuid.UUID(int=draw.getrandbits(128)),
        "BinaryField": lambda: draw.randbytes(len(value)),
    }
    if kind.endswith("IntegerField"):
        return draw.randrange(1, 30_000)
    return others[kind]() if kind in others else None


def _sqlstate(error: IntegrityError) -> str:
    return str(getattr(error.__cause__, "sqlstate", ""))


def _constraint(error: IntegrityError) -> str:
    diagnosis = getattr(error.__cause__, "diag", None)
    return str(
        getattr(diagnosis, "constraint_name", None) or getattr(diagnosis, "column_name", None) or error
    )
