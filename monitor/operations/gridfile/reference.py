"""Generate the JSON Schema and the reference page from the models of the format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from monitor.analysis.signatures.loading import SignatureEntry
from monitor.core.yamlfile.entry import Entry
from monitor.operations.gridfile.alert_entries import AlertRuleEntry, ChannelEntry, Watches
from monitor.operations.gridfile.availability_entries import (
    AvailabilityProfileEntry,
    SelectionEntry,
    ServiceEntry,
)
from monitor.operations.gridfile.format import (
    AccessEntry,
    ContactEntry,
    GridFile,
    MaintenanceEntry,
    Mesh,
    ReporterEntry,
    ResourceEntry,
    SeriesEntry,
    SiteEntry,
    SuiteEntry,
)
from monitor.operations.gridfile.storage_entries import StorageEntry, StoragePartsEntry
from monitor.operations.gridfile.webhook_entries import WebhookEntry

_ENTRIES: tuple[type[Entry] | type[AccessEntry] | type[ChannelEntry], ...] = (
    GridFile,
    SiteEntry,
    ContactEntry,
    ResourceEntry,
    AccessEntry,
    StorageEntry,
    StoragePartsEntry,
    ReporterEntry,
    SuiteEntry,
    SeriesEntry,
    Mesh,
    MaintenanceEntry,
    AlertRuleEntry,
    Watches,
    ChannelEntry,
    AvailabilityProfileEntry,
    SelectionEntry,
    ServiceEntry,
    SignatureEntry,
    WebhookEntry,
)
_TITLES = {
    "GridFile": "The file",
    "AccessEntry": "Shell, transfer, batch",
    "AlertRuleEntry": "Alert rule",
    "AvailabilityProfileEntry": "Availability profile",
}
_TOP = """\
# Grid file reference

Generated from `monitor/operations/gridfile/format.py` by `manage.py grid reference`. The equivalent JSON
Schema is [grid.schema.json](grid.schema.json) (`manage.py grid schema`). Guide: [grid-file.md](grid-file.md).

Any other key is an error. Names consist of letters, digits, `-` and `_`.
"""


def schema() -> str:
    """Return the JSON Schema of grid files."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **GridFile.model_json_schema()}
    return json.dumps(document, indent=2) + "\n"


def page() -> str:
    """Return the reference page in Markdown."""
    whole = GridFile.model_json_schema()
    schemas = {"GridFile": whole, **whole["$defs"]}
    return "\n".join([_TOP, *(line for noun in _ENTRIES for line in _section(noun.__name__, schemas))])


def _title(name: str) -> str:
    return _TITLES.get(name, name.removesuffix("Entry"))


def _section(name: str, schemas: Mapping[str, Any]) -> Iterator[str]:
    schema = schemas[name]
    yield f"## {_title(name)}\n"
    yield _linked(schema["description"]) + "\n"
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for key, value in schema["properties"].items():
        default = "required" if key in schema.get("required", ()) else _default(value)
        yield f"| `{key}` | {_type(value)} | {default} | {_linked(value['description'])} |"
    yield ""


def _linked(text: str) -> str:
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)


def _default(value: Mapping[str, Any]) -> str:
    default = value.get("default")
    return "" if default in (None, "", [], {}) else f"`{json.dumps(default)}`"


def _type(value: Mapping[str, Any]) -> str:
    """Return the type of *value* in words, with its limits."""
    for key, phrase in _TYPE_PHRASES.items():
        if key in value:
            return phrase(value)
    kind = value["type"]
    if isinstance(kind, list):
        return ", ".join(_WORDS[name] for name in kind)
    word = _WORDS[value.get("format", kind)]
    limits = [limit.format(value[key]) for key, limit in _LIMITS.items() if key in value]
    return f"{word} ({', '.join(limits)})" if limits else word


def _reference(value: Mapping[str, Any]) -> str:
    noun = value["$ref"].rpartition("/")[2]
    title = _title(noun).lower()
    return f"[{title}](#{title.replace(',', '').replace(' ', '-')})"


def _alternatives(value: Mapping[str, Any]) -> str:
    return " or ".join(_type(option) for option in value["anyOf"] if option.get("type") != "null")


_TYPE_PHRASES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "$ref": _reference,
    "anyOf": _alternatives,
    "enum": lambda value: " or ".join(f"`{option}`" for option in value["enum"] if option),
    "const": lambda value: f"`{value['const']}`",
    "items": lambda value: f"list of {_type(value['items'])}",
    "additionalProperties": lambda value: f"{_type(value['additionalProperties'])} by name",
    "patternProperties": lambda value: f"{_type(next(iter(value['patternProperties'].values())))} by name",
}
_WORDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "date-time": "time",
    "date": "day",
}
_LIMITS = {
    "maxLength": "at most {} characters",
    "exclusiveMinimum": "over {:g}",
    "minimum": "at least {:g}",
    "maximum": "at most {:,.0f}",
}
