"""JSON Schema of the OpenAPI document in words, as fields and as example values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitor.web.api.http.examples import EXAMPLES

Schema = Mapping[str, Any]

_FORMATS = {"date-time": "time (RFC 3339)", "date": "date", "uuid": "UUID", "binary": "bytes"}
_TYPES = {
    "integer": "integer",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
}
_LIMITS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "below {}"),
    ("minLength", "{} or more characters"),
    ("maxLength", "up to {} characters"),
    ("minItems", "{} or more items"),
    ("maxItems", "up to {} items"),
    ("pattern", "matches {}"),
)
_EXAMPLES: Mapping[str, Any] = {
    "date-time": "2026-03-01T12:00:00Z",
    "date": "2026-03-01",
    "uuid": "0d5c6c1e-6d1c-4f0c-9a58-0c6f0f3f9a11",
    "integer": 1,
    "number": 0.9,  # also a probability
    "boolean": True,
    "string": "text",
}
_NULL: Schema = {"type": "null"}


@dataclass(frozen=True)
class SchemaField:
    """A field of an object as the documentation shows it; *fields* are those of the objects in it."""

    name: str
    type: str
    description: str
    limits: str
    is_required: bool
    fields: tuple[SchemaField, ...] = field(default=())


class Schemas:
    """Reads schemas that refer to the *components* of a document."""

    def __init__(self, components: Mapping[str, Schema]) -> None:
        self._components = components

    def type_words(self, schema: Schema) -> str:
        """Return the type of the values in words, such as ``list of text or null``."""
        words = [self._one_type(each) for each in self._alternatives(schema)]
        return " or ".join(dict.fromkeys(words))

    def choices(self, schema: Schema) -> tuple[str, ...]:
        """Return the values that are permitted, as a query has them; nothing if there are others too."""
        alternatives = [each for each in self._alternatives(schema) if each != _NULL]
        if any("enum" not in each and each.get("type") != "boolean" for each in alternatives):
            return ()
        return tuple(str(value) for each in alternatives for value in each.get("enum", ("true", "false")))

    def limits(self, schema: Schema) -> str:
        """Return the limits and the default of the values in words; empty if there are none."""
        parts = [
            text.format(_number(each[name]))
            for each in self._alternatives(schema)
            for name, text in _LIMITS
            if name in each
        ]
        if (default := schema.get("default")) not in (None, "", [], {}):
            parts.append(f"default {str(default).lower() if isinstance(default, bool) else default}")
        return ", ".join(parts)

    def fields(self, schema: Schema, above: tuple[str, ...] = ()) -> tuple[SchemaField, ...]:
        """Return the fields of the objects in *schema*, also of those in lists and maps.

        The fields of a schema within itself are left out: *above* has the names of those around it.
        """
        found: dict[str, SchemaField] = {}
        for name, each in self._objects(schema):
            if name in above:
                continue
            required = each.get("required", ())
            for key, value in each["properties"].items():
                inner = self.fields(value, (*above, name) if name else above)
                shown = self._described(value)
                found[key] = SchemaField(
                    key, self.type_words(value), shown, self.limits(value), key in required, inner
                )
        return tuple(found.values())

    def example(self, schema: Schema, above: tuple[str, ...] = ()) -> Any:
        """Return a value that the schema permits: its example if it has one."""
        if schema.get("examples"):
            return schema["examples"][0]
        reference = _reference(schema)
        if reference in above:
            return {}
        inner = (*above, reference) if reference else above
        chosen = next((each for each in self._alternatives(schema) if each != _NULL), _NULL)
        if chosen.get("examples"):
            return chosen["examples"][0]
        if schema.get("default") not in (None, "", [], {}):
            return schema["default"]
        return self._example_of_type(chosen, inner)

    def _example_of_type(self, schema: Schema, above: tuple[str, ...]) -> Any:
        kind = schema.get("type")
        if "enum" in schema:
            return schema["enum"][0]
        if "properties" in schema:
            return {
                key: self._example_of_field(key, value, above) for key, value in schema["properties"].items()
            }
        if kind == "array":
            return [self.example(schema["items"], above)] if schema.get("items") else []
        if isinstance(schema.get("additionalProperties"), Mapping):
            return {"name": self.example(schema["additionalProperties"], above)}
        if kind in ("integer", "number") and "minimum" in schema:
            return max(schema["minimum"], min(1, schema.get("maximum", 1)))
        return _EXAMPLES.get(
            schema.get("format", ""), _EXAMPLES.get(str(kind), None if kind == "null" else {})
        )

    def _example_of_field(self, name: str, schema: Schema, above: tuple[str, ...]) -> Any:
        value = self.example(schema, above)
        return EXAMPLES.get(name, value) if value == _EXAMPLES["string"] else value

    def _one_type(self, schema: Schema) -> str:
        kind = schema.get("type")
        if "enum" in schema:
            return " or ".join(f"`{value}`" for value in schema["enum"])
        if kind == "array":
            return f"list of {self.type_words(schema['items'])}" if schema.get("items") else "list"
        if isinstance(schema.get("additionalProperties"), Mapping):
            return f"map of {self.type_words(schema['additionalProperties'])}"
        if kind == "object" or "properties" in schema:
            return "object"
        return _FORMATS.get(
            schema.get("format", ""), _TYPES.get(str(kind), "null" if kind == "null" else "any")
        )

    def _described(self, schema: Schema) -> str:
        """Return the description of a field, or that of the schema to which it refers."""
        others = (each.get("description", "") for each in self._alternatives(schema))
        return str(schema.get("description") or next(filter(None, others), ""))

    def _alternatives(self, schema: Schema) -> tuple[Schema, ...]:
        """Return what a value may be, each without references."""
        if reference := _reference(schema):
            return self._alternatives(self._components[reference])
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return self._alternatives(schema["allOf"][0])
        several = schema.get("anyOf") or schema.get("oneOf")
        if several:
            return tuple(one for each in several for one in self._alternatives(each))
        return (schema,)

    def _objects(self, schema: Schema) -> Iterator[tuple[str, Schema]]:
        """Yield the objects with fields that are in *schema*, with the names of their components."""
        if reference := _reference(schema):
            resolved = self._components[reference]
            if "properties" in resolved:
                yield reference, resolved
                return
            schema = resolved
        if "properties" in schema:
            yield "", schema
            return
        for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            yield from self._objects(each)
        for inner in (schema.get("items"), schema.get("additionalProperties")):
            if isinstance(inner, Mapping):
                yield from self._objects(inner)


def _number(limit: Any) -> Any:
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def _reference(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
