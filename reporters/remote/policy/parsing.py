"""Parse a site policy, and publish its schema."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from reporters.fields import Unfit, parse_object
from reporters.remote.policy import rules
from reporters.remote.policy.document import DISCLOSURES, SHAPE
from reporters.remote.policy.locate import TextPosition, position_of
from reporters.remote.policy.rules import PolicyRule
from reporters.remote.policy.shapes import InvalidPolicy
from reporters.remote.policy.site_policy import MAX_BYTES, SitePolicy, UnreadablePolicy
from reporters.schedule import find_zone

_SYNTAX = re.compile(r"line (\d+) column (\d+)")


def parse_policy(data: bytes) -> SitePolicy:
    """Parse a policy.

    Raises:
        UnreadablePolicy: *data* are no valid policy; the message has line and column where these are known.
    """
    try:
        document = parse_object(data, max_bytes=MAX_BYTES)
    except Unfit as error:
        found = _SYNTAX.search(str(error))
        raise UnreadablePolicy(str(error), f"not JSON, {found[0]}" if found else "not valid JSON") from None
    try:
        values = SHAPE.read(document, ())
    except InvalidPolicy as error:
        where = _where(position_of(data.decode(), error.path))
        raise UnreadablePolicy(f"{where}{error}", f"{where}expected {error.expected}") from None
    return SitePolicy(
        status="in_force",
        sha256=hashlib.sha256(data).hexdigest(),
        rules=_rules(values),
        clock_name=values.get("timezone", "UTC"),
        clock=find_zone(values.get("timezone", "UTC")),
        disclosure=values.get("disclosure", next(iter(DISCLOSURES))),
        approval=values.get("approval", "auto"),
    )


def _where(position: TextPosition | None) -> str:
    return f"line {position.line} column {position.column}: " if position else ""


def _rules(values: Mapping[str, Any]) -> Mapping[str, PolicyRule]:
    return {name: rules.load(name)(values[name]) for name in rules.names() if name in values}


def schema() -> str:
    """Return the JSON schema of a site policy, as it is published in ``docs/site-policy.schema.json``."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Site policy of a gridcast reporter",
        **SHAPE.schema(),
    }
    return json.dumps(document, indent=2) + "\n"
